// SPDX-License-Identifier: BSD-3-Clause
// The table of timings: operations refer to their timing by its number.
#include <gtest/gtest.h>

#include <set>

#include "cpu/x86/timed/op_timing.hh"

using namespace moscope::x86;

TEST(TimingTable, NumbersEachTimingOnceAndNeverMovesIt) {
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

TEST(TimingTable, ATimingMarkedApartDiffersInNothingElse) {
    TimingTable table;
    const OpTiming *all = table.all();
    EXPECT_TRUE(all[0].touches & kApart) << "a block's end";
    const std::uint32_t n = table.number({{.reads = 3, .writes = 5, .latency = 3}, {}}), apart = table.apart(n);
    EXPECT_NE(apart, n);
    EXPECT_EQ(table.apart(n), apart);
    EXPECT_EQ(table.apart(apart), apart);
    EXPECT_EQ(table.number({{.reads = 3, .writes = 5, .latency = 3}, {}}), n);
    OpTiming same = all[n];
    EXPECT_EQ(same.touches, RegMask{7});
    same.touches |= kApart;
    EXPECT_EQ(all[apart], same);
    EXPECT_EQ(table.pipes()[apart], table.pipes()[n]);
}

TEST(TimingTable, CodeThatCannotBeReadTakesACycleForEachInstruction) {
    const std::vector<TimedOp> all = timing_of({}, Mode::code64, 3);
    ASSERT_EQ(all.size(), 4u);
    for (unsigned i = 0; i < 3; ++i)
        EXPECT_EQ(all[i].timing, OpTiming{});
    EXPECT_EQ(all[3].timing.latency, 0);
}

TEST(TimingTable, FindsAnInstructionByItsBytesWithoutDisplacementAndImmediate) {
    using Bytes = std::vector<std::uint8_t>;
    TimingTable table;
    const auto alike = [&table](const Bytes &one, const Bytes &other, unsigned values) {
        const std::uint32_t n = table.number_of(one, values, Mode::code64);
        EXPECT_NE(n, TimingTable::kUnknown);
        EXPECT_EQ(table.number_of(other, values, Mode::code64), n);
        EXPECT_EQ(n, table.number(timing_of(one, Mode::code64, 1)[0]));
        EXPECT_EQ(n, table.number(timing_of(other, Mode::code64, 1)[0]));
    };
    alike({0x48, 0x8d, 0x44, 0xc8, 0x00}, {0x48, 0x8d, 0x44, 0xc8, 0x10}, 1);             // LEA, displacement 0 and 16
    alike({0xc7, 0x43, 0x00, 0, 0, 0, 0}, {0xc7, 0x43, 0x08, 1, 2, 3, 4}, 5);             // MOV [RBX + d], i
    alike({0xe8, 0, 0, 0, 0}, {0xe8, 0xff, 0xff, 0xff, 0x7f}, 4);                         // CALL
    alike({0x48, 0xc1, 0xe0, 0x00}, {0x48, 0xc1, 0xe0, 0x3f}, 1);                         // SHL by 0 and by 63
    alike({0x48, 0xa1, 0, 0, 0, 0, 0, 0, 0, 0}, {0x48, 0xa1, 8, 7, 6, 5, 4, 3, 2, 1}, 8); // MOV RAX, [address]
    const auto number = [&table](const Bytes &b, unsigned values, Mode mode = Mode::code64) {
        return table.number_of(b, values, mode);
    };
    for (const Mode mode : {Mode::code64, Mode::code32}) { // MOVSXD there, ARPL here
        const std::uint32_t n = number({0x63, 0xc8}, 0, mode);
        EXPECT_NE(n, TimingTable::kUnknown);
        EXPECT_EQ(n, table.number(timing_of(Bytes{0x63, 0xc8}, mode, 1)[0]));
    }
    EXPECT_EQ(number({0x0f, 0x04, 0x00, 0x00}, 0), TimingTable::kUnknown); // a pseudo-instruction
    EXPECT_EQ(number({0xe8, 1, 2, 3, 4}, 3), TimingTable::kUnknown) << "the values are four bytes";
    EXPECT_EQ(number({0x90, 0x90}, 0), TimingTable::kUnknown) << "two instructions";
}
