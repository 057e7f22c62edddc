// SPDX-License-Identifier: BSD-3-Clause
// The branch predictor by itself, and what a mispredicted branch costs a core.
#include <gtest/gtest.h>

#include "cpu/x86/timed/timed_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using namespace moscope::x86::test;

namespace {

constexpr Addr kBranch = 0x4010, kCode = 0x1000;

/// How many of the last `counted` of `all` outcomes of one branch are mispredicted; outcome(i) says whether it is taken.
template <class Outcome> unsigned unforeseen(unsigned all, unsigned counted, Outcome outcome) {
    BranchPredictor p;
    unsigned wrong = 0;
    for (unsigned i = 0; i < all; ++i)
        wrong += !p.went(kBranch, outcome(i)) && i >= all - counted;
    return wrong;
}

/// The time of a core that counts down from `loops` and jumps over an instruction or not, as bit `loops % 32` of `pattern`
/// says, with a misprediction that costs `cycles`.
Tick time_of(std::uint32_t pattern, unsigned cycles) {
    TimedParams params;
    params.core.model = "out_of_order";
    params.core.mispredicted_cycles = cycles;
    TimedMachine t(params);
    Addr at = kCode;
    const auto put = [&](std::initializer_list<int> bytes) {
        for (const int b : bytes)
            t.m.write<std::uint8_t>(at++, static_cast<std::uint8_t>(b));
    };
    put({0xb9, 32, 0, 0, 0});      // mov ecx, 32
    put({0x0f, 0xa3, 0xca});       // top: bt edx, ecx
    put({0x72, 0x02, 0x89, 0xc0}); // jc next; mov eax, eax
    put({0xff, 0xc9});             // next: dec ecx
    put({0x75, 0xf5, 0xf4});       // jnz top; hlt
    t.m.core.r[rdx] = pattern;
    t.m.core.rip = kCode;
    t.begin();
    t.queue.run(1'000'000 * kTicksPerNs);
    EXPECT_TRUE(t.m.core.halted);
    return t.core.window() - t.core.spent(TimedCore::Charge::idle);
}

} // namespace

TEST(BranchPredictor, ABranchThatAlwaysGoesOneWayIsPredicted) {
    EXPECT_EQ(unforeseen(200, 100, [](unsigned) { return true; }), 0u);
    EXPECT_EQ(unforeseen(200, 100, [](unsigned) { return false; }), 0u);
}

TEST(BranchPredictor, AnAlternatingBranchIsPredictedFromItsHistory) {
    EXPECT_EQ(unforeseen(200, 100, [](unsigned i) { return i % 2 == 0; }), 0u);
}

TEST(BranchPredictor, TheExitOfALoopIsPredictedAsFarAsTheHistoryReaches) {
    // The twelve outcomes before the exit of a loop of twelve iterations are unlike those before any other iteration's end.
    EXPECT_EQ(unforeseen(12 * 100, 12 * 50, [](unsigned i) { return i % 12 != 11; }), 0u);
    EXPECT_EQ(unforeseen(14 * 100, 14 * 50, [](unsigned i) { return i % 14 != 13; }), 50u) << "one in each loop";
}

TEST(BranchPredictor, TwentyFourReturnAddressesAreRememberedAndTheTwentyFifthIsLost) {
    for (const unsigned deep : {24u, 25u}) {
        BranchPredictor p;
        for (unsigned i = 0; i < deep; ++i)
            p.called(0x1000 + 16 * i);
        unsigned wrong = 0;
        for (unsigned i = deep; i-- > 0;)
            wrong += !p.returned(0x1000 + 16 * i);
        EXPECT_EQ(wrong, deep - 24);
    }
}

TEST(BranchPredictor, AComputedTargetIsPredictedOnceItHasBeenSeenWithTheSameHistory) {
    BranchPredictor p;
    EXPECT_FALSE(p.went_to(kBranch, 0x5000));
    EXPECT_TRUE(p.went_to(kBranch, 0x5000));
    EXPECT_FALSE(p.went_to(kBranch, 0x6000));
    EXPECT_TRUE(p.went_to(kBranch, 0x6000));
}

TEST(BranchPredictor, AMispredictedBranchCostsWhatTheParameterSays) {
    constexpr std::uint32_t kPattern = 0x5a3c96e1;
    BranchPredictor p;
    unsigned wrong = 0;
    for (unsigned left = 32; left; --left) {
        wrong += !p.went(kCode + 8, kPattern >> left % 32 & 1);
        wrong += !p.went(kCode + 14, left != 1);
    }
    ASSERT_GT(wrong, 10u);
    const Tick ten = time_of(kPattern, 10), thirty = time_of(kPattern, 30);
    EXPECT_EQ(thirty - ten, 20 * Tick{wrong} * kTicksPerNs) << "a cycle of the test's core is a nanosecond";
}
