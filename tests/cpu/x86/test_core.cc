// SPDX-License-Identifier: BSD-3-Clause
// The loop and the block cache: straight code, loops, code that changes itself, instructions across pages.
#include <gtest/gtest.h>

#include "cpu/x86/flat_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using test::FlatMachine;

namespace {

struct CoreTest : testing::Test {
    CoreTest() { m.long_mode(); }
    FlatMachine m;
};

TEST_F(CoreTest, RunsALoop) {
    // xor eax,eax; mov ecx,10; L: add eax,ecx; dec ecx; jnz L; m5 exit-like: jmp self
    m.code(0x1000, {0x31, 0xc0, 0xb9, 10, 0, 0, 0, 0x01, 0xc8, 0xff, 0xc9, 0x75, 0xfa, 0xeb, 0xfe});
    EXPECT_EQ(m.core.run(100), Exit::none);
    EXPECT_EQ(m.core.r[rax], 55u);
    EXPECT_EQ(m.core.r[rcx], 0u);
    EXPECT_GE(m.core.retired, 100u);
}

TEST_F(CoreTest, CallsAndReturns) {
    // call +2 (to 1007); jmp self; f: mov rax,[rsp]; ret
    m.code(0x1000, {0xe8, 2, 0, 0, 0, 0xeb, 0xfe, 0x48, 0x8b, 0x04, 0x24, 0xc3});
    m.core.run(20);
    EXPECT_EQ(m.core.r[rax], 0x1005u);
    EXPECT_EQ(m.core.r[rsp], 0x200000u);
}

TEST_F(CoreTest, CodeThatOverwritesTheNextInstructionRunsTheNewOne) {
    // mov byte [rip+1], 0x42 ; mov al, 0x11 (its immediate is overwritten) ; jmp self
    m.code(0x1000, {0xc6, 0x05, 1, 0, 0, 0, 0x42, 0xb0, 0x11, 0xeb, 0xfe});
    m.core.run(10);
    EXPECT_EQ(m.core.r[rax] & 0xff, 0x42u);
}

TEST_F(CoreTest, AnInstructionMayCrossAPage) {
    // mov rax, imm64 over the end of a page, then jmp self
    m.code(0x1ffb, {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0xeb, 0xfe});
    m.core.run(10);
    EXPECT_EQ(m.core.r[rax], 0x0807060504030201u);
    // Its second half changes: the block is found by its first half.
    m.write<std::uint8_t>(0x2004, 0x99);
    m.core.rip = 0x1ffb;
    m.core.run(10);
    EXPECT_EQ(m.core.r[rax], 0x9907060504030201u);
}

TEST_F(CoreTest, M5OpsReachThePlatform) {
    m.code(0x1000, {0x0f, 0x04, 0x5a, 0x00, 0xeb, 0xfe});
    m.core.run(3);
    EXPECT_EQ(m.last_m5op, 0x5au);
}

TEST_F(CoreTest, ARipRelativeOperandCountsFromTheNextInstruction) {
    m.write<std::uint64_t>(0x3000, 0x1122334455667788);
    m.code(0x1000, {0x90, 0x48, 0x8b, 0x05, 0xf8, 0x1f, 0, 0, 0xeb, 0xfe}); // nop; mov rax,[rip+0x1ff8]
    m.core.run(3);
    EXPECT_EQ(m.core.r[rax], 0x1122334455667788u);
}

} // namespace
