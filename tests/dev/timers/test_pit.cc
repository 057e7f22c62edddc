// SPDX-License-Identifier: BSD-3-Clause
// The 8254: each mode's output at each edge from both sides, latches, and port 61h as a kernel uses it to
// calibrate.
#include <gtest/gtest.h>

#include "base/rng.hh"
#include "dev/harness.hh"
#include "dev/timers/pit.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

struct PitTest : testing::Test {
    EventQueue queue;
    TestTime time{queue};
    Wires wires;
    Pit pit{queue, time, wires, 0};

    void out(unsigned port, unsigned v) { pit.write(0, 0, port - 0x40, v, 1); }
    unsigned in(unsigned port) { return static_cast<unsigned>(pit.read(0, 0, port - 0x40, 1)); }
    void out61(unsigned v) { pit.write(0, 1, 0, v, 1); }
    unsigned in61() { return static_cast<unsigned>(pit.read(0, 1, 0, 1)); }
    unsigned in16(unsigned port) {
        const unsigned low = in(port);
        return low | in(port) << 8;
    }
    /// Just at edge n, and just before.
    void edge(std::int64_t n) { time.to(kPitClock.edge(n)); }
    void before(std::int64_t n) { time.to(kPitClock.edge(n) - 1); }
    bool irq() { return wires.now[0]; }
    void program(unsigned channel, unsigned mode, unsigned count) {
        out(0x43, channel << 6 | 0x30 | mode << 1);
        out(0x40 + channel, count & 0xFF);
        out(0x40 + channel, count >> 8);
    }
};

TEST_F(PitTest, ItsClockIs1193182HzToBetterThanOnePerMillion) {
    EXPECT_NEAR(static_cast<double>(kPitClock.edge(1'193'182)), 1e15, 1e9);
}

TEST_F(PitTest, Mode0RaisesItsOutputNPlusOneEdgesAfterTheWrite) {
    edge(100);
    program(0, 0, 1000);
    EXPECT_FALSE(irq());
    before(1101);
    EXPECT_FALSE(irq());
    edge(1101);
    EXPECT_TRUE(irq());
    edge(70000);
    EXPECT_TRUE(irq());
    EXPECT_EQ(wires.rises[0], 2); // the idle level, then this one
}

TEST_F(PitTest, Mode0CountsDownAndOnBelowZero) {
    program(0, 0, 1000);
    edge(1);
    EXPECT_EQ(in16(0x40), 1000u);
    before(2);
    EXPECT_EQ(in16(0x40), 1000u);
    edge(2);
    EXPECT_EQ(in16(0x40), 999u);
    edge(1001);
    EXPECT_EQ(in16(0x40), 0u);
    edge(1002);
    EXPECT_EQ(in16(0x40), 0xFFFFu);
}

TEST_F(PitTest, Mode2IsLowForOneEdgeInN) {
    program(0, 2, 1000);
    before(1000);
    EXPECT_TRUE(irq());
    edge(1000);
    EXPECT_FALSE(irq());
    before(1001);
    EXPECT_FALSE(irq());
    edge(1001);
    EXPECT_TRUE(irq());
    edge(2000);
    EXPECT_FALSE(irq());
    const int rises = wires.rises[0];
    edge(1001 + 1000 * 500);
    EXPECT_EQ(wires.rises[0], rises + 500);
}

TEST_F(PitTest, ANewCountInMode2IsTakenAtTheEndOfThePeriod) {
    program(0, 2, 1000);
    edge(500);
    out(0x40, 100);
    out(0x40, 0);
    before(1001);
    EXPECT_FALSE(irq());
    edge(1001);
    EXPECT_TRUE(irq());
    before(1100);
    EXPECT_TRUE(irq());
    edge(1100);
    EXPECT_FALSE(irq());
    edge(1101);
    EXPECT_TRUE(irq());
    edge(1200);
    EXPECT_FALSE(irq());
}

TEST_F(PitTest, Mode3IsHighForTheLargerHalf) {
    program(0, 3, 1001);
    before(1 + 501);
    EXPECT_TRUE(irq());
    edge(1 + 501);
    EXPECT_FALSE(irq());
    before(1 + 1001);
    EXPECT_FALSE(irq());
    edge(1 + 1001);
    EXPECT_TRUE(irq());
}

TEST_F(PitTest, Mode3CountsByTwos) {
    program(0, 3, 1000);
    edge(1);
    EXPECT_EQ(in16(0x40), 1000u);
    edge(101);
    EXPECT_EQ(in16(0x40), 800u);
    edge(501);
    EXPECT_EQ(in16(0x40), 1000u);
}

TEST_F(PitTest, Mode4StrobesOnceAtTheEnd) {
    program(0, 4, 50);
    before(51);
    EXPECT_TRUE(irq());
    edge(51);
    EXPECT_FALSE(irq());
    before(52);
    EXPECT_FALSE(irq());
    edge(52);
    EXPECT_TRUE(irq());
    const int rises = wires.rises[0];
    edge(200000);
    EXPECT_EQ(wires.rises[0], rises);
}

