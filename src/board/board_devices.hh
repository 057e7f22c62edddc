// SPDX-License-Identifier: BSD-3-Clause
// The registered devices of the board, with the interrupt bus and the DMA engine that they share (only board.cc and
// board_devices.cc see them). Only dev/devices.hh knows which devices there are.
#pragma once

#include <memory>

#include "board/board.hh"
#include "board/timed_dma.hh"
#include "dev/devices.hh"
#include "dev/interrupts/lapic.hh"

namespace moscope {

struct Board::Devices {
    /// Makes all devices and maps their registers.
    Devices(Board &board, dev::AddressSpace &mmio, dev::AddressSpace &ports);

    dev::ApicBus bus;
    std::unique_ptr<TimedDma> dma; ///< null: no device has asked for it
    dev::Devices all;
};

} // namespace moscope
