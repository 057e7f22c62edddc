// SPDX-License-Identifier: BSD-3-Clause
// Which waits become samples, and what they stand for.
#include <gtest/gtest.h>
#include <vector>

#include "attribution/sample_points.hh"

using namespace moscope;

namespace {

constexpr Tick kPeriod = 500'000;

/// What the samples say about the wait of each kind, after `rounds` rounds of one wait of each.
std::vector<Tick> sampled(const std::vector<Tick> &waits, unsigned rounds, bool widens = false) {
    SamplePoints points(1, kPeriod);
    std::vector<Tick> sums(waits.size());
    for (unsigned round = 0; round < rounds; ++round) {
        if (widens && round == rounds / 2)
            points.widen();
        for (std::size_t kind = 0; kind < waits.size(); ++kind)
            if (points.waited(waits[kind]))
                sums[kind] += points.take();
    }
    return sums;
}

TEST(SamplePoints, EachOfThreeWaitsThatRepeatGetsItsShare) {
    const std::vector<Tick> waits{100'000, 250'000, 150'000}; // together one period
    for (const bool widens : {false, true}) {
        const std::vector<Tick> got = sampled(waits, 20'000, widens);
        for (std::size_t kind = 0; kind < waits.size(); ++kind)
            EXPECT_NEAR(static_cast<double>(got[kind]), 20'000.0 * waits[kind], 0.03 * 20'000 * waits[kind]) << kind;
    }
}

TEST(SamplePoints, WaitsOfManyPeriodsCountForTheirLength) {
    const std::vector<Tick> got = sampled({1'234'567'890, 10}, 3);
    EXPECT_NEAR(static_cast<double>(got[0]), 3.0 * 1'234'567'890, kPeriod);
    EXPECT_EQ(got[0] % kPeriod, 0);
}

TEST(SamplePoints, SamplesStandForAllOfTheWaitingToWithinAPeriod) {
    SamplePoints points(7, kPeriod);
    Tick waited = 0, sampled = 0;
    for (Tick time = 0; time < 3 * kPeriod; time += 997) {
        waited += time;
        if (points.waited(time))
            sampled += points.take();
        ASSERT_LE(std::abs(waited - sampled), kPeriod) << time;
    }
}

TEST(SamplePoints, APointThatWasDrawnBeforePeriodsWidenStandsForAnEarlierPeriod) {
    SamplePoints points(1, kPeriod);
    std::vector<Tick> standing;
    while (standing.size() < 4)
        if (points.waited(100)) {
            standing.push_back(points.take());
            if (standing.size() == 1)
                points.widen();
        }
    EXPECT_EQ(standing, (std::vector<Tick>{kPeriod, kPeriod, 2 * kPeriod, 2 * kPeriod}));
}

} // namespace
