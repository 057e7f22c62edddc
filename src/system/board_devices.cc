// SPDX-License-Identifier: BSD-3-Clause
// Which device is where, and how it is wired.
#include "system/board_devices.hh"

namespace moscope {

Board::Devices::Devices(Board &board, dev::AddressSpace &mmio, dev::AddressSpace &ports) {
    const SystemConfig &config = board.config;
    for (unsigned i = 0; i < config.cores; ++i) {
        apics.push_back(std::make_unique<dev::LocalApic>(board.queue, board, bus, board.cores[i]->signals,
                                                         static_cast<std::uint8_t>(config.apic_id(i)), i == 0));
        lapics.add(*apics.back());
    }
    mmio.map(dev::LocalApic::kBase, dev::LocalApic::kSize, lapics, 0);
    all.push_back(&lapics);

    pit = std::make_unique<dev::Pit>(board.queue, board, isa, dev::Pit::kIrq);
    ports.map(dev::Pit::kPort, dev::Pit::kSize, *pit, 0);
    ports.map(dev::Pit::kControlPort, 1, *pit, 1);
    all.push_back(pit.get());

    uart = std::make_unique<dev::Uart16550>(board.queue, board, isa, dev::Uart16550::kIrq,
                                            [&board](std::uint8_t c) { board.console_written(static_cast<char>(c)); });
    ports.map(dev::Uart16550::kPort, dev::Uart16550::kSize, *uart, 0);
    all.push_back(uart.get());

    for (dev::Device *d : all)
        d->reset();
}

} // namespace moscope
