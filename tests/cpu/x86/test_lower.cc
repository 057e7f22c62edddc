// SPDX-License-Identifier: BSD-3-Clause
// From an instruction's bytes to the function that carries it out.
#include <gtest/gtest.h>

#include <array>

#include "cpu/x86/decode/lower.hh"

namespace moscope::x86 {
namespace {

/// The form of the instruction that the bytes are in 64-bit mode, and the Op.
const Form *lowered(std::initializer_list<std::uint8_t> bytes, Op &op) {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    Insn insn;
    insn.mode = Mode::code64;
    EXPECT_TRUE(ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.begin(), bytes.size(), &insn.z, insn.op)));
    fill_operands(insn, op);
    return lower(insn, op);
}

TEST(Lower, StringInstructionsThatShareANameWithSseOnesAreDistinguished) {
    Op string, repeated;
    EXPECT_NE(lowered({0xa5}, string), nullptr);         // MOVSD (as MOVSDW)
    EXPECT_NE(lowered({0xf3, 0xa7}, repeated), nullptr); // REPE CMPSD
    Op sse;
    lowered({0xf2, 0x0f, 0x10, 0xc1}, sse); // MOVSD XMM0, XMM1
    EXPECT_NE(sse.exec, string.exec);
}

TEST(Lower, RegistersAreByteOffsetsSoThatAhIsTheByteAfterAl) {
    Op op;
    ASSERT_NE(lowered({0x00, 0xe3}, op), nullptr); // ADD BL, AH
    EXPECT_EQ(op.dst, rbx * 8);
    EXPECT_EQ(op.src, rax * 8 + 1);
}

} // namespace
} // namespace moscope::x86
