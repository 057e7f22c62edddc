// SPDX-License-Identifier: BSD-3-Clause
// The numbers of states in the set of states seen.
#include <set>

#include <gtest/gtest.h>

#include "verify/visited.hh"

namespace moscope::verify {
namespace {

/// The hash of a state of a part.
Hash hash_in(std::uint64_t part, std::uint32_t state) { return {part << 58 | state, state}; }

TEST(Visited, a_state_that_would_get_the_number_of_another_is_refused) {
    constexpr std::uint32_t kMost = 3;
    Visited visited(kMost);
    std::set<std::uint32_t> numbers;
    bool fresh;
    for (std::uint32_t part = 0; part < Visited::kParts; ++part)
        for (std::uint32_t state = 0; state < kMost; ++state)
            numbers.insert(visited.insert(hash_in(part, state), Visited::kNone, fresh));
    EXPECT_EQ(numbers.size(), kMost * Visited::kParts);
    EXPECT_THROW(visited.insert(hash_in(5, kMost), 0, fresh), TooManyStates);
    EXPECT_EQ(visited.size(), kMost * Visited::kParts);
    const std::uint32_t known = visited.insert(hash_in(5, 0), 0, fresh);
    EXPECT_FALSE(fresh);
    EXPECT_TRUE(numbers.contains(known));
}

TEST(Visited, the_largest_number_is_below_that_of_no_state) {
    constexpr std::uint32_t kMostInPart = Visited::kNone / Visited::kParts; // the default
    EXPECT_LT(std::uint64_t{kMostInPart - 1} * Visited::kParts + Visited::kParts - 1, Visited::kNone);
}

} // namespace
} // namespace moscope::verify
