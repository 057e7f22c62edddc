// SPDX-License-Identifier: BSD-3-Clause
// What the board offers to its devices.
#include "board/board_devices.hh"

namespace moscope {

namespace {

dev::MachineFacts facts_of(const Board &board) {
    dev::MachineFacts facts;
    for (unsigned i = 0; i < board.config.cores; ++i)
        facts.cores.push_back({&board.cores[i]->signals, static_cast<std::uint8_t>(board.config.apic_id(i))});
    facts.chips = board.config.chips;
    facts.cores_per_chip = board.config.cores_per_chip;
    facts.memory = board.firmware.memory;
    facts.hole = board.phys.hole;
    facts.hops = board.config.hops;
    facts.seed = board.config.seed;
    facts.disk = board.config.disk;
    facts.disk_read_only = board.config.disk_read_only;
    facts.nic = board.config.nic;
    return facts;
}

} // namespace

Board::Devices::Devices(Board &board, dev::AddressSpace &mmio, dev::AddressSpace &ports)
    : all(board.queue, board, mmio, ports, bus, facts_of(board)) {
    all.dma = [this, &board]() -> dev::Dma & {
        if (!dma)
            dma = std::make_unique<TimedDma>(
                board.queue, board.phys,
                [&board](PhysAddr a, std::uint64_t size) { board.blocks.front()->written_range(a, size); },
                board.config.nic ? board.config.nic->transfers : 1);
        return *dma;
    };
    all.on_power = [&board](dev::PowerEvent e) {
        const bool off = e == dev::PowerEvent::off;
        board.end({off ? "poweroff" : "reset", off ? "the guest powered off" : "the guest reset the machine", 0});
    };
    all.on_operations = [&board](std::uint64_t n) { board.operations += n; };
    all.on_exit = [&board](std::uint32_t v) { board.end({"exit", "exit port", static_cast<int>(v & 0xff)}); };
    all.console_output = [&board](std::uint8_t c) { board.console_written(static_cast<char>(c)); };
    all.make_all();
}

} // namespace moscope
