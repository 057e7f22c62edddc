// SPDX-License-Identifier: BSD-3-Clause
// PCI: both configuration mechanisms, sizing and decoding of base addresses, INTx, what firmware assigns, and the
// northbridge's registers as an operating system reads them.
#include <map>

#include <gtest/gtest.h>

#include "base/error.hh"
#include "base/rng.hh"
#include "dev/firmware/acpi.hh"
#include "dev/pci/northbridge.hh"
#include "dev/pci/pci_host.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

struct Lines final : IrqLine {
    std::map<unsigned, bool> level;
    unsigned changes = 0;
    void set_irq(unsigned input, bool l) override {
        level[input] = l;
        ++changes;
    }
};

/// A function with a 4-KiB and a 64-bit 64-KiB range, whose registers answer with their offset.
struct Card final : PciFunction {
    explicit Card(std::string name)
        : PciFunction(std::move(name), {.vendor = 0x1af4, .device = 0x1234, .class_code = 0xff0000}) {
        add_bar(0, 0x1000, false);
        add_bar(2, 0x10000, true);
        use_intx();
    }
    std::uint64_t read_bar(Requester, unsigned bar, Addr offset, unsigned) override { return bar << 28 | offset; }
    void write_bar(Requester, unsigned bar, Addr offset, std::uint64_t value, unsigned) override {
        written[bar << 28 | offset] = value;
    }
    using PciFunction::set_intx;
    std::map<std::uint64_t, std::uint64_t> written;
};

struct Board {
    Lines lines;
    AddressSpace ports, memory;
    PciHost host{"pci", {}, lines};
    Card card{"card"};
    explicit Board(bool with_card = true) {
        if (with_card)
            host.add(4, 0, card);
        host.map(ports, memory);
        host.reset();
    }
    std::uint32_t cf8(unsigned device, unsigned function, unsigned reg, unsigned size = 4) {
        ports.write(0, 0xcf8, 0x80000000u | device << 11 | function << 8 | (reg & 0xfc) | (reg & 0xf00) << 16, 4);
        return static_cast<std::uint32_t>(ports.read(0, 0xcfc + (reg & 3), size));
    }
    void cf8_write(unsigned device, unsigned function, unsigned reg, std::uint32_t value, unsigned size = 4) {
        ports.write(0, 0xcf8, 0x80000000u | device << 11 | function << 8 | (reg & 0xfc), 4);
        ports.write(0, 0xcfc + (reg & 3), value, size);
    }
    Addr ecam(unsigned device, unsigned function, unsigned reg) {
        return host.parameters().ecam + (device << 15 | function << 12 | reg);
    }
};

} // namespace

TEST(PciConfig, BothMechanismsReachTheSameRegisters) {
    Board b;
    EXPECT_EQ(b.cf8(4, 0, 0), 0x12341af4u);
    EXPECT_EQ(b.memory.read(0, b.ecam(4, 0, 0), 4), 0x12341af4u);
    EXPECT_EQ(b.cf8(4, 0, 2, 2), 0x1234u);
    EXPECT_EQ(b.cf8(0, 0, 8), 0x06000002u); // the host bridge
    b.memory.write(0, b.ecam(4, 0, pci::kInterruptLine), 0x55, 1);
    EXPECT_EQ(b.cf8(4, 0, pci::kInterruptLine, 1), 0x55u);
}

TEST(PciConfig, AbsentFunctionsReadAsOnes) {
    Board b;
    EXPECT_EQ(b.cf8(5, 0, 0), 0xffffffffu);
    EXPECT_EQ(b.cf8(4, 1, 0), 0xffffffffu);
    EXPECT_EQ(b.memory.read(0, b.ecam(5, 0, 0), 4), 0xffffffffu);
    EXPECT_EQ(b.memory.read(0, b.host.parameters().ecam + (1 << 20), 4), 0xffffffffu); // bus 1
    EXPECT_EQ(b.memory.read(0, b.ecam(4, 0, 0x100), 4), 0xffffffffu);                  // no extended space
    b.ports.write(0, 0xcf8, 0, 4);
    EXPECT_EQ(b.ports.read(0, 0xcfc, 4), 0xffffffffu); // enable bit off
}

