// SPDX-License-Identifier: BSD-3-Clause
// The time of loops on the overlapping model beside published latencies and throughputs of family 10h, within 10 %: those
// of instruction tables (A. Fog, "AMD K10") and of GCC's description of amdfam10. In a chain each instruction needs the
// result of the one before; the others are independent of each other.
#include <gtest/gtest.h>

#include <string>

#include "cpu/x86/timed/machine_code.hh"
#include "cpu/x86/timed/timed_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using namespace moscope::x86::test;

namespace {

constexpr Addr kCode = 0x1000, kData = 0x100000, kStack = 0x200000;
constexpr unsigned kTurns = 100, kBytes = 480; ///< of the loop; how long its unrolled body is at least

struct Loop {
    const char *name;
    Bytes code;
    double cycles; ///< for `code` once
};
#define LOOP(name, cycles, text)                                                                                       \
    Loop { name, CODE(text), cycles }

std::vector<Loop> integer_loops() {
    return {
        LOOP("add_chain", 1, "add eax, ebx"),
        LOOP("add", 2, "add eax, ebp; add ebx, ebp; add edx, ebp; add edi, ebp; add r8d, ebp; add r9d, ebp"),
        LOOP("adc_chain", 1, "adc eax, ebx"),
        LOOP("inc_chain", 1, "inc eax"),
        LOOP("neg_chain", 1, "neg eax"),
        LOOP("mov_chain", 2, "mov eax, ebx; mov ebx, eax"),
        LOOP("mov", 1, "mov eax, ebp; mov ebx, ebp; mov edx, ebp"),
        LOOP("movzx_chain", 1, "movzx eax, al"),
        LOOP("movsx_chain", 1, "movsxd rax, eax"),
        LOOP("lea_chain", 1, "lea rax, [rax + 8]"),
        LOOP("lea_of_two_registers_chain", 1, "lea rax, [rax + rbx]"),
        LOOP("lea_with_scale_chain", 2, "lea rax, [rbx + rax * 4]"),
        LOOP("lea_of_three_chain", 2, "lea rax, [rbx + rax + 8]"),
        LOOP("shift_chain", 1, "shl eax, 3"),
        LOOP("shift_by_cl_chain", 1, "shr eax, cl"),
        LOOP("rotate_chain", 1, "rol eax, 5"),
        LOOP("shift", 1, "shl eax, 3; shr ebx, 2; sar edx, 1"),
        LOOP("shld_chain", 3, "shld eax, ebx, 5"),
        LOOP("shld", 6, "shld eax, ebp, 5; shld ebx, ebp, 5"),
        LOOP("imul_32_chain", 3, "imul eax, ebx"),
        LOOP("imul_32", 3, "imul eax, ebp; imul ebx, ebp; imul edx, ebp"),
        LOOP("imul_64_chain", 4, "imul rax, rbx"),
        LOOP("imul_64", 6, "imul rax, rbp; imul rbx, rbp; imul rdx, rbp"),
        LOOP("imul_by_constant_chain", 3, "imul eax, eax, 1000"),
        LOOP("bsf_chain", 4, "bsf eax, eax; "),
        LOOP("bsr", 9, "bsr eax, ebp; bsr ebx, ebp; bsr edx, ebp"),
        LOOP("popcnt_chain", 2, "popcnt eax, eax"),
        LOOP("popcnt", 3, "popcnt eax, ebp; popcnt ebx, ebp; popcnt edx, ebp"),
        LOOP("lzcnt_chain", 2, "lzcnt eax, eax"),
        LOOP("lzcnt", 3, "lzcnt eax, ebp; lzcnt ebx, ebp; lzcnt edx, ebp"),
        LOOP("cmov_chain", 1, "cmovz eax, ebx"),
        LOOP("cmov", 1, "cmovz eax, ebp; cmovz ebx, ebp; cmovz edx, ebp"),
        LOOP("setcc_of_flags_chain", 2, "cmp eax, ebp; setz al"),
        LOOP("carry_of_flags_chain", 2, "cmp eax, ebp; sbb eax, eax"),
        LOOP("cmov_of_flags_chain", 5, "imul eax, ebx; test eax, eax; cmovz eax, ebp"),
        LOOP("setcc", 1, "setz al; setz bl; setz dl"),
        LOOP("bswap_chain", 1, "bswap eax"),
        LOOP("xchg_chain", 2, "xchg eax, ebx"),
        LOOP("bit_test", 1, "bt eax, 3; bt ebx, 4; bt edx, 5"),
        LOOP("bit_set_chain", 2, "bts eax, 3"),
        LOOP("cleared_register", 1, "imul eax, eax; xor eax, eax"),
        LOOP("nop", 1, "nop; nop; nop"),
    };
}

std::vector<Loop> memory_loops() {
    return {
        LOOP("load_chain", 3, "mov r10, [r10]"),
        LOOP("load", 2, "mov eax, [rsi]; mov ebx, [rsi + 8]; mov edx, [rsi + 16]; mov edi, [rsi + 24]"),
        LOOP("load_and_add_chain", 4, "mov r10, [r10]; add r10, r11"),
        LOOP("add_of_memory_chain", 1, "add eax, [rsi]"),
        LOOP("add_of_memory", 2, "add eax, [rsi]; add ebx, [rsi + 8]; add edx, [rsi + 16]; add edi, [rsi + 24]"),
        LOOP("movzx_load_chain", 4, "movzx r11, byte ptr [rsi + r11 + 32]"),
        LOOP("store", 2, "mov [rsi + 64], eax; mov [rsi + 72], ebx; mov [rsi + 80], edx; mov [rsi + 88], edi"),
        LOOP("load_and_store", 2, "mov eax, [rsi]; mov [rsi + 64], ebp; mov ebx, [rsi + 8]; mov [rsi + 72], ebp"),
        LOOP("add_to_memory_chain", 4, "add [rsi + 64], ebp"),
        LOOP("add_to_memory", 4, "add [rsi], ebp; add [rsi + 8], ebp; add [rsi + 16], ebp; add [rsi + 24], ebp"),
        LOOP("push_and_pop", 1, "push rbp; pop rax"),
        LOOP("movaps_load", 1, "movaps xmm1, [rsi]; movaps xmm2, [rsi + 16]"),
        LOOP("movaps_store", 2, "movaps [rsi + 64], xmm1; movaps [rsi + 80], xmm2"),
        LOOP("movss_store", 2, "movss [rsi + 64], xmm1; movss [rsi + 80], xmm2"),
    };
}

std::vector<Loop> media_loops() {
    return {
        LOOP("addps_chain", 4, "addps xmm0, xmm1"),
        LOOP("addps", 4, "addps xmm0, xmm8; addps xmm1, xmm8; addps xmm2, xmm8; addps xmm3, xmm8"),
        LOOP("addsd_chain", 4, "addsd xmm0, xmm1"),
        LOOP("addsd", 4, "addsd xmm0, xmm8; addsd xmm1, xmm8; addsd xmm2, xmm8; addsd xmm3, xmm8"),
        LOOP("mulps_chain", 4, "mulps xmm0, xmm1"),
        LOOP("mulps", 4, "mulps xmm0, xmm8; mulps xmm1, xmm8; mulps xmm2, xmm8; mulps xmm3, xmm8"),
        LOOP("mulsd_chain", 4, "mulsd xmm0, xmm1"),
        LOOP("add_and_mul", 4,
             "addps xmm0, xmm8; mulps xmm1, xmm8; addps xmm2, xmm8; mulps xmm3, xmm8; addps xmm4, xmm8; "
             "mulps xmm5, xmm8; addps xmm6, xmm8; mulps xmm7, xmm8"),
        LOOP("maxps_chain", 2, "maxps xmm0, xmm1"),
        LOOP("maxps", 2, "maxps xmm0, xmm8; maxps xmm1, xmm8"),
        LOOP("cmpps_chain", 2, "cmpps xmm0, xmm1, 1"),
        LOOP("rcpss_chain", 3, "rcpss xmm0, xmm0"),
        LOOP("divss_chain", 16, "divss xmm0, xmm1"),
        LOOP("divss", 26, "divss xmm0, xmm8; divss xmm1, xmm8"),
        LOOP("divps_chain", 18, "divps xmm0, xmm1"),
        LOOP("divsd_chain", 20, "divsd xmm0, xmm1"),
        LOOP("divsd", 34, "divsd xmm0, xmm8; divsd xmm1, xmm8"),
        LOOP("sqrtss_chain", 19, "sqrtss xmm0, xmm0"),
        LOOP("sqrtsd_chain", 27, "sqrtsd xmm0, xmm0"),
        LOOP("sqrtsd", 48, "sqrtsd xmm0, xmm8; sqrtsd xmm1, xmm8"),
        LOOP("paddd_chain", 2, "paddd xmm0, xmm1"),
        LOOP("paddd", 2, "paddd xmm0, xmm8; paddd xmm1, xmm8; paddd xmm2, xmm8; paddd xmm3, xmm8"),
        LOOP("pxor_chain", 2, "pxor xmm0, xmm1"),
        LOOP("pmullw_chain", 3, "pmullw xmm0, xmm1"),
        LOOP("pmullw", 3, "pmullw xmm0, xmm8; pmullw xmm1, xmm8; pmullw xmm2, xmm8"),
        LOOP("pmaddwd_chain", 3, "pmaddwd xmm0, xmm1"),
        LOOP("psadbw_chain", 3, "psadbw xmm0, xmm1"),
        LOOP("shufps_chain", 3, "shufps xmm0, xmm1, 0x1b"),
        LOOP("pshufd_chain", 3, "pshufd xmm0, xmm0, 0x1b"),
        LOOP("punpckldq_chain", 3, "punpckldq xmm0, xmm1"),
        LOOP("shufps", 3,
             "shufps xmm0, xmm8, 1; shufps xmm1, xmm8, 1; shufps xmm2, xmm8, 1; shufps xmm3, xmm8, 1; "
             "shufps xmm4, xmm8, 1; shufps xmm5, xmm8, 1"),
        LOOP("movaps_chain", 4, "movaps xmm0, xmm1; movaps xmm1, xmm0"),
        LOOP("movaps", 1, "movaps xmm0, xmm8; movaps xmm1, xmm8; movaps xmm2, xmm8"),
        LOOP("movd_there_and_back", 9, "movd eax, xmm0; movd xmm0, eax"),
        LOOP("cvtsi2sd", 15,
             "cvtsi2sd xmm0, ebp; cvtsi2sd xmm1, ebp; cvtsi2sd xmm2, ebp; cvtsi2sd xmm3, ebp; cvtsi2sd xmm4, ebp"),
        LOOP("cvttsd2si", 2, "cvttsd2si eax, xmm8; cvttsd2si ebx, xmm8"),
        LOOP("integer_and_back", 22, "cvttsd2si eax, xmm0; cvtsi2sd xmm0, eax"),
        LOOP("float_and_back", 15, "cvtsd2ss xmm0, xmm0; cvtss2sd xmm0, xmm0"),
        LOOP("cvtdq2ps_chain", 4, "cvtdq2ps xmm0, xmm0"),
        LOOP("cvtdq2ps", 2, "cvtdq2ps xmm0, xmm8; cvtdq2ps xmm1, xmm8"),
        LOOP("fadd_chain", 4, "fadd st, st(1)"),
        LOOP("fmul_chain", 4, "fmul st, st(1)"),
        LOOP("fchs_chain", 2, "fchs"),
        LOOP("fsqrt_chain", 35, "fsqrt"),
    };
}

std::vector<Loop> mixed_loops() {
    return {
        LOOP("hash_chain", 5, "imul eax, ebx; xor eax, ebp; shr eax, 3"),
        LOOP("chain_beside_other_work", 3,
             "imul eax, ebx; add edx, ebp; add edi, ebp; add r8d, ebp; add r9d, ebp; add r11d, ebp"),
        LOOP("dot_product", 4, "movaps xmm1, [rsi]; mulps xmm1, [rsi + 16]; addps xmm0, xmm1"),
        LOOP(
            "two_dot_products", 4,
            "movaps xmm1, [rsi]; mulps xmm1, [rsi + 16]; addps xmm0, xmm1; movaps xmm2, [rsi]; mulps xmm2, [rsi + 16]; "
            "addps xmm3, xmm2"),
        LOOP("copy", 4,
             "mov rax, [rsi]; mov [rsi + 64], rax; mov rbx, [rsi + 8]; mov [rsi + 72], rbx; mov rdx, [rsi + 16]; "
             "mov [rsi + 80], rdx; mov rdi, [rsi + 24]; mov [rsi + 88], rdi"),
        LOOP("division_beside_sums", 20, "divsd xmm0, xmm1; paddd xmm2, xmm3; paddd xmm4, xmm5; add eax, ebx"),
        LOOP("taken_jump", 2, "jmp 5f; nop; 5:"),
        LOOP("branch_not_taken", 1, "cmp ebp, ebp; jnz 5f; 5: nop"),
        LOOP("call_and_return", 6, "call 5f; jmp 6f; 5: ret; 6:"),
    };
}

std::vector<Loop> all_loops() {
    std::vector<Loop> all;
    for (const auto &some : {integer_loops(), memory_loops(), media_loops(), mixed_loops()})
        all.insert(all.end(), some.begin(), some.end());
    return all;
}

/// Cycles that `code` takes once, in a loop of many of them.
double cycles_of(Bytes code) {
    TimedParams params;
    params.core.model = "out_of_order";
    TimedMachine m(params);
    const auto times = static_cast<unsigned>(kBytes / code.size());
    Addr at = kCode;
    const auto put = [&](Bytes bytes) {
        for (const std::uint8_t b : bytes)
            m.m.write<std::uint8_t>(at++, b);
    };
    put(CODE("fninit; fld1; fld1; mov ecx, 100"));
    static_assert(kTurns == 100);
    const Addr top = at;
    for (unsigned i = 0; i < times; ++i)
        put(code);
    put(CODE("dec ecx; .byte 0x0f, 0x85")); // jnz top
    const auto back = static_cast<std::int32_t>(top - (at + 4));
    put({reinterpret_cast<const std::uint8_t *>(&back), 4});
    put(CODE("hlt"));

    Core &c = m.m.core;
    c.rip = kCode;
    c.r[rsp] = kStack;
    c.r[rsi] = c.r[r10] = kData;
    c.r[rbp] = 1;
    m.m.write<std::uint64_t>(kData, kData); // what r10 follows
    m.begin();
    m.queue.run(1'000'000 * kTicksPerNs);
    EXPECT_TRUE(c.halted);
    return double(m.core.cycles()) / (times * kTurns);
}

struct Pipeline : testing::TestWithParam<Loop> {};

} // namespace

TEST_P(Pipeline, TakesThePublishedTime) {
    const Loop &l = GetParam();
    EXPECT_NEAR(cycles_of(l.code), l.cycles, 0.1 * l.cycles);
}

INSTANTIATE_TEST_SUITE_P(Family10h, Pipeline, testing::ValuesIn(all_loops()),
                         [](const auto &info) { return std::string(info.param.name); });
