// SPDX-License-Identifier: BSD-3-Clause
// The real-time clock: a fixed date that advances with simulated time, update-in-progress and each interrupt at its
// moment, setting it as kernels do.
#include <gtest/gtest.h>

#include "base/rng.hh"
#include "dev/firmware/firmware.hh"
#include "dev/harness.hh"
#include "dev/timers/rtc.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

constexpr Tick kSecond = kTicksPerSecond;

struct RtcTest : testing::Test {
    EventQueue queue;
    TestTime time{queue};
    Wires wires;
    Rtc rtc{queue, time, wires, 8};

    unsigned get(unsigned i) {
        rtc.write(0, 0, 0, i, 1);
        return static_cast<unsigned>(rtc.read(0, 0, 1, 1));
    }
    void set(unsigned i, unsigned v) {
        rtc.write(0, 0, 0, i, 1);
        rtc.write(0, 0, 1, v, 1);
    }
    /// Century, year, month, day, hour, minute, second.
    std::vector<unsigned> shown() { return {get(0x32), get(9), get(8), get(7), get(4), get(2), get(0)}; }
    bool irq() { return wires.now[8]; }
    void rises_at(Tick t) {
        expect_change(time, t, true, [this] { return irq(); });
    }
    using Date = std::vector<unsigned>;
};

TEST_F(RtcTest, StartsAtItsFixedDateInBcdAnd24Hours) {
    EXPECT_EQ(shown(), (Date{0x20, 0x10, 0x10, 0x04, 0, 0, 0}));
    EXPECT_EQ(get(6), 2u); // a Monday
    EXPECT_EQ(get(0xB), 2u);
    EXPECT_EQ(get(0xD), 0x80u);
    EXPECT_EQ(rtc.seconds(), 1286150400);
}

TEST_F(RtcTest, AdvancesWithSimulatedTime) {
    time.to(kSecond - 1);
    EXPECT_EQ(get(0), 0u);
    time.to(kSecond);
    EXPECT_EQ(get(0), 1u);
    time.to(3599 * kSecond);
    EXPECT_EQ(shown(), (Date{0x20, 0x10, 0x10, 0x04, 0, 0x59, 0x59}));
    time.to(3600 * kSecond);
    EXPECT_EQ(shown(), (Date{0x20, 0x10, 0x10, 0x04, 1, 0, 0}));
}

TEST_F(RtcTest, KnowsLeapDaysAndTurnsOfTheCentury) {
    Rtc leap(queue, time, wires, 8, 951782399); // 2000-02-28 23:59:59
    const auto at = [&](unsigned i) {
        leap.write(0, 0, 0, i, 1);
        return leap.read(0, 0, 1, 1);
    };
    EXPECT_EQ(at(7), 0x28u);
    time.to(kSecond);
    EXPECT_EQ(at(7), 0x29u);
    EXPECT_EQ(at(8), 0x02u);
    Rtc old(queue, time, wires, 8, 946684798); // 1999-12-31 23:59:58, and a second has gone by
    old.write(0, 0, 0, 0x32, 1);
    EXPECT_EQ(old.read(0, 0, 1, 1), 0x19u);
    time.to(2 * kSecond);
    EXPECT_EQ(old.read(0, 0, 1, 1), 0x20u);
}

TEST_F(RtcTest, UpdateInProgressRises2228MicrosecondsBeforeTheSecondChanges) {
    const Tick begin = kSecond - 2'228'000 * kTicksPerNs;
    time.to(begin - 1);
    EXPECT_EQ(get(0xA), 0x26u);
    time.to(begin);
    EXPECT_EQ(get(0xA), 0xA6u);
    time.to(kSecond - 1);
    EXPECT_EQ(get(0xA), 0xA6u);
    EXPECT_EQ(get(0), 0u);
    time.to(kSecond);
    EXPECT_EQ(get(0xA), 0x26u);
    EXPECT_EQ(get(0), 1u);
}

TEST_F(RtcTest, TheUpdateInterruptComesEachSecondAndGoesWhenItsFlagIsRead) {
    set(0xB, 0x12);
    rises_at(kSecond);
    EXPECT_EQ(get(0xC) & 0xB0, 0x90u);
    EXPECT_FALSE(irq());
    EXPECT_EQ(get(0xC), 0u);
    rises_at(2 * kSecond);
}

TEST_F(RtcTest, TheAlarmComesAtItsTimeAndADontCareFieldMatchesAny) {
    set(1, 0x05);
    set(3, 0xFF);
    set(5, 0xC0);
    set(0xB, 0x22);
    rises_at(5 * kSecond);
    EXPECT_EQ(get(0xC) & 0xB0, 0xB0u);
    rises_at(65 * kSecond);
}

TEST_F(RtcTest, AnAlarmThatIsNotEnabledStillSetsItsFlag) {
    set(1, 0x05);
    set(3, 0);
    set(5, 0);
    time.to(4 * kSecond);
    EXPECT_EQ(get(0xC), 0x10u | 0x40u);
    time.to(6 * kSecond);
    EXPECT_EQ(get(0xC) & 0x20, 0x20u);
    EXPECT_FALSE(irq());
}