TEST(PciConfig, ProbeOfMechanismOneReadsBackItsAddress) {
    Board b;
    b.ports.write(0, 0xcf8, 0x80000000u, 4);
    EXPECT_EQ(b.ports.read(0, 0xcf8, 4), 0x80000000u);
}

TEST(PciConfig, ReadOnlyRegistersStay) {
    Board b;
    b.cf8_write(4, 0, 0, 0);
    b.cf8_write(4, 0, pci::kStatus, 0xffff, 2);
    EXPECT_EQ(b.cf8(4, 0, 0), 0x12341af4u);
    EXPECT_EQ(b.cf8(4, 0, pci::kStatus, 2) & pci::kIntxPending, 0u);
}

TEST(PciBar, SizingAnswersWithTheMask) {
    Board b;
    b.cf8_write(4, 0, 0x10, 0xffffffff);
    EXPECT_EQ(b.cf8(4, 0, 0x10), 0xfffff000u);
    b.cf8_write(4, 0, 0x18, 0xffffffff);
    b.cf8_write(4, 0, 0x1c, 0xffffffff);
    EXPECT_EQ(b.cf8(4, 0, 0x18), 0xffff000cu);
    EXPECT_EQ(b.cf8(4, 0, 0x1c), 0xffffffffu);
    b.cf8_write(4, 0, 0x14, 0xffffffff);
    EXPECT_EQ(b.cf8(4, 0, 0x14), 0u); // unused
}

TEST(PciBar, FirmwareAssignsAlignedRangesThatDecode) {
    Board b;
    const Addr big = b.cf8(4, 0, 0x18) & ~15u, small = b.cf8(4, 0, 0x10) & ~15u;
    EXPECT_EQ(big % 0x10000, 0u);
    EXPECT_EQ(b.memory.read(0, big + 0x123, 1), 0x23u);
    EXPECT_EQ(b.memory.read(0, small + 8, 4), 8u);
    b.memory.write(0, small + 0x10, 77, 4);
    EXPECT_EQ(b.card.written.at(0x10), 77u);
    EXPECT_EQ(b.memory.read(0, big + 0x10000, 4), small == big + 0x10000 ? 0u : 0xffffffffu);
    EXPECT_EQ(b.memory.read(0, small + 0xffe, 4), 0xffffffffu); // across the end
}

TEST(PciBar, MovesAndTurnsOff) {
    Board b;
    const Addr window = b.host.parameters().window;
    b.cf8_write(4, 0, 0x10, static_cast<std::uint32_t>(window + 0x800000));
    EXPECT_EQ(b.memory.read(0, window + 0x800004, 4), 4u);
    b.cf8_write(4, 0, pci::kCommand, 0, 2);
    EXPECT_EQ(b.memory.read(0, window + 0x800004, 4), 0xffffffffu);
}

TEST(PciIntx, IsSharedAndCanBeDisabled) {
    Board b(false);
    Card one("one"), two("two");
    b.host.add(4, 0, one);
    b.host.add(8, 0, two); // the same input: devices 4 apart
    const unsigned input = b.host.gsi(4, 1);
    EXPECT_EQ(input, b.host.gsi(8, 1));
    one.set_intx(true);
    two.set_intx(true);
    EXPECT_TRUE(b.lines.level[input]);
    EXPECT_TRUE(b.cf8(4, 0, pci::kStatus, 2) & pci::kIntxPending);
    one.set_intx(false);
    EXPECT_TRUE(b.lines.level[input]);
    b.cf8_write(8, 0, pci::kCommand, pci::kNoIntx, 2);
    EXPECT_FALSE(b.lines.level[input]);
    b.cf8_write(8, 0, pci::kCommand, 0, 2);
    EXPECT_TRUE(b.lines.level[input]);
    two.set_intx(false);
    EXPECT_FALSE(b.lines.level[input]);
    EXPECT_EQ(b.lines.changes, 4u);
}

TEST(PciHost, TwoFunctionsInOnePlaceAreAUserError) {
    Board b;
    Card other("other");
    EXPECT_THROW(b.host.add(4, 0, other), UserError);
}

