// SPDX-License-Identifier: BSD-3-Clause
// The 8254: each mode's output at each edge from both sides, latches, and port 61h as a kernel uses it to
// calibrate.
#include <gtest/gtest.h>

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
    bool output2() { return in61() & 0x20; }
    void rises_at(std::int64_t n) { changes_at(n, true); }
    void falls_at(std::int64_t n) { changes_at(n, false); }
    void changes_at(std::int64_t n, bool to) {
        expect_change(time, kPitClock.edge(n), to, [this] { return irq(); });
    }
    /// Edges, and the count of channel 0 there.
    void expect_counts(std::initializer_list<std::pair<std::int64_t, unsigned>> all) {
        for (const auto &[n, count] : all) {
            edge(n);
            EXPECT_EQ(in16(0x40), count) << "at edge " << n;
        }
    }
    void output2_rises_at(std::int64_t n) {
        expect_change(time, kPitClock.edge(n), true, [this] { return output2(); });
    }
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
    rises_at(1101);
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
    expect_counts({{2, 999}, {1001, 0}, {1002, 0xFFFF}});
}

TEST_F(PitTest, Mode2IsLowForOneEdgeInN) {
    program(0, 2, 1000);
    falls_at(1000);
    rises_at(1001);
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
    rises_at(1001);
    falls_at(1100);
    edge(1101);
    EXPECT_TRUE(irq());
    edge(1200);
    EXPECT_FALSE(irq());
}

TEST_F(PitTest, Mode3IsHighForTheLargerHalf) {
    program(0, 3, 1001);
    falls_at(1 + 501);
    rises_at(1 + 1001);
}

TEST_F(PitTest, Mode3CountsByTwos) {
    program(0, 3, 1000);
    expect_counts({{1, 1000}, {101, 800}, {501, 1000}});
}

TEST_F(PitTest, Mode4StrobesOnceAtTheEnd) {
    program(0, 4, 50);
    falls_at(51);
    rises_at(52);
    const int rises = wires.rises[0];
    edge(200000);
    EXPECT_EQ(wires.rises[0], rises);
}

TEST_F(PitTest, Channel2CalibratesAsAKernelDoesIt) {
    out61((in61() & ~2u) | 1); // speaker off, gate on
    program(2, 0, 59659);      // 50 ms
    EXPECT_FALSE(output2());
    output2_rises_at(59660);
    EXPECT_NEAR(static_cast<double>(time.now()), 50e12, 0.01e12);
    EXPECT_EQ(in61() & 3, 1u);
}

TEST_F(PitTest, TheGateOfChannel2HoldsTheCount) {
    out61(0);
    program(2, 0, 100);
    edge(500);
    EXPECT_EQ(in16(0x42), 100u);
    EXPECT_FALSE(output2());
    out61(1);
    edge(560);
    EXPECT_EQ(in16(0x42), 40u);
    out61(0);
    edge(900);
    EXPECT_EQ(in16(0x42), 40u);
    out61(1);
    output2_rises_at(940);
}

TEST_F(PitTest, TheGateHoldsThePeriodicCountAndItsReturnBeginsANewPeriod) {
    for (const auto &[mode, held] : {std::pair{2u, 70u}, std::pair{3u, 40u}}) {
        out61(1);
        program(2, mode, 100);
        const std::int64_t loaded = edges_until(kPitClock, time.now()) + 1;
        edge(loaded + 130);
        out61(0);
        edge(loaded + 500);
        EXPECT_EQ(in16(0x42), held) << "mode " << mode;
        EXPECT_TRUE(output2());
        out61(1);
        edge(loaded + 501);
        EXPECT_EQ(in16(0x42), 100u) << "mode " << mode;
    }
}

TEST_F(PitTest, Mode1IsAOneShotThatTheGateTriggers) {
    program(2, 1, 100);
    edge(50);
    EXPECT_TRUE(output2());
    out61(1);
    edge(51);
    EXPECT_FALSE(output2());
    output2_rises_at(151);
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
    rises_at(1001);
}

TEST_F(PitTest, ACountOfZeroIsTheLargest) {
    program(0, 0, 0);
    rises_at(65537);
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
    EventQueue queue2;
    TestTime time2(queue2);
    Wires wires2;
    Pit other(queue2, time2, wires2, 0);
    resume(other, pit);
    expect_change(time2, kPitClock.edge(1000), false, [&] { return wires2.now[0]; });
}

TEST_F(PitTest, NoAccessWhateverItIsHurtsTheSimulator) {
    access_at_random(
        pit, 9, 200000,
        [](Rng &r) {
            return RandomAccess{static_cast<unsigned>(r.below(2)), r.below(8), r.below(1ull << 32)};
        },
        [this](Rng &r) { time.by(static_cast<Tick>(r.below(20'000'000'000))); });
}

} // namespace