TEST_F(RtcTest, ThePeriodicInterruptHasItsRate) {
    set(0xA, 0x2F); // 2 Hz
    set(0xB, 0x42);
    rises_at(kSecond / 2);
    EXPECT_EQ(get(0xC), 0xC0u);
    set(0xA, 0x23); // 8192 Hz
    int n = 0;
    while (time.now() < kSecond) {
        time.by(kSecond / 8192 / 4);
        n += get(0xC) >> 7;
    }
    EXPECT_EQ(n, 4096);
}

TEST_F(RtcTest, IsSetAsKernelsDoIt) {
    time.to(10 * kSecond + kSecond / 4);
    set(0xB, get(0xB) | 0x80);
    set(0xA, get(0xA) | 0x70);
    set(9, 0x24);
    set(8, 0x02);
    set(7, 0x29);
    set(4, 0x23);
    set(2, 0x59);
    set(0, 0x58);
    time.by(100 * kSecond);
    EXPECT_EQ(get(0), 0x58u); // stands
    set(0xB, 0x02);
    set(0xA, 0x26);
    const Tick start = time.now();
    time.to(start + kSecond / 2 - 1);
    EXPECT_EQ(get(0), 0x58u);
    time.to(start + kSecond / 2); // the divider started anew
    EXPECT_EQ(get(0), 0x59u);
    time.to(start + 3 * kSecond / 2);
    EXPECT_EQ(shown(), (Date{0x20, 0x24, 0x03, 0x01, 0, 0, 0}));
}

TEST_F(RtcTest, SettingWithoutStoppingTheDividerKeepsThePhase) {
    time.to(10 * kSecond + kSecond / 4);
    set(0xB, 0x82);
    set(0, 0x30);
    set(0xB, 0x02);
    EXPECT_EQ(get(0), 0x30u);
    time.to(11 * kSecond - 1);
    EXPECT_EQ(get(0), 0x30u);
    time.to(11 * kSecond);
    EXPECT_EQ(get(0), 0x31u);
}

TEST_F(RtcTest, ShowsBinaryAndTwelveHours) {
    set(0xB, 0x82);
    set(4, 0x13);
    set(0, 0x47);
    set(0xB, 0x02);
    EXPECT_EQ(get(4), 0x13u);
    set(0xB, 0x00);
    EXPECT_EQ(get(4), 0x81u);
    set(0xB, 0x06);
    EXPECT_EQ(get(4), 13u);
    EXPECT_EQ(get(0), 47u);
    set(0xB, 0x04);
    set(4, 12); // midnight
    set(0xB, 0x06);
    EXPECT_EQ(get(4), 0u);
    set(0xB, 0x04);
    set(4, 0x80 | 3);
    set(0xB, 0x06);
    EXPECT_EQ(get(4), 15u);
}

TEST_F(RtcTest, TheMemoryKeepsItsBytesOverAReset) {
    set(0x0F, 0x0A);
    set(0x7F, 0x55);
    time.to(5 * kSecond);
    rtc.reset();
    EXPECT_EQ(get(0x0F), 0x0Au);
    EXPECT_EQ(get(0x7F), 0x55u);
    EXPECT_EQ(get(0x80 | 0x7F), 0x55u); // the index has seven bits
    EXPECT_EQ(get(0), 5u);
}

TEST_F(RtcTest, ACheckpointKeepsDateMemoryAndTheNextInterrupt) {
    set(0x40, 0x77);
    set(0xB, 0x12);
    time.to(kSecond * 7 / 2);
    get(0xC);
    const auto bytes = saved(rtc);
    EventQueue queue2;
    TestTime time2(queue2);
    Wires wires2;
    Rtc other(queue2, time2, wires2, 8, 0);
    restore(other, bytes);
    EXPECT_EQ(saved(other), bytes);
    time2.to(4 * kSecond - 1);
    EXPECT_FALSE(wires2.now[8]);
    time2.to(4 * kSecond);
    EXPECT_TRUE(wires2.now[8]);
    EXPECT_EQ(other.seconds(), Rtc::kEpoch + 4);
}

TEST_F(RtcTest, TheFirmwareTablesNameTheCenturyByte) {
    Firmware f;
    rtc.describe(f);
    EXPECT_EQ(f.power.cmos_century, 0x32);
    EXPECT_EQ(f.devices.size(), 1u);
}

TEST_F(RtcTest, NoAccessWhateverItIsHurtsTheSimulator) {
    Rng rng(1);
    for (int i = 0; i < 200000; ++i) {
        const auto size = 1u << rng.below(4);
        if (rng.below(3))
            rtc.write(0, 0, rng.below(4), rng.below(2) ? rng.below(16) : rng.below(1ull << 32), size);
        else
            rtc.read(0, 0, rng.below(4), size);
        time.by(static_cast<Tick>(rng.below(kSecond / 100)));
    }
}

} // namespace
