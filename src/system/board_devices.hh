// SPDX-License-Identifier: BSD-3-Clause
// The devices of the board (only board.cc and board_devices.cc see them).
#pragma once

#include <memory>
#include <vector>

#include "dev/apic_bus.hh"
#include "dev/lapic.hh"
#include "dev/pit.hh"
#include "dev/uart16550.hh"
#include "system/board.hh"

namespace moscope {

/// An ISA interrupt wire goes to the 8259 pair and to the I/O APIC; the timer's to the latter's input 2.
class IsaInterrupts final : public dev::IrqLine {
  public:
    void set_irq(unsigned irq, bool level) override {
        for (const auto &[line, timer_input] : to_)
            line->set_irq(irq == 0 ? timer_input : irq, level);
    }
    void connect(dev::IrqLine &line, unsigned timer_input) { to_.emplace_back(&line, timer_input); }

  private:
    std::vector<std::pair<dev::IrqLine *, unsigned>> to_;
};

struct Board::Devices {
    Devices(Board &board, dev::AddressSpace &mmio, dev::AddressSpace &ports);

    dev::ApicBus bus;
    std::vector<std::unique_ptr<dev::LocalApic>> apics;
    dev::LapicBlock lapics;
    IsaInterrupts isa;
    std::unique_ptr<dev::Pit> pit;
    std::unique_ptr<dev::Uart16550> uart;

    std::vector<dev::Device *> all; ///< in the order in which checkpoints hold them
};

} // namespace moscope
