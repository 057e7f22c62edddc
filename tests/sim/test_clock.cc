// SPDX-License-Identifier: BSD-3-Clause
// Clock edges are computed, not accumulated: a cursor that walks a clock in any way agrees with floor(n*num/den).
#include <algorithm>

#include <gtest/gtest.h>

#include "base/rng.hh"
#include "sim/clock.hh"

using namespace moscope;

namespace {

const Clock kCore{1'250'000, 3};          // 2.4 GHz
const Clock kNorth{5'000'000, 11};        // 2.2 GHz
const Clock kFast{5'000'000, 13};         // 2.6 GHz
const Clock kOdd{10'000'000'000, 23'333}; // 2.3333 GHz: reciprocals are exact for fewer cycles

Tick exact(const Clock &c, std::int64_t n) { return static_cast<Tick>(static_cast<__int128>(n) * c.num / c.den); }

TEST(Clock, EdgesAreTheFloorOfTheExactTime) {
    for (const Clock &c : {kCore, kNorth, kFast, kOdd})
        for (std::int64_t n : {0l, 1l, 2l, 3l, 1'000'003l, 2'400'000'000l, 20'000'000'000'000l})
            EXPECT_EQ(c.edge(n), exact(c, n));
}

TEST(Clock, TheFirstEdgeAtOrAfterATickIsNeitherEarlyNorOneTooLate) {
    Rng rng(7);
    for (const Clock &c : {kCore, kNorth, kFast, kOdd})
        for (int i = 0; i < 20000; ++i) {
            const auto t = static_cast<Tick>(rng.below(1ull << (1 + rng.below(60))));
            const auto n = c.edge_at_or_after(t);
            EXPECT_GE(c.edge(n), t);
            if (n > 0) {
                EXPECT_LT(c.edge(n - 1), t);
            }
        }
}

TEST(ClockCursor, WalkingByRandomStepsNeverDriftsFromTheComputedEdge) {
    Rng rng(11);
    for (const Clock &c : {kCore, kNorth, kFast, kOdd}) {
        ClockCursor cursor(c);
        const auto step = cursor.step(3);
        for (int i = 0; i < 50000; ++i) {
            switch (rng.below(3)) {
            case 0:
                EXPECT_EQ(cursor.after(step), exact(c, cursor.cycle() + 3));
                cursor.advance(step);
                break;
            case 1: cursor.advance_to(cursor.tick() + static_cast<Tick>(rng.below(5'000'000))); break;
            default: cursor.advance_to(cursor.tick() + static_cast<Tick>(rng.below(1ull << 45)));
            }
            ASSERT_EQ(cursor.tick(), exact(c, cursor.cycle()));
            const auto k = static_cast<std::int64_t>(rng.below(2'000'000));
            ASSERT_EQ(cursor.after(k), exact(c, cursor.cycle() + k));
        }
    }
}

TEST(ClockCursor, MovingToAnEdgeFoundAheadIsTheSameAsAdvancingToIt) {
    Rng rng(17);
    for (const Clock &c : {kCore, kNorth, kFast, kOdd}) {
        ClockCursor here(c);
        for (int i = 0; i < 20000; ++i) {
            // Also ticks of the past, and steps beyond those that need no division.
            const auto t = here.tick() + static_cast<Tick>(rng.below(1ull << (1 + rng.below(42)))) - Tick{1000};
            const ClockCursor::Edge edge = here.edge_at_or_after(t);
            EXPECT_EQ(edge.tick, here.align(t));
            ClockCursor moved = here;
            moved.move_to(edge);
            here.advance_to(std::max(t, here.tick()));
            EXPECT_EQ(moved.tick(), here.tick());
            EXPECT_EQ(moved.cycle(), here.cycle());
            for (const std::int64_t k : {0l, 1l, 2l, 3l, 1'000'003l})
                EXPECT_EQ(moved.after(k), here.after(k));
        }
    }
}

TEST(ClockCursor, MovesToAnEdgeFoundSomeCyclesAfterAnother) {
    Rng rng(19);
    for (const Clock &c : {kCore, kNorth, kFast, kOdd}) {
        ClockCursor here(c);
        for (int i = 0; i < 20000; ++i) {
            here.advance_to(here.tick() + static_cast<Tick>(rng.below(3'000'000)));
            // Also ticks of the past, and numbers of cycles beyond those that need no division.
            const auto t =
                std::max<Tick>(0, here.tick() + static_cast<Tick>(rng.below(1ull << (1 + rng.below(42)))) - 100'000);
            const auto k = static_cast<std::int64_t>(rng.below(1ull << rng.below(22)));
            ClockCursor moved = here;
            moved.move_to(here.edge_after(t, k));
            ASSERT_EQ(moved.tick(), here.after_edge(t, k));
            ASSERT_EQ(moved.tick(), exact(c, moved.cycle()));
            ASSERT_EQ(moved.after(5), exact(c, moved.cycle() + 5));
        }
    }
}

TEST(ClockCursor, AlignGivesTheEdgeThatEdgeAtOrAfterGives) {
    Rng rng(13);
    for (const Clock &c : {kCore, kNorth, kFast, kOdd}) {
        ClockCursor cursor(c);
        for (int i = 0; i < 20000; ++i) {
            cursor.advance_to(cursor.tick() + static_cast<Tick>(rng.below(3'000'000)));
            const Tick t = cursor.tick() + static_cast<Tick>(rng.below(10'000'000));
            ASSERT_EQ(cursor.align(t), c.edge(c.edge_at_or_after(t)));
        }
    }
}

} // namespace
