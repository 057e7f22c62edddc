// SPDX-License-Identifier: BSD-3-Clause
// Loads in flight by instruction, from hand-made transactions: the average over the time in which a core has any.
#include <cstring>

#include <gtest/gtest.h>

#include "attribution/loads_in_flight.hh"

using namespace moscope;

namespace {

constexpr Addr kOther = 0x1000;

struct Loads : testing::Test {
    LoadsInFlight loads{{0, 0, 1}}; // chips of three cores

    void ended(unsigned core, Addr pc, Tick issued, Tick done, AccessKind kind = AccessKind::load,
               Addr space = kOther) {
        Access x;
        x.kind = kind;
        x.issued = issued;
        x.done = done;
        loads.ended({&x, core, pc, 0, 0, false, true, space});
    }
    std::vector<LoadRow> rows() const {
        const std::string packed = loads.packed();
        std::vector<LoadRow> all(packed.size() / sizeof(LoadRow));
        std::memcpy(all.data(), packed.data(), packed.size());
        return all;
    }
};

} // namespace

TEST_F(Loads, OneAfterTheOtherAreOneInFlight) {
    ended(0, 1, 0, 100);
    ended(0, 1, 100, 200);
    ended(0, 1, 250, 350);
    ASSERT_EQ(rows().size(), 1u);
    EXPECT_EQ(rows()[0].loads, 3u);
    EXPECT_EQ(rows()[0].latency, 300);
    EXPECT_EQ(rows()[0].occupied, 300);
}

TEST_F(Loads, FourAtOnceAreFourInFlight) {
    for (unsigned i = 0; i < 4; ++i)
        ended(0, 1, 0, 100);
    EXPECT_EQ(rows()[0].latency, 4 * rows()[0].occupied);
}

TEST_F(Loads, OverlappedTimeBelongsToTheInstructionOfTheEarlierLoad) {
    ended(0, 1, 0, 100);
    ended(0, 2, 50, 150);
    ASSERT_EQ(rows().size(), 2u);
    EXPECT_EQ(rows()[0].occupied, 100);
    EXPECT_EQ(rows()[1].occupied, 50);
}

TEST_F(Loads, OverlappedTimeBelongsToTheLoadRequestedFirstWhicheverEndsFirst) {
    ended(0, 2, 20, 60);
    ended(0, 2, 200, 300);
    ended(0, 1, 0, 500);
    ended(0, 3, 450, 520);
    ASSERT_EQ(rows().size(), 3u);
    EXPECT_EQ(rows()[0].occupied, 500);
    EXPECT_EQ(rows()[1].occupied, 0);
    EXPECT_EQ(rows()[2].occupied, 20);
}

TEST_F(Loads, ALongLoadCoversAnyNumberOfShortOnes) {
    constexpr unsigned kShort = 200;
    for (unsigned round = 0; round < 10; ++round) {
        const Tick begin = 100'000 * round;
        for (unsigned i = 0; i < kShort; ++i)
            ended(0, 2, begin + 1 + 10 * i, begin + 6 + 10 * i);
        ended(0, 1, begin, begin + 10 * kShort);
    }
    ASSERT_EQ(rows().size(), 2u);
    EXPECT_EQ(rows()[0].occupied, 10 * 10 * kShort);
    EXPECT_EQ(rows()[1].loads, 10 * kShort);
    EXPECT_EQ(rows()[1].occupied, 0);
}

TEST_F(Loads, OverlapIsCountedByCoreAndRowsAreByAddressSpace) {
    ended(0, 1, 0, 100);
    ended(1, 1, 0, 100);
    ended(1, 1, 200, 300, AccessKind::load, 2 * kOther);
    ASSERT_EQ(rows().size(), 2u);
    EXPECT_EQ(rows()[0].loads, 2u);
    EXPECT_EQ(rows()[0].occupied, 200) << "of two cores";
    EXPECT_EQ(rows()[1].address_space, 2 * kOther);
}

TEST_F(Loads, CoresOfTwoChipsAreCountedTogether) {
    ended(1, 1, 0, 100);
    ended(2, 1, 0, 100);
    ASSERT_EQ(rows().size(), 1u);
    EXPECT_EQ(rows()[0].loads, 2u);
}

TEST_F(Loads, TablesGrowAndLoseNothing) {
    constexpr unsigned kInstructions = 10'000;
    for (unsigned turn = 0; turn < 3; ++turn)
        for (unsigned pc = 1; pc <= kInstructions; ++pc)
            ended(pc % 3, pc, pc * 10, pc * 10 + 7);
    const std::vector<LoadRow> all = rows();
    ASSERT_EQ(all.size(), kInstructions);
    for (unsigned i = 0; i < kInstructions; ++i) {
        EXPECT_EQ(all[i].pc, i + 1);
        EXPECT_EQ(all[i].loads, 3u);
        EXPECT_EQ(all[i].latency, 21);
    }
}

TEST_F(Loads, OnlyLoadsCountAndAResetForgetsThem) {
    ended(0, 1, 0, 100, AccessKind::store);
    EXPECT_TRUE(rows().empty());
    ended(0, 1, 0, 100);
    loads.reset();
    EXPECT_TRUE(rows().empty());
}