TEST(PciHost, PortCf9AmongItsPortsBelongsToTheResetControl) {
    struct Reset final : Device {
        Reset() : Device("reset") {}
        std::uint64_t read(Requester, unsigned, Addr, unsigned) override { return 0xa; }
        void write(Requester, unsigned range, Addr, std::uint64_t value, unsigned) override {
            got = range << 8 | value;
        }
        void archive(Archive &) override {}
        std::uint64_t got = 0;
    } reset;
    Board b;
    b.host.route_cf9(reset, 3);
    b.ports.write(0, 0xcf9, 6, 1);
    EXPECT_EQ(reset.got, 0x306u);
    EXPECT_EQ(b.ports.read(0, 0xcf9, 1), 0xau);
}

TEST(PciHost, StateSurvivesACheckpoint) {
    Board b, c;
    b.cf8_write(4, 0, 0x10, static_cast<std::uint32_t>(b.host.parameters().window + 0x900000));
    b.card.set_intx(true);
    b.cf8(4, 0, 0x3c);
    Archive save;
    b.host.archive(save);
    Archive load(save.bytes());
    c.host.archive(load);
    EXPECT_TRUE(load.at_end());
    EXPECT_EQ(c.memory.read(0, c.host.parameters().window + 0x900004, 4), 4u);
    EXPECT_EQ(c.ports.read(0, 0xcf8, 4), b.ports.read(0, 0xcf8, 4));
    EXPECT_TRUE(c.card.intx());
}

TEST(PciHost, DescribesItselfToFirmware) {
    Board b;
    Firmware f;
    b.host.describe(f);
    EXPECT_EQ(f.ecam.size(), 1u);
    EXPECT_EQ(f.devices.size(), 2u);
    EXPECT_NO_THROW(build_acpi(f, 0xf0000));
}

TEST(PciHost, RandomAccessesDoNoHarm) {
    Board b;
    Rng rng(7);
    for (unsigned i = 0; i < 10000000; ++i) {
        const unsigned size = 1u << rng.below(4);
        const std::uint64_t value = rng.next();
        switch (rng.below(4)) {
        case 0: b.ports.write(0, 0xcf8 + rng.below(8), value, std::min(size, 4u)); break;
        case 1: b.ports.read(0, 0xcf8 + rng.below(8), std::min(size, 4u)); break;
        case 2:
            b.memory.write(0, b.ecam(rng.below(2) ? 4 : 0, 0, static_cast<unsigned>(rng.below(4096))), value, size);
            break;
        default: b.memory.read(0, b.host.parameters().window + rng.below(0x20000), size);
        }
    }
}

// --- northbridge
// --------------------------------------------------------------------------------------------------------

namespace {

Northbridge::Machine eight_nodes() {
    Northbridge::Machine m;
    m.nodes = 8;
    m.cores = 48;
    m.hole = 0xc0000000;
    m.links = {{0, 1}, {0, 2}, {1, 3}, {2, 4}, {2, 5}, {3, 4}, {3, 5}, {4, 6}, {5, 7}, {6, 7}};
    for (unsigned n = 0; n < 8; ++n) {
        const Addr base = n == 0 ? 0 : (Addr{n} << 33) + 0x40000000;
        if (n == 0)
            m.memory.push_back({0, 0, m.hole});
        m.memory.push_back({n, n == 0 ? Addr{1} << 32 : base, n == 0 ? (Addr{8} << 30) - m.hole : Addr{8} << 30});
    }
    return m;
}

} // namespace

