// SPDX-License-Identifier: BSD-3-Clause
// The IO-APIC between wires and local APICs: edges, levels and their end, masks, and both versions' registers.
#include <gtest/gtest.h>

#include "dev/firmware/firmware.hh"
#include "dev/harness.hh"
#include "dev/interrupts/ioapic.hh"
#include "dev/interrupts/isa_interrupts.hh"
#include "dev/interrupts/lapic.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

constexpr std::uint32_t kLevel = 0x8000, kMasked = 0x10000, kRemoteIrr = 0x4000;

struct IoApicTest : testing::Test {
    EventQueue queue;
    TestTime time{queue};
    ApicBus bus;
    std::array<CoreSignals, 2> signals{};
    LocalApic core0{queue, time, bus, signals[0], 0, true};
    LocalApic core1{queue, time, bus, signals[1], 1, false};
    IoApic io{bus, 0x40};

    IoApicTest() {
        core0.write(0xF0, 0x1FF);
        core1.write(0xF0, 0x1FF);
    }
    static std::uint32_t get(IoApic &a, unsigned index) {
        a.write(0, 0, 0, index, 4);
        return static_cast<std::uint32_t>(a.read(0, 0, 0x10, 4));
    }
    static void set(IoApic &a, unsigned index, std::uint32_t v) {
        a.write(0, 0, 0, index, 4);
        a.write(0, 0, 0x10, v, 4);
    }
    void entry(unsigned input, unsigned destination, std::uint32_t low) {
        set(io, 0x11 + 2 * input, destination << 24);
        set(io, 0x10 + 2 * input, low);
    }
    std::uint32_t low(unsigned input) { return get(io, 0x10 + 2 * input); }
    /// Takes the pending interrupt of core 0 and ends it.
    int serve() {
        const int v = core0.acknowledge();
        core0.write(0xB0, 0);
        return v;
    }
};

TEST_F(IoApicTest, SaysWhatItIs) {
    EXPECT_EQ(get(io, 0), 0x40000000u);
    EXPECT_EQ(get(io, 1), 0x00178021u);
    IoApic old(bus, 2, 0x11);
    EXPECT_EQ(get(old, 1), 0x00170011u);
    EXPECT_EQ(get(io, 0x10), kMasked);
    EXPECT_EQ(get(io, 0x40), 0u); // beyond the table
}

TEST_F(IoApicTest, AnEdgeIsSentOnceAtItsRise) {
    entry(4, 1, 0x34);
    io.set_irq(4, true);
    EXPECT_EQ(core1.acknowledge(), 0x34);
    io.set_irq(4, true);
    EXPECT_EQ(core1.acknowledge(), -1);
    core1.write(0xB0, 0);
    io.set_irq(4, false);
    EXPECT_EQ(core1.acknowledge(), -1);
    io.set_irq(4, true);
    EXPECT_EQ(core1.acknowledge(), 0x34);
}

TEST_F(IoApicTest, AnEdgeAtAMaskedInputIsLost) {
    entry(4, 0, 0x34 | kMasked);
    io.set_irq(4, true);
    entry(4, 0, 0x34);
    EXPECT_EQ(core0.acknowledge(), -1);
}

TEST_F(IoApicTest, ALevelIsSentAgainAfterItsEndWhileTheWireIsUp) {
    entry(17, 0, 0x51 | kLevel);
    io.set_irq(17, true);
    EXPECT_EQ(low(17), 0x51 | kLevel | kRemoteIrr);
    EXPECT_EQ(serve(), 0x51);
    EXPECT_EQ(low(17), 0x51 | kLevel | kRemoteIrr); // again
    EXPECT_EQ(core0.acknowledge(), 0x51);
    io.set_irq(17, false);
    core0.write(0xB0, 0);
    EXPECT_EQ(low(17), 0x51 | kLevel);
    EXPECT_EQ(core0.acknowledge(), -1);
}

TEST_F(IoApicTest, ALevelInServiceIsNotSentASecondTime) {
    entry(17, 0, 0x51 | kLevel);
    io.set_irq(17, true);
    EXPECT_EQ(core0.acknowledge(), 0x51);
    io.set_irq(17, true);
    io.set_irq(17, false);
    io.set_irq(17, true);
    EXPECT_EQ(core0.read(0x220), 0u); // nothing requested until it has ended
    core0.write(0xB0, 0);
    EXPECT_EQ(core0.read(0x220), 1u << 17);
}

TEST_F(IoApicTest, AMaskedLevelComesWhenItIsUnmasked) {
    entry(17, 0, 0x51 | kLevel | kMasked);
    io.set_irq(17, true);
    EXPECT_EQ(core0.acknowledge(), -1);
    entry(17, 0, 0x51 | kLevel);
    EXPECT_EQ(core0.acknowledge(), 0x51);
}

