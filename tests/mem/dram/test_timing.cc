// SPDX-License-Identifier: BSD-3-Clause
// Each timing rule from both sides, on one channel: the clock before the edge the command has not been issued, at
// the edge it has; and streams against closed formulas.
#include <functional>

#include <gtest/gtest.h>

#include "mem/dram/fixture.hh"

namespace moscope::dram::testing {
namespace {

using K = CommandKind;

struct Edge {
    const char *name;
    std::function<void(DramParams &)> change;
    std::vector<Wanted> requests;
    K kind;
    unsigned nth;
    Cycle edge;
};

class DramEdge : public ::testing::TestWithParam<Edge> {};

TEST_P(DramEdge, IsKeptToTheClock) {
    const Edge &e = GetParam();
    DramParams p = small_part();
    if (e.change)
        e.change(p);
    p.validate();
    Traced channel(p);
    Recorder &trace = channel.trace;
    unsigned n = 0;
    for (const Wanted &w : e.requests)
        add(channel, w, n++);
    channel.run(e.edge);
    EXPECT_EQ(trace.count(e.kind), e.nth - 1) << "a clock early";
    channel.run(e.edge + 1);
    EXPECT_EQ(trace.count(e.kind), e.nth);
}

const std::vector<Wanted> kOneRead = {{0, 0, 1}};
const std::vector<Wanted> kConflict = {{0, 0, 1}, {0, 0, 2}};
const std::vector<Wanted> kWriteConflict = {{0, 0, 1, true}, {0, 0, 2, true}};
const std::vector<Wanted> kTwoBanks = {{0, 0, 1}, {0, 1, 1}};
const std::vector<Wanted> kFiveBanks = {{0, 0, 1}, {0, 1, 1}, {0, 2, 1}, {0, 3, 1}, {0, 4, 1}};
const std::vector<Wanted> kTwoHits = {{0, 0, 1}, {0, 0, 1}};
const std::vector<Wanted> kTwoRanks = {{0, 0, 1}, {1, 0, 1}};
const std::vector<Wanted> kReadThenWrite = {{0, 0, 1}, {0, 0, 1, true}};
const std::vector<Wanted> kWriteThenRead = {{0, 0, 1, true}, {0, 0, 1, false, 8}};
const std::vector<Wanted> kWriteThenOtherRank = {{0, 0, 1, true}, {1, 0, 1, false, 7}};

INSTANTIATE_TEST_SUITE_P(
    Rules, DramEdge,
    ::testing::Values(
        Edge{"tRCD", {}, kOneRead, K::read, 1, 6},
        Edge{"tRCD_longer", [](auto &p) { p.t.tRCD = 9 * kNs; }, kOneRead, K::read, 1, 9},
        Edge{"tRCD_rounded_up", [](auto &p) { p.t.tRCD = 9 * kNs + 1; }, kOneRead, K::read, 1, 10},
        Edge{"tRAS", {}, kConflict, K::precharge, 1, 16},
        Edge{"tRAS_longer", [](auto &p) { p.t.tRAS = 17 * kNs; }, kConflict, K::precharge, 1, 17},
        Edge{"tRTP", [](auto &p) { p.t.tRTP = 14 * kNs; }, kConflict, K::precharge, 1, 20},
        Edge{"tRP", [](auto &p) { p.t.tRP = 8 * kNs; p.t.tRTP = 14 * kNs; }, kConflict, K::activate, 2, 28},
        Edge{"tRC", {}, kConflict, K::activate, 2, 24},
        Edge{"tRC_longer", [](auto &p) { p.t.tRC = 30 * kNs; }, kConflict, K::activate, 2, 30},
        Edge{"tWR", {}, kWriteConflict, K::precharge, 1, 6 + 4 + 4 + 8},
        Edge{"tWR_longer", [](auto &p) { p.t.tWR = 11 * kNs; }, kWriteConflict, K::precharge, 1, 6 + 4 + 4 + 11},
        Edge{"tRRD", {}, kTwoBanks, K::activate, 2, 3},
        Edge{"tRRD_longer", [](auto &p) { p.t.tRRD = 5 * kNs; }, kTwoBanks, K::activate, 2, 5},
        Edge{"tRRD_is_per_rank", [](auto &p) { p.t.tRRD = 5 * kNs; }, kTwoRanks, K::activate, 2, 1},
        Edge{"tFAW", [](auto &p) { p.t.tFAW = 20 * kNs; }, kFiveBanks, K::activate, 5, 20},
        Edge{"tFAW_longer", [](auto &p) { p.t.tFAW = 23 * kNs; }, kFiveBanks, K::activate, 5, 23},
        Edge{"tFAW_leaves_four", [](auto &p) { p.t.tFAW = 90 * kNs; }, kFiveBanks, K::activate, 4, 11},
        Edge{"burst", {}, kTwoHits, K::read, 2, 6 + 4},
        Edge{"tCCD", [](auto &p) { p.t.tCCD = 6 * kNs; }, kTwoHits, K::read, 2, 6 + 6},
        Edge{"tRTRS", {}, kTwoRanks, K::read, 2, 6 + 4 + 2},
        Edge{"tRTRS_longer", [](auto &p) { p.t.tRTRS = 5 * kNs; }, kTwoRanks, K::read, 2, 6 + 4 + 5},
        Edge{"tRTW", {}, kReadThenWrite, K::write, 1, 6 + 5 + 4 + 2 - 4},
        Edge{"tRTW_longer", [](auto &p) { p.t.tRTW = 4 * kNs; }, kReadThenWrite, K::write, 1, 6 + 5 + 4 + 4 - 4},
        Edge{"tCWL_earlier_data", [](auto &p) { p.t.tCWL = 3 * kNs; }, kReadThenWrite, K::write, 1, 14},
        Edge{"tWTR", {}, kWriteThenRead, K::read, 1, 6 + 4 + 4 + 3},
        Edge{"tWTR_longer", [](auto &p) { p.t.tWTR = 6 * kNs; }, kWriteThenRead, K::read, 1, 6 + 4 + 4 + 6},
        Edge{"tWTR_is_per_rank", [](auto &p) { p.t.tWTR = 60 * kNs; }, kWriteThenOtherRank, K::read, 1, 7 + 6},
        Edge{"tREFI", [](auto &p) { p.t.tREFI = 1000 * kNs; p.t.tRFC = 50 * kNs; }, {}, K::refresh, 1, 500},
        Edge{"tRFC", [](auto &p) { p.t.tREFI = 1000 * kNs; p.t.tRFC = 50 * kNs; }, {{0, 3, 1, false, 505}},
             K::activate, 1, 550},
        Edge{"tRFC_is_per_rank", [](auto &p) { p.t.tREFI = 1000 * kNs; p.t.tRFC = 50 * kNs; },
             {{1, 3, 1, false, 505}}, K::activate, 1, 505},
        Edge{"refresh_waits_for_tRP", [](auto &p) { p.t.tREFI = 1000 * kNs; p.t.tRFC = 50 * kNs; },
             {{0, 3, 1, false, 450}}, K::refresh, 1, 500 + 7},
        Edge{"auto_precharge", [](auto &p) { p.page_policy = PagePolicy::forced; p.t.tRTP = 14 * kNs; }, kConflict,
             K::activate, 2, 6 + 14 + 7},
        Edge{"closed_keeps_the_row_for_queued_hits", [](auto &p) { p.page_policy = PagePolicy::closed; }, kTwoHits,
             K::read, 2, 10},
        Edge{"idle_close", [](auto &p) { p.page_policy = PagePolicy::idle; p.idle_close_fs = 40 * kNs; }, kOneRead,
             K::precharge, 1, 6 + 40}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(DramStream, RowHitsUseTheBusWithoutAGap) {
    DramParams p = small_part();
    p.scheduler_depth = 64;
    Traced channel(p);
    Recorder &trace = channel.trace;
    for (unsigned i = 0; i < 64; ++i)
        add(channel, {0, 0, 1}, i);
    channel.run(1000);
    EXPECT_EQ(trace.at(K::read, 64), 6 + 63 * 4);
    EXPECT_EQ(trace.count(K::activate), 1u);
    EXPECT_EQ(channel.stats().row_hits, 63u);
    EXPECT_EQ(channel.stats().row_misses, 1u);
}

TEST(DramStream, ConflictsInOneBankTakeARowCycleEach) {
    Traced channel(small_part());
    Recorder &trace = channel.trace;
    for (unsigned i = 0; i < 32; ++i)
        add(channel, {0, 0, i}, i);
    channel.run(32 * 24);
    EXPECT_EQ(trace.at(K::activate, 32), 31 * 24);
    EXPECT_EQ(channel.stats().row_conflicts, 31u);
}

TEST(DramStream, RefreshTakesItsShareOfARowHitStream) {
    DramParams p = small_part();
    p.t.tREFI = 1000 * kNs, p.t.tRFC = 100 * kNs;
    p.read_entries = 64;
    Channel channel(p, 0);
    unsigned n = 0;
    constexpr Cycle kEnd = 100'000;
    for (Cycle c = 0; c < kEnd; c += 4) { // one request for each burst that the bus could carry
        if (channel.reads() < 64)
            add(channel, {0, 0, 1, false, c}, n++);
        channel.run(c);
    }
    // Per refresh: close (tRP), refresh, open again (tRCD), and the last burst's tRTP less its own clocks.
    const double lost = (100 + 7 + 6 + 5 - 4) / 1000.0;
    const ChannelStats s = channel.stats();
    EXPECT_NEAR(static_cast<double>(s.busy) / kEnd, 1 - lost, 0.005);
    EXPECT_GT(s.lost[static_cast<unsigned>(Lost::refresh)], s.accounted / 12);
}

TEST(DramStream, ActivatesAreLimitedToFourPerTfaw) {
    DramParams p = small_part();
    p.t.tFAW = 40 * kNs;
    p.page_policy = PagePolicy::forced;
    Traced channel(p);
    Recorder &trace = channel.trace;
    for (unsigned i = 0; i < 64; ++i)
        add(channel, {0, i % 8, i}, i);
    channel.run(700);
    EXPECT_EQ(trace.at(K::activate, 61), 15 * 40);
    const ChannelStats s = channel.stats();
    EXPECT_GT(s.lost[static_cast<unsigned>(Lost::activate_rate)], (s.accounted - s.busy) * 8 / 10)
        << "the limit is named";
}

TEST(DramOrder, OldestIsOvertakenNoMoreOftenThanTheLimit) {
    for (const unsigned limit : {0u, 1u, 4u}) {
        DramParams p = small_part();
        p.bypass_max = limit;
        Channel channel(p, 0);
        std::vector<unsigned> order;
        channel.set_read_done(
            [](void *o, const DramRequest &r, Tick) {
                static_cast<std::vector<unsigned> *>(o)->push_back(static_cast<unsigned>(r.addr / kLineBytes));
            },
            &order);
        add(channel, {0, 0, 1}, 0);
        add(channel, {0, 0, 2}, 1); // conflicts with the row that the next ones hit
        for (unsigned i = 2; i < 12; ++i)
            add(channel, {0, 0, 1}, i);
        channel.run(1000);
        ASSERT_EQ(order.size(), 12u);
        EXPECT_EQ(order[1 + limit], 1u) << limit;
    }
}

TEST(DramOrder, SchedulerChoosesWithinItsDepth) {
    DramParams p = small_part();
    p.scheduler_depth = 2;
    Traced channel(p);
    Recorder &trace = channel.trace;
    add(channel, {0, 0, 1}, 0);
    add(channel, {0, 0, 2}, 1);
    add(channel, {0, 1, 3}, 2); // cannot be prepared before one of the two has left
    channel.run(7);
    EXPECT_EQ(trace.count(K::activate), 1u);
    channel.run(8);
    EXPECT_EQ(trace.count(K::activate), 2u);
}

TEST(DramWrites, AreDrainedFromTheHighMarkToTheLowMark) {
    DramParams p = small_part();
    p.write_high = 8, p.write_low = 2;
    Traced channel(p);
    Recorder &trace = channel.trace;
    unsigned n = 0;
    for (unsigned i = 0; i < 8; ++i)
        add(channel, {0, 1, 1, true}, n++);
    for (unsigned i = 0; i < 16; ++i)
        add(channel, {0, 0, 1}, n++);
    channel.run(1000);
    unsigned before_reads = 0;
    for (const DramCommand &c : trace.commands) {
        if (c.kind == K::read)
            break;
        before_reads += c.kind == K::write;
    }
    EXPECT_EQ(before_reads, 6u) << "from eight down to two, then the reads";
    EXPECT_EQ(trace.count(K::write), 8u) << "the rest when no read is left";
    EXPECT_EQ(channel.stats().turnarounds, 3u);
}

TEST(DramWrites, ThatNeverCeaseDoNotStarveReads) {
    DramParams p = small_part();
    p.write_entries = 16, p.write_high = 8, p.write_low = 2;
    Traced channel(p);
    unsigned n = 0;
    for (Cycle now = 0; now < 20'000; ++now) {
        while (channel.writes() < 12)
            add(channel, {0, 0, ++n % 256, true, now}, n); // each wants another row of the bank
        if (now == 1000 || now == 1001)
            add(channel, {0, 1, 7, false, now}, ++n);
        channel.run(now);
    }
    unsigned writes = 0, reads = 0;
    for (const DramCommand &c : channel.trace.commands) {
        reads += c.kind == K::read;
        writes += c.kind == K::write && c.cycle > 1000 && reads == 0;
    }
    EXPECT_EQ(reads, 2u);
    EXPECT_LE(writes, 8u) << "as many as begin a drain";
    EXPECT_GE(writes, 6u) << "a drain that has begun is not cut short";
}

TEST(DramWrites, AreServedAsOftenAsReadsWhereBothNeverCease) {
    DramParams p = small_part();
    p.write_entries = 16, p.write_high = 4, p.write_low = 1; // and more reads are within the scheduler's depth
    Traced channel(p);
    unsigned n = 0;
    for (Cycle now = 0; now < 20'000; ++now) {
        while (channel.writes() < 12)
            add(channel, {0, 0, ++n % 256, true, now}, n);
        while (channel.reads() < 32)
            add(channel, {0, 1, ++n % 256, false, now}, n);
        channel.run(now);
    }
    const auto reads = channel.trace.count(K::read), writes = channel.trace.count(K::write);
    EXPECT_NEAR(writes, reads, 8) << "a line that is read replaces another one, which may have to be written";
}

} // namespace
} // namespace moscope::dram::testing
