// SPDX-License-Identifier: BSD-3-Clause
// Which transactions of a line an episode records.
#include <gtest/gtest.h>
#include <vector>

#include "attribution/episodes.hh"

using namespace moscope;

namespace {

constexpr Addr kLine = 0x1000;
constexpr Addr kRival = kLine + 1021 * kLineBytes; // in the same slot

struct EpisodesTest : testing::Test {
    Episodes episodes;
    Tick now = 0;

    void transactions(Addr line, unsigned n) {
        for (; n > 0; --n) {
            TransactionRecord r;
            r.line = line;
            r.issued = ++now;
            if (episodes.wants(line))
                episodes.add(r);
        }
    }
    std::vector<Tick> recorded() const {
        std::vector<Tick> when;
        episodes.for_each([&](const TransactionRecord &r) { when.push_back(r.issued); });
        return when;
    }
};

TEST_F(EpisodesTest, AnEpisodeBeginsAfterKFromTransactionsAndHasKLongest) {
    transactions(kLine, Episodes::kFrom);
    EXPECT_TRUE(recorded().empty());
    transactions(kLine, 2 * Episodes::kLongest);
    ASSERT_EQ(recorded().size(), Episodes::kLongest);
    EXPECT_EQ(recorded().front(), Tick{Episodes::kFrom + 1});
    EXPECT_EQ(recorded().back(), Tick{Episodes::kFrom + Episodes::kLongest});
}

TEST_F(EpisodesTest, AnEpisodeThatHasBegunSkipsNoTransactionWhenAnotherLineTakesVotesAway) {
    transactions(kLine, Episodes::kFrom + 2);
    transactions(kRival, 10); // the line has fewer than kFrom votes left
    transactions(kLine, 3);
    EXPECT_EQ(recorded(), (std::vector<Tick>{17, 18, 29, 30, 31}));
}

TEST_F(EpisodesTest, ALineThatTakesTheSlotDropsTheEpisodeOfTheLineBefore) {
    transactions(kLine, Episodes::kFrom + 1);
    transactions(kRival, Episodes::kFrom + 2);
    EXPECT_TRUE(recorded().empty());
    transactions(kRival, Episodes::kFrom);
    EXPECT_EQ(recorded().size(), 1u);
}

} // namespace