TEST_F(PitTest, Channel2CalibratesAsAKernelDoesIt) {
    out61((in61() & ~2u) | 1); // speaker off, gate on
    program(2, 0, 59659);      // 50 ms
    EXPECT_EQ(in61() & 0x20, 0u);
    before(59660);
    EXPECT_EQ(in61() & 0x20, 0u);
    edge(59660);
    EXPECT_EQ(in61() & 0x20, 0x20u);
    EXPECT_NEAR(static_cast<double>(time.now()), 50e12, 0.01e12);
    EXPECT_EQ(in61() & 3, 1u);
}

TEST_F(PitTest, TheGateOfChannel2HoldsTheCount) {
    out61(0);
    program(2, 0, 100);
    edge(500);
    EXPECT_EQ(in16(0x42), 100u);
    EXPECT_EQ(in61() & 0x20, 0u);
    out61(1);
    edge(560);
    EXPECT_EQ(in16(0x42), 40u);
    out61(0);
    edge(900);
    EXPECT_EQ(in16(0x42), 40u);
    out61(1);
    before(940);
    EXPECT_EQ(in61() & 0x20, 0u);
    edge(940);
    EXPECT_EQ(in61() & 0x20, 0x20u);
}

TEST_F(PitTest, Mode1IsAOneShotThatTheGateTriggers) {
    program(2, 1, 100);
    edge(50);
    EXPECT_EQ(in61() & 0x20, 0x20u);
    out61(1);
    edge(51);
    EXPECT_EQ(in61() & 0x20, 0u);
    before(151);
    EXPECT_EQ(in61() & 0x20, 0u);
    edge(151);
    EXPECT_EQ(in61() & 0x20, 0x20u);
}

TEST_F(PitTest, ALatchedCountStaysUntilRead) {
    program(0, 2, 1000);
    edge(101);
    out(0x43, 0x00);
    edge(301);
    EXPECT_EQ(in16(0x40), 900u);
    EXPECT_EQ(in16(0x40), 700u);
}

TEST_F(PitTest, ReadBackGivesStatusThenCount) {
    program(0, 2, 1000);
    out(0x43, 0xC2); // both, channel 0; the count is not loaded before the next edge
    EXPECT_EQ(in(0x40), 0xC0u | 0x34u);
    EXPECT_EQ(in16(0x40), 1000u);
    edge(1);
    out(0x43, 0xE2); // status
    EXPECT_EQ(in(0x40), 0x80u | 0x34u);
    edge(1000);
    out(0x43, 0xE2);
    EXPECT_EQ(in(0x40), 0x34u);
}

TEST_F(PitTest, BcdCountsAreDecimal) {
    out(0x43, 0x31 | 0 << 1);
    out(0x40, 0x00);
    out(0x40, 0x10);
    edge(2);
    EXPECT_EQ(in16(0x40), 0x0999u);
    before(1001);
    EXPECT_FALSE(irq());
    edge(1001);
    EXPECT_TRUE(irq());
}

TEST_F(PitTest, ACountOfZeroIsTheLargest) {
    program(0, 0, 0);
    before(65537);
    EXPECT_FALSE(irq());
    edge(65537);
    EXPECT_TRUE(irq());
}

TEST_F(PitTest, TheRefreshToggleChangesEvery15Microseconds) {
    edge(18);
    const unsigned a = in61() & 0x10;
    before(36);
    EXPECT_EQ(in61() & 0x10, a);
    edge(36);
    EXPECT_NE(in61() & 0x10, a);
}

TEST_F(PitTest, ACoreAheadOfTheQueueLosesNoEdge) {
    program(0, 2, 1000);
    const int rises = wires.rises[0];
    time.ahead_to(kPitClock.edge(1500));
    in16(0x40);
    EXPECT_EQ(wires.rises[0], rises + 1);
    edge(2001);
    EXPECT_EQ(wires.rises[0], rises + 2);
}

TEST_F(PitTest, ACheckpointKeepsPhaseAndPendingEdge) {
    program(0, 2, 1000);
    edge(500);
    const auto bytes = saved(pit);
    EventQueue queue2;
    TestTime time2(queue2);
    Wires wires2;
    Pit other(queue2, time2, wires2, 0);
    restore(other, bytes);
    EXPECT_EQ(saved(other), bytes);
    time2.to(kPitClock.edge(1000) - 1);
    EXPECT_TRUE(wires2.now[0]);
    time2.to(kPitClock.edge(1000));
    EXPECT_FALSE(wires2.now[0]);
}

TEST_F(PitTest, NoAccessWhateverItIsHurtsTheSimulator) {
    Rng rng(9);
    for (int i = 0; i < 200000; ++i) {
        const auto range = static_cast<unsigned>(rng.below(2));
        if (rng.below(3))
            pit.write(0, range, rng.below(8), rng.below(1ull << 32), 1u << rng.below(4));
        else
            pit.read(0, range, rng.below(8), 1u << rng.below(4));
        time.by(static_cast<Tick>(rng.below(20'000'000'000)));
    }
}

} // namespace
