// SPDX-License-Identifier: BSD-3-Clause
// Which device is where, and how it is wired.
#include "board/board_devices.hh"

namespace moscope {

namespace {

constexpr std::uint8_t kIoApicId = 0x40;                ///< above all local APICs: eight chips of eight
constexpr unsigned kEntropyDevice = 2, kDiskDevice = 3; ///< on PCI bus 0

std::vector<std::unique_ptr<dev::LocalApic>> make_apics(Board &board, dev::ApicBus &bus) {
    std::vector<std::unique_ptr<dev::LocalApic>> apics;
    for (unsigned i = 0; i < board.config.cores; ++i)
        apics.push_back(std::make_unique<dev::LocalApic>(board.queue, board, bus, board.cores[i]->signals,
                                                         static_cast<std::uint8_t>(board.config.apic_id(i)), i == 0));
    return apics;
}

dev::OnPower on_power(Board &board) {
    return [&board](dev::PowerEvent e) {
        const bool off = e == dev::PowerEvent::off;
        board.end({off ? "poweroff" : "reset", off ? "the guest powered off" : "the guest reset the machine", 0});
    };
}

dev::Northbridge::Machine northbridge_view(const SystemConfig &config, const std::vector<dev::Firmware::Memory> &memory,
                                           Addr hole) {
    dev::Northbridge::Machine m;
    m.nodes = config.chips;
    m.cores = config.cores;
    m.cores_per_node = config.cores_per_chip;
    m.memory = memory;
    m.hole = hole;
    for (unsigned a = 0; a < config.chips; ++a)
        for (unsigned b = a + 1; b < config.chips; ++b)
            if (config.hops[a][b] == 1)
                m.links.emplace_back(a, b);
    return m;
}

} // namespace

Board::Devices::Devices(Board &board, const std::vector<dev::Firmware::Memory> &memory)
    : apics(make_apics(board, bus)),
      io_apic(bus, kIoApicId),
      pic(*apics[0], 0),
      isa(pic, io_apic),
      pit(board.queue, board, isa, dev::Pit::kIrq),
      hpet(board.queue, board, isa, io_apic),
      rtc(board.queue, board, isa, dev::Rtc::kIrq),
      pm(board.queue, board, isa, dev::AcpiPm::kSci, on_power(board)),
      reset(on_power(board)),
      uart(board.queue, board, isa, dev::Uart16550::kIrq,
           [&board](std::uint8_t c) { board.console_written(static_cast<char>(c)); }),
      exit_port([&board](std::uint32_t v) {
          board.end({"exit", "exit port", static_cast<int>(v & 0xff)});
      }),
      debug_console([&board](std::uint8_t c) { board.console_written(static_cast<char>(c)); }),
      pci("pci", {}, io_apic),
      dma(board.queue, board.phys,
          [&board](PhysAddr a, std::uint64_t size) { board.blocks.front()->written_range(a, size); }),
      entropy("entropy", board.config.seed, dma, bus) {
    bus.attach(static_cast<dev::ExtIntController &>(pic));
    for (const auto &a : apics)
        lapics.add(*a);
    const dev::Northbridge::Machine view = northbridge_view(board.config, memory, board.phys.hole);
    for (unsigned n = 0; n < board.config.chips; ++n)
        northbridges.push_back(std::make_unique<dev::Northbridge>(n, view, pci));
    pci.add(kEntropyDevice, 0, entropy);
    if (!board.config.disk.empty()) {
        image = std::make_unique<dev::DiskImage>(board.config.disk);
        dev::VirtioBlk::Parameters p;
        p.read_only = board.config.disk_read_only;
        disk = std::make_unique<dev::VirtioBlk>("disk", p, *image, dma, bus, board.queue, board);
        pci.add(kDiskDevice, 0, *disk);
    }
}

void Board::Devices::map(Board &board, dev::AddressSpace &mmio, dev::AddressSpace &ports) {
    (void)board;
    mmio.map(dev::LocalApic::kBase, dev::LocalApic::kSize, lapics, 0);
    mmio.map(dev::IoApic::kBase, dev::IoApic::kSize, io_apic, 0);
    mmio.map(dev::Hpet::kBase, dev::Hpet::kSize, hpet, 0);
    ports.map(dev::PicPair::kMasterPort, dev::PicPair::kSize, pic, 0);
    ports.map(dev::PicPair::kSlavePort, dev::PicPair::kSize, pic, 1);
    ports.map(dev::PicPair::kElcrPort, dev::PicPair::kSize, pic, 2);
    ports.map(dev::Pit::kPort, dev::Pit::kSize, pit, 0);
    ports.map(dev::Pit::kControlPort, 1, pit, 1);
    ports.map(dev::Rtc::kPort, dev::Rtc::kSize, rtc, 0);
    ports.map(dev::AcpiPm::kPort, dev::AcpiPm::kSize, pm, 0);
    ports.map(dev::ResetControl::kControllerPort, 1, reset, 1);
    ports.map(dev::ResetControl::kSystemPortA, 1, reset, 2);
    ports.map(dev::Uart16550::kPort, dev::Uart16550::kSize, uart, 0);
    ports.map(dev::ExitPort::kPort, dev::ExitPort::kSize, exit_port, 0);
    ports.map(dev::DebugConsole::kPort, dev::DebugConsole::kSize, debug_console, 0);
    pci.map(ports, mmio);
    pci.route_cf9(reset, 0);
    all = {&lapics, &io_apic, &pic, &pit, &hpet, &rtc, &pm, &reset, &uart, &exit_port, &debug_console, &pci};
    for (dev::Device *d : all)
        d->reset();
}

} // namespace moscope
