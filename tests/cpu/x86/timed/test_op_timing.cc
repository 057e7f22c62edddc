// SPDX-License-Identifier: BSD-3-Clause
// The table that operations have their timing in by number.
#include <gtest/gtest.h>

#include <set>

#include "cpu/x86/timed/op_timing.hh"

using namespace moscope::x86;

TEST(TimingTable, NumbersEachTimingOnceAndKeepsItWhereItIs) {
    TimingTable table;
    const OpTiming *all = table.all();
    EXPECT_EQ(all[0].latency, 0) << "a block's end takes no time";
    EXPECT_EQ(table.number({all[0], {}}), 0u);
    std::vector<std::uint32_t> numbers;
    for (unsigned i = 0; i < 5000; ++i)
        numbers.push_back(table.number({{.reads = i % 70, .writes = i / 70, .latency = 3, .occupies = 0}, {}}));
    for (unsigned i = 0; i < 5000; ++i) {
        EXPECT_EQ(table.number({{.reads = i % 70, .writes = i / 70, .latency = 3, .occupies = 0}, {}}), numbers[i]);
        EXPECT_EQ(all[numbers[i]].reads, i % 70);
        EXPECT_EQ(all[numbers[i]].writes, i / 70);
    }
    EXPECT_EQ(std::set<std::uint32_t>(numbers.begin(), numbers.end()).size(), numbers.size());
}

TEST(TimingTable, CodeThatCannotBeReadTakesACycleForEachInstruction) {
    const std::vector<TimedOp> all = timing_of({}, Mode::code64, 3);
    ASSERT_EQ(all.size(), 4u);
    for (unsigned i = 0; i < 3; ++i)
        EXPECT_EQ(all[i].timing, OpTiming{});
    EXPECT_EQ(all[3].timing.latency, 0);
}