TEST(Northbridge, EveryNodeShowsItsNumberAndTheMachine) {
    Board b;
    std::vector<std::unique_ptr<Northbridge>> nodes;
    for (unsigned n = 0; n < 8; ++n)
        nodes.push_back(std::make_unique<Northbridge>(n, eight_nodes(), b.host));
    for (unsigned n = 0; n < 8; ++n) {
        for (unsigned f = 0; f < 5; ++f)
            EXPECT_EQ(b.cf8(0x18 + n, f, 0), 0x1022u | (0x1200 + f) << 16);
        EXPECT_EQ(b.cf8(0x18 + n, 5, 0), 0xffffffffu);
        EXPECT_TRUE(b.cf8(0x18 + n, 0, 0xc) & 0x800000); // several functions
        const std::uint32_t id = b.cf8(0x18 + n, 0, 0x60);
        EXPECT_EQ(id & 7, n);
        EXPECT_EQ(id >> 4 & 7, 7u);
        EXPECT_EQ((id >> 16 & 31) | (b.cf8(0x18 + n, 0, 0x160) >> 16 & 7) << 5, 47u);
        EXPECT_EQ(b.cf8(0x18 + n, 3, 0xe8) >> 12 & 9, 9u); // six cores: CmpCap 5 in bits 15, 13:12
    }
}

TEST(Northbridge, AddressMapCoversDramWithItsHoist) {
    Board b;
    const auto m = eight_nodes();
    const Northbridge n0(0, m, b.host), n1(1, m, b.host);
    EXPECT_EQ(b.cf8(0x18, 1, 0x40), 3u);
    EXPECT_EQ(b.cf8(0x18, 1, 0x44), 0x023f0000u); // node 0 ends at 9 GiB
    EXPECT_EQ(b.cf8(0x18, 1, 0x48), 0x02400003u);
    EXPECT_EQ(b.cf8(0x18, 1, 0x7c), 0x103f0007u); // node 7 ends at 65 GiB
    EXPECT_EQ(b.cf8(0x18, 1, 0xf0), 0xc0004003u); // hole of 1 GiB at C0000000h
    EXPECT_EQ(b.cf8(0x19, 1, 0xf0), 0u);
    EXPECT_EQ(b.cf8(0x19, 1, 0x120), 0x240000000u >> 27);
    EXPECT_EQ(b.cf8(0x18, 1, 0xe0) & 7, 3u);
}

TEST(Northbridge, RoutesFollowTheLadder) {
    Board b;
    const auto m = eight_nodes();
    const Northbridge n0(0, m, b.host);
    EXPECT_EQ(b.cf8(0x18, 0, 0x40) & 0x1ff, 1u);       // self
    EXPECT_EQ(b.cf8(0x18, 0, 0x44) & 0x1ff, 2u);       // node 1 on link 0
    EXPECT_EQ(b.cf8(0x18, 0, 0x48) & 0x1ff, 4u);       // node 2 on link 1
    EXPECT_EQ(b.cf8(0x18, 0, 0x44) >> 18 & 0x1ff, 5u); // what node 1 broadcasts goes on to node 2
    EXPECT_EQ(b.cf8(0x18, 0, 0x98), 3u);               // coherent
    EXPECT_EQ(b.cf8(0x18, 0, 0xd8), 7u);               // to the I/O hub
    EXPECT_EQ(b.cf8(0x18, 0, 0xf8), 0u);               // nothing there
}

TEST(Northbridge, HyperTransportCapabilitiesAreAList) {
    Board b;
    const Northbridge n0(0, eight_nodes(), b.host);
    unsigned at = b.cf8(0x18, 0, pci::kCapabilities, 1), found = 0;
    for (; at != 0 && found < 48; ++found, at = b.cf8(0x18, 0, at + 1, 1))
        EXPECT_EQ(b.cf8(0x18, 0, at, 1), 8u);
    EXPECT_EQ(found, Northbridge::kLinks);
}

TEST(Northbridge, GartCacheInvalidateCompletes) {
    Board b;
    const Northbridge n0(0, eight_nodes(), b.host);
    b.cf8_write(0x18, 3, 0x9c, 0x11);
    EXPECT_EQ(b.cf8(0x18, 3, 0x9c), 0x10u);
}

TEST(Northbridge, MoreThanEightNodesAreAUserError) {
    Board b;
    auto m = eight_nodes();
    m.nodes = 9;
    EXPECT_THROW(Northbridge(0, m, b.host), UserError);
    m.nodes = 8;
    m.links.push_back({3, 8});
    EXPECT_THROW(Northbridge(0, m, b.host), UserError);
}
