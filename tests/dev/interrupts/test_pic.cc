// SPDX-License-Identifier: BSD-3-Clause
// The 8259 pair: initialisation, priorities and rotation, edges and levels, the cascade, and a timer interrupt through
// LINT0 as in virtual-wire mode.
#include <gtest/gtest.h>

#include "dev/harness.hh"
#include "dev/interrupts/lapic.hh"
#include "dev/interrupts/pic.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

struct PicTest : testing::Test {
    Wires wires;
    PicPair pic{wires, 0};

    void out(unsigned port, unsigned v) {
        if (port >= 0x4D0)
            pic.write(0, 2, port - 0x4D0, v, 1);
        else
            pic.write(0, port >= 0xA0, port & 1, v, 1);
    }
    unsigned in(unsigned port) {
        return static_cast<unsigned>(port >= 0x4D0 ? pic.read(0, 2, port - 0x4D0, 1)
                                                   : pic.read(0, port >= 0xA0, port & 1, 1));
    }
    bool intr() { return wires.now[0]; }
    int take() { return pic.acknowledge_ext_int(); }
    void init(unsigned icw4 = 1) {
        out(0x20, 0x11);
        out(0x21, 0x30);
        out(0x21, 0x04);
        out(0x21, icw4);
        out(0xA0, 0x11);
        out(0xA1, 0x38);
        out(0xA1, 0x02);
        out(0xA1, icw4);
    }
    PicTest() { init(); }
};

TEST_F(PicTest, NothingGetsThroughBeforeItIsInitialised) {
    Wires w;
    PicPair fresh(w, 0);
    fresh.set_irq(0, true);
    EXPECT_FALSE(w.now[0]);
}

TEST_F(PicTest, AnEdgeIsRequestedServedAndEnded) {
    pic.set_irq(1, true);
    EXPECT_TRUE(intr());
    EXPECT_EQ(in(0x20), 2u);
    EXPECT_EQ(take(), 0x31);
    EXPECT_FALSE(intr());
    EXPECT_EQ(in(0x20), 0u);
    out(0x20, 0x0B);
    EXPECT_EQ(in(0x20), 2u); // in service
    out(0x20, 0x20);
    EXPECT_EQ(in(0x20), 0u);
    EXPECT_FALSE(intr()); // the wire is still up
}

TEST_F(PicTest, MasksHoldBackAndAreReadBack) {
    out(0x21, 0xFD);
    EXPECT_EQ(in(0x21), 0xFDu);
    pic.set_irq(0, true);
    EXPECT_FALSE(intr());
    out(0x21, 0xFC);
    EXPECT_TRUE(intr());
}

TEST_F(PicTest, AHigherPriorityInterruptsALowerOneAndNotTheOtherWay) {
    pic.set_irq(3, true);
    EXPECT_EQ(take(), 0x33);
    pic.set_irq(4, true);
    EXPECT_FALSE(intr());
    pic.set_irq(1, true);
    EXPECT_TRUE(intr());
    EXPECT_EQ(take(), 0x31);
    out(0x20, 0x61); // specific end
    EXPECT_FALSE(intr());
    out(0x20, 0x63);
    EXPECT_TRUE(intr());
    EXPECT_EQ(take(), 0x34);
}

TEST_F(PicTest, TheSlaveComesThroughTheCascade) {
    pic.set_irq(8, true);
    pic.set_irq(12, true);
    EXPECT_EQ(take(), 0x38);
    EXPECT_FALSE(intr());
    out(0xA0, 0x20);
    EXPECT_FALSE(intr()); // the master still serves its cascade
    out(0x20, 0x20);
    EXPECT_TRUE(intr());
    EXPECT_EQ(take(), 0x3C);
}

TEST_F(PicTest, AHigherRequestOfTheSlaveDuringServiceNeedsSpecialNesting) {
    init(0x11);
    pic.set_irq(12, true);
    EXPECT_EQ(take(), 0x3C);
    pic.set_irq(8, true);
    EXPECT_TRUE(intr());
    EXPECT_EQ(take(), 0x38);
}

TEST_F(PicTest, ALevelInputAsksAgainAsLongAsItsWireIsUp) {
    out(0x4D1, 0xFF);
    EXPECT_EQ(in(0x4D1), 0xDEu);
    out(0x4D0, 0xFF);
    EXPECT_EQ(in(0x4D0), 0xF8u);
    pic.set_irq(11, true);
    EXPECT_EQ(take(), 0x3B);
    out(0xA0, 0x20);
    out(0x20, 0x20);
    EXPECT_TRUE(intr());
    pic.set_irq(11, false);
    EXPECT_FALSE(intr());
}

