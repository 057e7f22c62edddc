// SPDX-License-Identifier: BSD-3-Clause
// The devices of the board (only board.cc and board_devices.cc see them).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "board/board.hh"
#include "board/timed_dma.hh"
#include "dev/interrupts/apic_bus.hh"
#include "dev/interrupts/ioapic.hh"
#include "dev/interrupts/isa_interrupts.hh"
#include "dev/interrupts/lapic.hh"
#include "dev/interrupts/pic.hh"
#include "dev/pci/northbridge.hh"
#include "dev/pci/pci_host.hh"
#include "dev/reset_control.hh"
#include "dev/serial/debug_ports.hh"
#include "dev/serial/uart16550.hh"
#include "dev/timers/acpi_pm.hh"
#include "dev/timers/hpet.hh"
#include "dev/timers/pit.hh"
#include "dev/timers/rtc.hh"
#include "dev/virtio/disk_image.hh"
#include "dev/virtio/virtio_blk.hh"
#include "dev/virtio/virtio_rng.hh"

namespace moscope {

struct Board::Devices {
    Devices(Board &board, const std::vector<dev::Firmware::Memory> &ranges);

    /// Puts every device at its place and lists it.
    void map(Board &board, dev::AddressSpace &mmio, dev::AddressSpace &ports);

    dev::ApicBus bus;
    std::vector<std::unique_ptr<dev::LocalApic>> apics;
    dev::LapicBlock lapics;
    dev::IoApic io_apic;
    dev::PicPair pic;
    dev::IsaInterrupts isa;
    dev::Pit pit;
    dev::Hpet hpet;
    dev::Rtc rtc;
    dev::AcpiPm pm;
    dev::ResetControl reset;
    dev::Uart16550 uart;
    dev::ExitPort exit_port;
    dev::DebugConsole debug_console;
    dev::PciHost pci;
    std::vector<std::unique_ptr<dev::Northbridge>> northbridges;
    TimedDma dma;
    dev::VirtioRng entropy;
    std::unique_ptr<dev::DiskImage> image;
    std::unique_ptr<dev::VirtioBlk> disk;

    std::vector<dev::Device *> all; ///< in the order in which checkpoints hold them
};

} // namespace moscope
