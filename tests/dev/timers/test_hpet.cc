// SPDX-License-Identifier: BSD-3-Clause
// The HPET as kernels use it: a counter that advances with simulated time, one-shot and periodic comparators at their
// exact edge, legacy replacement, levels.
#include <gtest/gtest.h>

#include "dev/firmware/firmware.hh"
#include "dev/harness.hh"
#include "dev/timers/hpet.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

enum : Addr { kCaps = 0, kConfig = 0x10, kStatus = 0x20, kCounter = 0xF0 };
constexpr Addr config(unsigned n) { return 0x100 + 0x20 * n; }
constexpr Addr comparator(unsigned n) { return 0x108 + 0x20 * n; }

struct HpetTest : testing::Test {
    EventQueue queue;
    TestTime time{queue};
    Wires pic, io;
    IsaInterrupts isa{pic, io};
    Hpet hpet{queue, time, isa, io};

    std::uint32_t get(Addr r) { return static_cast<std::uint32_t>(hpet.read(0, 0, r, 4)); }
    std::uint64_t get64(Addr r) { return hpet.read(0, 0, r, 8); }
    void set(Addr r, std::uint32_t v) { hpet.write(0, 0, r, v, 4); }
    void set64(Addr r, std::uint64_t v) { hpet.write(0, 0, r, v, 8); }
    void edge(std::int64_t n) { time.to(kHpetClock.edge(n)); }
    void before(std::int64_t n) { time.to(kHpetClock.edge(n) - 1); }
};

TEST_F(HpetTest, SaysWhatItIs) {
    EXPECT_EQ(get(kCaps), 0x1022A201u);
    EXPECT_EQ(get(kCaps + 4), 69841279u);
    EXPECT_EQ(get(config(0)), 0x30u);
    EXPECT_EQ(get(config(1)), 0x20u);
    EXPECT_EQ(get(config(2) + 4), 0x00C00000u);
    EXPECT_EQ(get(config(3)), 0u);
    Firmware f;
    hpet.describe(f);
    EXPECT_EQ(f.hpet->event_timer_block, get(kCaps));
    EXPECT_EQ(f.hpet->address, Hpet::kBase);
}

TEST_F(HpetTest, TheCounterCountsWhileEnabledAndKeepsItsValueWhileNot) {
    edge(1000);
    EXPECT_EQ(get64(kCounter), 0u);
    set(kConfig, 1);
    before(1500);
    EXPECT_EQ(get64(kCounter), 499u);
    edge(1500);
    EXPECT_EQ(get64(kCounter), 500u);
    set(kConfig, 0);
    edge(3000);
    EXPECT_EQ(get(kCounter), 500u);
    set64(kCounter, 0xFFFFFFFFull);
    set(kConfig, 1);
    edge(3001);
    EXPECT_EQ(get64(kCounter), 0x100000000ull);
    EXPECT_EQ(get(kCounter + 4), 1u);
}

TEST_F(HpetTest, TheCounterRunsAtThePeriodThatItGivesToAMillionth) {
    set(kConfig, 1);
    time.to(kTicksPerSecond);
    EXPECT_EQ(get64(kCounter), 14318180u);
}

TEST_F(HpetTest, AOneShotFiresAtItsEdgeAndNotBefore) {
    set(kConfig, 1);
    set(config(2), 1u << 2 | 22u << 9);
    set(comparator(2), 5000);
    set(comparator(2) + 4, 0);
    before(5000);
    EXPECT_EQ(io.rises[22], 0);
    edge(5000);
    EXPECT_EQ(io.rises[22], 1);
    EXPECT_FALSE(io.now[22]);
    edge(1000000);
    EXPECT_EQ(io.rises[22], 1);
    EXPECT_EQ(queue.next(), kNever);
}

TEST_F(HpetTest, AOneShotOf32BitsFiresAgainWhenTheCounterWraps) {
    set(kConfig, 1);
    set(config(2), 1u << 2 | 1u << 8 | 22u << 9);
    set(comparator(2), 5000);
    edge(5000);
    EXPECT_EQ(io.rises[22], 1);
    before(5000 + (1ll << 32));
    EXPECT_EQ(io.rises[22], 1);
    edge(5000 + (1ll << 32));
    EXPECT_EQ(io.rises[22], 2);
}

TEST_F(HpetTest, LegacyReplacementDrivesTheTimersAndTheClocksWires) {
    isa.set_irq(0, true); // a PIT with its output high
    set(kConfig, 3);
    EXPECT_FALSE(io.now[2]);
    set(config(0), 1u << 2 | 1u << 8);
    set(config(1), 1u << 2 | 1u << 8);
    set(comparator(0), 100);
    set(comparator(1), 200);
    const int rises = io.rises[2];
    before(100);
    EXPECT_EQ(io.rises[2], rises);
    edge(100);
    EXPECT_EQ(io.rises[2], rises + 1);
    EXPECT_EQ(io.rises[8], 0);
    edge(200);
    EXPECT_EQ(io.rises[8], 1);
    EXPECT_EQ(pic.rises[8], 1);
    set(kConfig, 1);
    EXPECT_TRUE(io.now[2]); // the PIT's again
}