TEST_F(PicTest, AnInputThatBecomesALevelFollowsItsWire) {
    pic.set_irq(9, true);
    pic.set_irq(9, false);
    EXPECT_TRUE(intr()) << "the edge is latched";
    out(0x4D1, 0x02);
    EXPECT_FALSE(intr());
    out(0x4D1, 0x00);
    pic.set_irq(9, true);
    EXPECT_EQ(take(), 0x39);
    out(0xA0, 0x20);
    out(0x20, 0x20);
    EXPECT_FALSE(intr());
    out(0x4D1, 0x02);
    EXPECT_TRUE(intr());
}

TEST_F(PicTest, AnAcknowledgeWithoutARequestIsSpurious) {
    EXPECT_EQ(take(), 0x37);
    out(0x20, 0x0B);
    EXPECT_EQ(in(0x20), 0u);
}

TEST_F(PicTest, RotationMakesTheOneServedTheLowest) {
    pic.set_irq(0, true);
    pic.set_irq(5, true);
    EXPECT_EQ(take(), 0x30);
    out(0x20, 0xA0); // end and rotate
    EXPECT_EQ(take(), 0x35);
    pic.set_irq(0, false);
    pic.set_irq(0, true);
    EXPECT_FALSE(intr()); // 0 ranks behind 5 now
    out(0x20, 0x20);
    EXPECT_TRUE(intr());
}

TEST_F(PicTest, AutomaticEndLeavesNothingInService) {
    init(3);
    pic.set_irq(5, true);
    EXPECT_EQ(take(), 0x35);
    pic.set_irq(6, true);
    EXPECT_TRUE(intr());
}

TEST_F(PicTest, SpecialMaskModeLetsLowerOnesThroughAMaskedService) {
    pic.set_irq(1, true);
    take();
    out(0x21, 0x02);
    pic.set_irq(5, true);
    EXPECT_FALSE(intr());
    out(0x20, 0x68);
    EXPECT_TRUE(intr());
}

TEST_F(PicTest, PollingTakesTheHighestRequest) {
    pic.set_irq(6, true);
    out(0x20, 0x0C);
    EXPECT_EQ(in(0x20), 0x86u);
    out(0x20, 0x0C);
    EXPECT_EQ(in(0x20), 0u);
}

TEST_F(PicTest, ATimerInterruptGoesThroughLint0) {
    EventQueue queue;
    TestTime time(queue);
    ApicBus bus;
    CoreSignals signals;
    LocalApic lapic(queue, time, bus, signals, 0, true);
    PicPair wired(lapic, 0);
    bus.attach(wired);
    for (const auto &[offset, v] : {std::pair<Addr, unsigned>{0, 0x11}, {1, 0x30}, {1, 4}, {1, 1}, {1, 0xFE}})
        wired.write(0, 0, offset, v, 1);
    lapic.write(0xF0, 0x1FF);
    lapic.write(0x350, 0x700);
    wired.set_irq(0, true);
    EXPECT_TRUE(signals.pending & CoreSignals::intr);
    EXPECT_EQ(lapic.acknowledge(), 0x30);
    EXPECT_FALSE(signals.pending & CoreSignals::intr);
    wired.set_irq(0, false);
    wired.set_irq(0, true);
    EXPECT_FALSE(signals.pending & CoreSignals::intr);
    wired.write(0, 0, 0, 0x20, 1);
    EXPECT_TRUE(signals.pending & CoreSignals::intr);
}

TEST_F(PicTest, ACheckpointKeepsServiceAndRequests) {
    pic.set_irq(1, true);
    take();
    pic.set_irq(8, true);
    Wires w;
    PicPair other(w, 0);
    resume(other, pic);
    other.write(0, 0, 0, 0x20, 1);
    EXPECT_TRUE(w.now[0]);
    EXPECT_EQ(other.acknowledge_ext_int(), 0x38);
}

TEST_F(PicTest, NoAccessWhateverItIsHurtsTheSimulator) {
    access_at_random(
        pic, 8, 300000,
        [](Rng &r) {
            return RandomAccess{static_cast<unsigned>(r.below(3)), r.below(4), r.below(1ull << 32)};
        },
        [this](Rng &r) {
            pic.set_irq(static_cast<unsigned>(r.below(20)), r.below(2));
            if (r.below(4) == 0)
                take();
        });
}

} // namespace
