// SPDX-License-Identifier: BSD-3-Clause
// A machine without cores for tests: every registered device, wired as on the board, in simulated time that the test
// sets.
#pragma once

#include <string>
#include <vector>

#include "dev/devices.hh"
#include "dev/harness.hh"
#include "dev/interrupts/lapic.hh"

namespace moscope::dev {

/// One chip with a few cores and 1 MiB of DRAM.
struct TestMachine {
    static constexpr unsigned kCores = 4;
    static constexpr std::uint64_t kBytes = 1 << 20;

    EventQueue queue;
    TestTime time{queue};
    AddressSpace memory, ports; ///< registers, by physical address and by port
    ApicBus bus;
    std::vector<CoreSignals> signals{kCores};
    std::vector<std::byte> bytes{kBytes};
    PhysMap map{bytes.data(), kBytes};
    PhysMapDma dma{map};
    std::vector<PowerEvent> power; ///< what devices asked of the power supply
    std::string printed;           ///< on the console
    Devices devices{queue, time, memory, ports, bus, facts()};

    TestMachine() {
        devices.dma = [this]() -> Dma & { return dma; };
        devices.on_power = [this](PowerEvent e) { power.push_back(e); };
        devices.console_output = [this](std::uint8_t c) { printed.push_back(static_cast<char>(c)); };
        devices.make_all();
    }
    /// The device of this name, which has to be there.
    template <class D> D &get(std::string_view name) {
        Device *found = devices.find(name);
        MOSCOPE_CHECK(found != nullptr);
        return dynamic_cast<D &>(*found);
    }
    LocalApic &apic(unsigned core) { return *bus.apics()[core]; }
    /// Whether the slave 8259 has a request of an ISA wire (8 to 15): its request register, which latches rising edges.
    bool isa_pending(unsigned wire) { return (ports.read(kNoCore, 0xA0, 1) >> (wire - 8)) & 1; }
    void archive(Archive &a) {
        for (CoreSignals &s : signals)
            a(s);
        devices.archive(a);
    }

  private:
    MachineFacts facts() {
        MachineFacts f;
        for (unsigned i = 0; i < kCores; ++i)
            f.cores.push_back({&signals[i], static_cast<std::uint8_t>(i)});
        f.cores_per_chip = kCores;
        f.memory = {{0, 0, kBytes}};
        f.hops = {{0}};
        return f;
    }
};

} // namespace moscope::dev