TEST_F(IoApicTest, ALevelThatNoApicAcceptsIsNotInService) {
    entry(17, 9, 0x51 | kLevel);
    io.set_irq(17, true);
    EXPECT_EQ(low(17) & kRemoteIrr, 0u);
    set(io, 0x11 + 34, 0);
    EXPECT_EQ(core0.acknowledge(), 0x51); // to a core that is there
}

TEST_F(IoApicTest, TheEoiRegisterAndASwitchToEdgeAndBackClearRemoteIrr) {
    entry(17, 0, 0x51 | kLevel);
    io.set_irq(17, true);
    io.set_irq(17, false);
    io.write(0, 0, 0x40, 0x51, 4);
    EXPECT_EQ(low(17) & kRemoteIrr, 0u);
    io.set_irq(17, true);
    EXPECT_EQ(low(17) & kRemoteIrr, kRemoteIrr);
    set(io, 0x10 + 34, 0x51 | kMasked);          // as an edge
    set(io, 0x10 + 34, 0x51 | kLevel | kMasked); // and back
    EXPECT_EQ(low(17) & kRemoteIrr, 0u);
    IoApic old(bus, 2, 0x11);
    set(old, 0x10, 0x52 | kLevel);
    old.set_irq(0, true);
    old.write(0, 0, 0x40, 0x52, 4); // no such register there
    EXPECT_EQ(get(old, 0x10) & kRemoteIrr, kRemoteIrr);
}

TEST_F(IoApicTest, RemoteIrrAndDeliveryStatusAreReadOnly) {
    set(io, 0x10, 0xFFFFFFFF);
    EXPECT_EQ(get(io, 0x10), 0x0001AFFFu);
    set(io, 0x11, 0xFFFFFFFF);
    EXPECT_EQ(get(io, 0x11), 0xFF000000u);
}

TEST_F(IoApicTest, NmiAndExtIntTravelAsSuch) {
    entry(0, 1, 0x700);
    io.set_irq(0, true);
    EXPECT_TRUE(signals[1].pending & CoreSignals::intr);
    entry(1, 1, 0x400);
    io.set_irq(1, true);
    EXPECT_TRUE(signals[1].pending & CoreSignals::nmi);
}

TEST_F(IoApicTest, TheIsaTimerIsAtInputTwoAndReplacementCutsThePitOff) {
    Wires pic;
    IsaInterrupts isa(pic, io);
    entry(2, 0, 0x30);
    isa.set_irq(0, true);
    EXPECT_TRUE(pic.now[0]);
    EXPECT_EQ(serve(), 0x30);
    isa.set_replaced(true);
    EXPECT_FALSE(pic.now[0]);
    isa.set_irq(0, false);
    isa.set_irq(0, true);
    EXPECT_EQ(core0.acknowledge(), -1);
    isa.set_replacement_irq(0, true);
    EXPECT_EQ(serve(), 0x30);
    isa.set_replacement_irq(0, false);
    isa.set_replaced(false);
    EXPECT_TRUE(pic.now[0]); // what the PIT holds up
    isa.set_irq(99, true);
}

TEST_F(IoApicTest, TheFirmwareTablesNameItsAddressAndTheTimersInput) {
    Firmware f;
    io.describe(f);
    ASSERT_EQ(f.io_apics.size(), 1u);
    EXPECT_EQ(f.io_apics[0].id, 0x40);
    EXPECT_EQ(f.io_apics[0].address, 0xFEC00000u);
    ASSERT_EQ(f.overrides.size(), 1u);
    EXPECT_EQ(f.overrides[0].gsi, 2u);
}

TEST_F(IoApicTest, ACheckpointKeepsWhatIsInService) {
    entry(17, 0, 0x51 | kLevel);
    io.set_irq(17, true);
    ApicBus bus2;
    IoApic other(bus2, 1);
    resume(other, io);
    EXPECT_EQ(get(other, 0x10 + 34), 0x51 | kLevel | kRemoteIrr);
}

TEST_F(IoApicTest, NoAccessWhateverItIsHurtsTheSimulator) {
    const auto draw = [](Rng &r) {
        const Addr offset = r.below(3) ? r.below(2) * 0x10 : r.below(0x1000);
        return RandomAccess{0, offset, offset == 0 ? r.below(256) : r.below(1ull << 32)};
    };
    access_at_random(io, 4, 200000, draw, [this](Rng &r) {
        io.set_irq(static_cast<unsigned>(r.below(30)), r.below(2));
        if (r.below(4) == 0)
            serve();
    });
}

} // namespace
