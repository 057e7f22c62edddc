// SPDX-License-Identifier: BSD-3-Clause
// The node's controller as its user sees it: latencies, completions, back-pressure, queued writes.
#include <gtest/gtest.h>

#include "mem/dram/fixture.hh"

namespace moscope::dram::testing {
namespace {

struct User {
    struct Done {
        Addr addr;
        Tick when, reported;
    };
    EventQueue queue;
    DramController dram;
    std::vector<Done> done;
    std::vector<Tick> space;

    explicit User(const DramParams &p) : dram(queue, "dram", p) {
        dram.set_done(
            [](void *self, const DramRequest &r, Tick when) {
                auto *u = static_cast<User *>(self);
                u->done.push_back({r.addr, when, u->queue.now()});
            },
            this);
        dram.set_space([](void *self, Tick now) { static_cast<User *>(self)->space.push_back(now); }, this);
    }
    void push(Addr a, bool write, Tick now) { dram.push({a, write, 0, nullptr}, now); }
};

TEST(DramController, AnIdleReadTakesFrontEndTrcdTclBurstAndBackEnd) {
    DramParams p = small_part();
    p.frontend_fs = 2'500'000;
    p.backend_fs = 1'700'000;
    User u(p);
    u.push(0x1000, false, 0);
    u.queue.run();
    ASSERT_EQ(u.done.size(), 1u);
    // First edge after 2.5 ns is 3 ns; then tRCD, tCL, half of eight transfers, back end.
    EXPECT_EQ(u.done[0].when, (3 + 6 + 5 + 4) * kNs + 1'700'000);
    EXPECT_LE(u.done[0].reported, u.done[0].when - p.tCK_fs) << "known at least a clock before";
}

TEST(DramController, CriticalWordFirstSavesTheRestOfTheBurst) {
    DramParams p = small_part();
    p.critical_word_first = true;
    User u(p);
    u.push(0x1000, false, 0);
    u.queue.run();
    EXPECT_EQ(u.done.at(0).when, (1 + 6 + 5 + 1) * kNs);
}

TEST(DramController, WritesCompleteWithTheirAcceptanceAndCostNoWakeUp) {
    DramParams p = small_part();
    p.frontend_fs = 2'000'000;
    User u(p);
    u.push(0x40, true, 0);
    ASSERT_EQ(u.done.size(), 1u);
    EXPECT_EQ(u.done[0].when, 2'000'000);
    u.queue.run();
    EXPECT_EQ(u.queue.events(), 0u);
    u.dram.sync(1000 * kNs);
    EXPECT_EQ(u.dram.stats().writes, 1u);
}

TEST(DramController, AReadOfAQueuedWriteIsServedFromTheQueue) {
    DramParams p = small_part();
    p.frontend_fs = 2'000'000, p.backend_fs = 3'000'000;
    User u(p);
    u.push(0x40, true, 0);
    u.push(0x48, false, 0);
    ASSERT_EQ(u.done.size(), 2u);
    EXPECT_EQ(u.done[1].when, 5'000'000);
    u.push(0x40, true, 0);
    EXPECT_EQ(u.dram.stats().forwarded, 1u);
    EXPECT_EQ(u.dram.stats().merged, 1u);
    EXPECT_EQ(u.dram.writes(), 1u);
}

TEST(DramController, AWriteThatHasLeftTheQueueIsReadFromDram) {
    User u(small_part());
    u.push(0x40, true, 0);
    u.push(0x40, false, 1'000 * kNs); // the queue was not looked at in between
    u.queue.run();
    EXPECT_EQ(u.dram.stats().forwarded, 0u);
    EXPECT_EQ(u.dram.stats().reads, 1u);
}

TEST(DramController, FullQueuePushesBackAndSaysWhenThereIsRoom) {
    DramParams p = small_part();
    p.read_entries = 2, p.scheduler_depth = 2;
    User u(p);
    EXPECT_TRUE(u.dram.can_accept(false));
    u.push(0x0, false, 0);
    u.push(0x40, false, 0);
    EXPECT_FALSE(u.dram.can_accept(false));
    EXPECT_TRUE(u.dram.can_accept(true)) << "reads and writes have room of their own";
    EXPECT_THROW(u.push(0x80, false, 0), SimulatorBug);
    u.queue.run();
    ASSERT_EQ(u.space.size(), 1u);
    EXPECT_EQ(u.space[0], (1 + 6) * kNs) << "the clock at which the first read command leaves";
    EXPECT_TRUE(u.dram.can_accept(false));
}

TEST(DramController, AFullWriteQueueDrainsForAWaitingSender) {
    DramParams p = small_part();
    p.write_entries = 4, p.write_high = 4, p.write_low = 1;
    User u(p);
    for (unsigned i = 0; i < 4; ++i)
        u.push(Addr{i} * 64, true, 0);
    EXPECT_FALSE(u.dram.can_accept(true));
    u.queue.run();
    EXPECT_EQ(u.space.size(), 1u);
    EXPECT_TRUE(u.dram.can_accept(true));
}

TEST(DramController, AFullWriteQueueIsDrainedThoughNoChannelHasReachedItsHighMark) {
    DramParams p = small_part();
    p.channels = 2;
    p.write_entries = 8, p.write_high = 8, p.write_low = 4;
    EventQueue queue;
    DramController dram(queue, "dram", p);
    Addr line = 0;
    const auto next = [&line](unsigned channel) { return (2 * ++line + channel) * kLineBytes; };
    for (unsigned i = 0; i < p.write_entries; ++i)
        dram.push({next(i % 2), true, 0, nullptr}, 0);
    for (Tick now = 0; now < 2000 * kNs; now += kNs) {
        queue.run(now);
        for (unsigned channel = 0; dram.can_accept(false); channel ^= 1) // reads never cease
            dram.push({next(channel), false, 0, nullptr}, now);
    }
    EXPECT_TRUE(dram.can_accept(true));
}

TEST(DramController, ChannelsWorkSideBySideUnlessGanged) {
    for (const bool ganged : {false, true}) {
        DramParams p = small_part();
        p.channels = 2;
        p.ganged = ganged;
        p.burst_lengths = 1u << 4 | 1u << 8;
        User u(p);
        u.push(0x00, false, 0);
        u.push(0x40, false, 0);
        u.queue.run();
        ASSERT_EQ(u.done.size(), 2u);
        const Tick first = (1 + 6 + 5) * kNs, burst = (ganged ? 2 : 4) * kNs;
        EXPECT_EQ(u.done[0].when, first + burst);
        EXPECT_EQ(u.done[1].when, first + (ganged ? 2 : 1) * burst);
    }
}

TEST(DramController, IdleTimeCostsNoEventsAndRefreshesGoOn) {
    DramParams p = small_part();
    p.t.tREFI = 1'000 * kNs, p.t.tRFC = 100 * kNs;
    User u(p);
    u.push(0, false, 0);
    u.queue.run();
    const auto events = u.queue.events();
    EXPECT_EQ(u.dram.next_wake(), kNever);
    u.push(0, false, 1'000'700 * kNs);
    u.queue.run();
    EXPECT_LE(u.queue.events(), events + 2);
    EXPECT_EQ(u.dram.stats().refreshes, 2u * 1000u + 1u) << "of both ranks each microsecond, and half a one more";
    EXPECT_EQ(u.done.back().when, (1'000'701 + 6 + 5 + 4) * kNs);
}

} // namespace
} // namespace moscope::dram::testing
