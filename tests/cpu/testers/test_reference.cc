// SPDX-License-Identifier: BSD-3-Clause
// When a value counts as current, probed from both sides of each moment.
#include <gtest/gtest.h>

#include "cpu/testers/reference.hh"

using namespace moscope;
using namespace moscope::testers;

namespace {

struct Fixture : ::testing::Test {
    Rng rng{1};
    Reference ref{{0x1000, 0x2000}, 5, rng};
    static constexpr Agent kCore = 3;
    std::uint64_t store(unsigned i, Tick begin, Tick end, bool distant = false) {
        const auto v = ref.begin_write(i, kCore, AccessKind::store, begin, distant);
        ref.complete_write(i, v, end);
        return v;
    }
};
using ReferenceTest = Fixture;

TEST_F(ReferenceTest, LocationsOfALineDoNotOverlap) {
    std::uint64_t used[2] = {};
    for (unsigned i = 0; i < ref.size(); ++i) {
        const Location &l = ref.at(i);
        EXPECT_EQ(l.addr % l.size, 0u);
        const std::uint64_t mask = ((l.size == 8 ? 0x100u : 1u << l.size) - 1ull) << line_offset(l.addr);
        EXPECT_EQ(used[l.line] & mask, 0u);
        used[l.line] |= mask;
    }
    EXPECT_EQ(ref.size(), 10u);
}

TEST_F(ReferenceTest, MemoryIsZeroAtFirst) {
    EXPECT_TRUE(ref.load_ok(0, 0, 0, 0));
    EXPECT_FALSE(ref.load_ok(0, 1, 0, 1000));
}

TEST_F(ReferenceTest, AStoreIsSeenFromItsCompletionOn) {
    const auto v = store(0, 100, 200);
    EXPECT_FALSE(ref.load_ok(0, v, 150, 199));
    EXPECT_TRUE(ref.load_ok(0, v, 150, 200));
    EXPECT_TRUE(ref.load_ok(0, v, 300, 400));
}

TEST_F(ReferenceTest, TheOldValueIsAllowedOnlyForLoadsIssuedNoLaterThanTheCompletion) {
    store(0, 100, 200);
    EXPECT_TRUE(ref.load_ok(0, 0, 200, 300));
    EXPECT_FALSE(ref.load_ok(0, 0, 201, 300));
}

TEST_F(ReferenceTest, AStoreInFlightIsNotSeen) {
    const auto v = ref.begin_write(0, kCore, AccessKind::store, 100, false);
    EXPECT_FALSE(ref.load_ok(0, v, 100, 1000));
    EXPECT_TRUE(ref.load_ok(0, 0, 100, 1000));
    EXPECT_TRUE(ref.being_written(0));
    EXPECT_TRUE(ref.can_write(0, kNever));
}

TEST_F(ReferenceTest, AWriteOnItsWayToMemoryMayOrMayNotBeSeen) {
    const auto v = ref.begin_write(0, kFirstDevice, AccessKind::store, 100, true);
    EXPECT_FALSE(ref.load_ok(0, v, 50, 99));
    EXPECT_TRUE(ref.load_ok(0, v, 50, 100));
    EXPECT_TRUE(ref.load_ok(0, 0, 150, 160));
    ref.complete_write(0, v, 200);
    EXPECT_FALSE(ref.load_ok(0, 0, 201, 300));
    EXPECT_TRUE(ref.load_ok(0, v, 201, 300));
}

TEST_F(ReferenceTest, AStoreDuringADistantWriteLeavesBothPossibleUntilTheNextWrite) {
    const auto far = ref.begin_write(0, kFirstDevice, AccessKind::store, 100, true);
    const auto near = store(0, 100, 150);
    EXPECT_FALSE(ref.load_ok(0, 0, 151, 160)); // one of the two has replaced the initial value
    ref.complete_write(0, far, 200);
    for (const auto v : {far, near}) {
        EXPECT_TRUE(ref.load_ok(0, v, 201, 300));
        EXPECT_TRUE(ref.may_be_current(0, v, 300));
    }
    const auto last = store(0, 350, 400);
    for (const auto v : {far, near})
        EXPECT_FALSE(ref.load_ok(0, v, 401, 500));
    EXPECT_TRUE(ref.may_be_current(0, last, 500));
}

TEST_F(ReferenceTest, ADistantWriteReplacesValuesOfStoresCompletedBeforeItsIssue) {
    const auto old = store(0, 50, 100);
    const auto far = store(0, 100, 200, true);
    EXPECT_TRUE(ref.load_ok(0, old, 200, 200));
    EXPECT_FALSE(ref.load_ok(0, old, 201, 300));
    EXPECT_FALSE(ref.may_be_current(0, old, 300));
    EXPECT_TRUE(ref.may_be_current(0, far, 300));
}

TEST_F(ReferenceTest, TwoDistantWritesThatOverlapMayEndEitherWay) {
    const auto a = ref.begin_write(0, kFirstDevice, AccessKind::store, 100, true);
    const auto b = ref.begin_write(0, kFirstDevice + 1, AccessKind::store, 150, true);
    ref.complete_write(0, a, 200);
    ref.complete_write(0, b, 250);
    EXPECT_TRUE(ref.may_be_current(0, a, 300));
    EXPECT_TRUE(ref.may_be_current(0, b, 300));
    EXPECT_FALSE(ref.may_be_current(0, 0, 300));
}

TEST_F(ReferenceTest, DistantWritesWaitWhenTooManyValuesArePossible) {
    for (unsigned k = 0; ref.can_write(0, kNever); ++k) {
        ASSERT_LT(k, 20u);
        ref.begin_write(0, kCore, AccessKind::nt_store, 10, true);
    }
    EXPECT_TRUE(ref.being_written(0));
}

TEST_F(ReferenceTest, ALoadMayReturnAnyOfSeveralValuesOfItsTime) {
    const auto a = store(0, 0, 100), b = store(0, 0, 200), c = store(0, 0, 300);
    for (const auto v : {a, b, c})
        EXPECT_TRUE(ref.load_ok(0, v, 150, 350));
    EXPECT_FALSE(ref.load_ok(0, a, 201, 350));
    EXPECT_FALSE(ref.load_ok(0, c, 150, 299));
}

TEST_F(ReferenceTest, ValuesAreReusedOnlyWhenNoLoadCanStillReturnTheOldOnes) {
    Tick t = 1;
    for (unsigned i = 0; i + 1 < Reference::kRemembered; ++i, ++t)
        store(0, t, t);
    // The next value to reuse is the initial one, which was current until tick 1.
    EXPECT_FALSE(ref.can_write(0, 1));
    EXPECT_TRUE(ref.can_write(0, 2));
}

TEST_F(ReferenceTest, AReportNamesReaderWriterAndTheExpectedValues) {
    const auto a = store(0, 1'000'000, 2'000'000), b = store(0, 3'000'000, 4'000'000);
    const std::string text = ref.explain(0, a, 17, AccessKind::load, 5'000'000, 6'000'000);
    for (const char *part : {"core 17", "core 3", "2.000 ns to 4.000 ns", "; expected "})
        EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_TRUE(ref.may_be_current(0, b, 6'000'000));
    EXPECT_FALSE(ref.may_be_current(0, a, 6'000'000));
}

} // namespace