TEST_F(HpetTest, APeriodicTimerSetUpAsKernelsDoFiresEachPeriod) {
    set(kConfig, 3);
    edge(1000);
    set(config(0), 1u << 2 | 1u << 3 | 1u << 6 | 1u << 8); // interrupt, periodic, set value, 32 bits
    set(comparator(0), 3000);
    EXPECT_EQ(get(config(0)) & 1u << 6, 0u);
    set(comparator(0), 700);
    before(3000);
    EXPECT_EQ(io.rises[2], 0);
    edge(3000);
    EXPECT_EQ(io.rises[2], 1);
    EXPECT_EQ(get(comparator(0)), 3700u);
    for (int i = 1; i < 100; ++i) {
        before(3000 + 700 * i);
        EXPECT_EQ(io.rises[2], i);
        edge(3000 + 700 * i);
        EXPECT_EQ(io.rises[2], i + 1);
    }
}

TEST_F(HpetTest, OnlyTimer0CanBePeriodicAndOnlyExistingRoutesAreAccepted) {
    set(config(1), 1u << 3 | 1u << 6 | 5u << 9);
    EXPECT_EQ(get(config(1)), 0x20u);
    set(config(1), 23u << 9);
    EXPECT_EQ(get(config(1)), 0x20u | 23u << 9);
}

TEST_F(HpetTest, ALevelStaysUntilItsStatusIsCleared) {
    set(kConfig, 1);
    set(config(1), 1u << 1 | 1u << 2 | 22u << 9);
    set64(comparator(1), 10);
    edge(10);
    EXPECT_TRUE(io.now[22]);
    EXPECT_EQ(get(kStatus), 2u);
    set(kStatus, 1);
    EXPECT_TRUE(io.now[22]);
    set(kStatus, 2);
    EXPECT_FALSE(io.now[22]);
    EXPECT_EQ(get(kStatus), 0u);
}

TEST_F(HpetTest, ALevelTimerThatMayNotInterruptStillSetsItsStatus) {
    set(kConfig, 1);
    set(config(1), 1u << 1 | 22u << 9); // section 2.3.8, bit 2: status bits are generated all the same
    set64(comparator(1), 100);
    before(100);
    EXPECT_EQ(get(kStatus), 0u);
    edge(100);
    EXPECT_EQ(get(kStatus), 2u);
    EXPECT_EQ(io.rises[22], 0);
    set(config(1), 1u << 1 | 1u << 2 | 22u << 9);
    EXPECT_TRUE(io.now[22]);
    set(kStatus, 2);
    EXPECT_FALSE(io.now[22]);
}

TEST_F(HpetTest, TwoLevelsOfOneInputAssertItUntilBothAreCleared) {
    set(kConfig, 1);
    for (const unsigned n : {1u, 2u}) {
        set(config(n), 1u << 1 | 1u << 2 | 22u << 9);
        set64(comparator(n), 100 * n);
    }
    edge(200);
    EXPECT_EQ(get(kStatus), 6u);
    set(kStatus, 2);
    EXPECT_TRUE(io.now[22]) << "timer 2 asserts it still";
    set(kStatus, 4);
    EXPECT_FALSE(io.now[22]);
}

TEST_F(HpetTest, AComparatorOf64BitsInThePastDoesNotFire) {
    set(kConfig, 1);
    edge(1000);
    set(config(2), 1u << 2 | 22u << 9);
    set64(comparator(2), 999);
    EXPECT_EQ(queue.next(), kNever);
    set64(comparator(2), 1001);
    edge(1001);
    EXPECT_EQ(io.rises[22], 1);
}

TEST_F(HpetTest, ACoreAheadOfTheQueueLosesNoMatch) {
    set(kConfig, 1);
    set(config(2), 1u << 2 | 22u << 9);
    set64(comparator(2), 1000);
    time.ahead_to(kHpetClock.edge(1500));
    set64(comparator(2), 2000);
    EXPECT_EQ(io.rises[22], 1);
    edge(2000);
    EXPECT_EQ(io.rises[22], 2);
}

TEST_F(HpetTest, ACheckpointKeepsTheCounterAndTheNextMatch) {
    set(kConfig, 3);
    set(config(0), 1u << 2 | 1u << 3 | 1u << 6 | 1u << 8);
    set(comparator(0), 3000);
    set(comparator(0), 700);
    edge(3200);
    EventQueue queue2;
    TestTime time2(queue2);
    Wires pic2, io2;
    IsaInterrupts isa2(pic2, io2);
    Hpet other(queue2, time2, isa2, io2);
    resume(other, hpet);
    time2.to(kHpetClock.edge(3700) - 1);
    EXPECT_EQ(io2.rises[2], 0);
    EXPECT_EQ(other.read(0, 0, kCounter, 8), 3699u);
    time2.to(kHpetClock.edge(3700));
    EXPECT_EQ(io2.rises[2], 1);
}

TEST_F(HpetTest, NoAccessWhateverItIsHurtsTheSimulator) {
    const auto draw = [](Rng &r) {
        const Addr offset = r.below(3) ? r.below(0x30) * 8 : r.below(0x410);
        return RandomAccess{0, offset, r.below(2) ? r.below(1ull << 63) : r.below(1ull << 20)};
    };
    access_at_random(hpet, 6, 200000, draw, [this](Rng &r) { time.by(static_cast<Tick>(r.below(1'000'000))); });
}

} // namespace
