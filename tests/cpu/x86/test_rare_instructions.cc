// SPDX-License-Identifier: BSD-3-Clause
// Instructions that hardly any program has and that no host can be asked about: what they do by the manual's words (AMD
// 24594).
#include <algorithm>

#include <gtest/gtest.h>

#include "cpu/x86/system/msr.hh"
#include "cpu/x86/system_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using test::SystemMachine;

namespace {

constexpr Addr kCode = 0x1000, kData = 0x4000;

struct RareInstructions : testing::Test {
    RareInstructions() { m.kernel64(); }
    int fault(std::initializer_list<int> bytes) { return m.fault(kCode, bytes); }
    SystemMachine m;
    Core &c = m.core;
};

/// Real mode with flat low memory, interrupts at 0.
struct RealMode : SystemMachine {
    RealMode() {
        core.cr0 = cr0::et | cr0::ne;
        for (unsigned s = 0; s < kSegs; ++s)
            core.seg[s] = {0, 0xffff, 0, static_cast<std::uint16_t>(s == cs ? 0x9b : 0x93)};
        core.idtr = {0, 0x3ff};
        core.r[rsp] = 0x8000;
        core.mode_changed();
    }
};

TEST_F(RareInstructions, StrAndSldtStoreSelectorsInMemoryAlwaysSixteenBits) {
    c.tr.selector = 0x1238;
    c.ldtr.selector = 0x5678;
    const struct {
        int reg;
        std::uint16_t selector;
    } cases[] = {{1, 0x1238}, {0, 0x5678}}; // 0F 00 /1 is STR, /0 SLDT
    for (const auto &x : cases) {
        const int reg_rbx = 0xc3 | x.reg << 3, mem = 0x04 | x.reg << 3; // ModRM
        c.r[rbx] = ~std::uint64_t{0};
        EXPECT_EQ(fault({0x0f, 0x00, reg_rbx}), -1);
        EXPECT_EQ(c.r[rbx], x.selector) << "32 bits clear the upper half";
        c.r[rbx] = ~std::uint64_t{0};
        EXPECT_EQ(fault({0x66, 0x0f, 0x00, reg_rbx}), -1);
        EXPECT_EQ(c.r[rbx], 0xffffffffffff0000 | x.selector);
        c.r[rbx] = ~std::uint64_t{0};
        EXPECT_EQ(fault({0x48, 0x0f, 0x00, reg_rbx}), -1);
        EXPECT_EQ(c.r[rbx], x.selector);
        m.write<std::uint64_t>(kData, ~std::uint64_t{0});
        EXPECT_EQ(fault({0x48, 0x0f, 0x00, mem, 0x25, 0, 0x40, 0, 0}), -1);
        EXPECT_EQ(m.read<std::uint64_t>(kData), 0xffffffffffff0000 | x.selector);
    }
}

TEST_F(RareInstructions, StrAndSldtAreForUsersTooButNotForRealMode) {
    m.user64();
    c.tr.selector = 0x38;
    m.code(kCode, {0x0f, 0x00, 0xcb, 0x0f, 0x0b}); // str ebx; ud2
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.pushed(0), kCode + 3);
    EXPECT_EQ(c.r[rbx], 0x38u);

    for (const int reg : {0xcb, 0xc3}) { // str bx; sldt bx
        RealMode real;
        real.write<std::uint32_t>(4 * exc_ud, 0x2000);
        real.write<std::uint8_t>(0x2000, 0xf4);
        real.code(kCode, {0x0f, 0x00, reg, 0xf4});
        EXPECT_EQ(real.run(), Exit::halt);
        EXPECT_EQ(real.core.rip, 0x2001u) << "#UD's handler";
    }
}

TEST(RareInstructionsOfRealMode, IretAndIretdTakeFramesOfTheirSizes) {
    RealMode real;
    Core &c = real.core;
    real.write<std::uint8_t>(0x3000, 0xf4);
    const std::uint64_t stack = c.r[rsp];
    for (unsigned i = 0; const std::uint16_t x : {0x2f00, 0x0010, 0x0003}) // IP, CS, FLAGS
        real.write<std::uint16_t>(stack + 2 * i++, x);
    real.code(kCode, {0xcf}); // iret
    EXPECT_EQ(real.run(), Exit::halt);
    EXPECT_EQ(c.seg[cs].base + c.rip, 0x3001u);
    EXPECT_EQ(c.r[rsp], stack + 6);
    EXPECT_TRUE(c.flags.c());

    RealMode other;
    Core &d = other.core;
    other.write<std::uint8_t>(0x3000, 0xf4);
    for (unsigned i = 0; const std::uint32_t x : {0x2f00, 0x0010, 0x0002})
        other.write<std::uint32_t>(stack + 4 * i++, x);
    other.code(kCode, {0x66, 0xcf}); // iretd
    EXPECT_EQ(other.run(), Exit::halt);
    EXPECT_EQ(d.seg[cs].base + d.rip, 0x3001u);
    EXPECT_EQ(d.r[rsp], stack + 12);
}

TEST_F(RareInstructions, RdpmcReadsFourCountersAndIsForUsersOnlyWhereCr4SaysSo) {
    for (std::uint32_t n = 0; n < 4; ++n)
        m.model.msrs[msr::perf_ctr0 + n] = {std::uint64_t{0x123400000000} + n, ~std::uint64_t{0}};
    reset_msrs(c);
    for (std::uint64_t n = 0; n < 4; ++n) {
        c.r[rcx] = 0xffffffff00000000 | n;
        c.r[rax] = c.r[rdx] = ~std::uint64_t{0};
        EXPECT_EQ(fault({0x0f, 0x33}), -1); // rdpmc
        EXPECT_EQ(c.r[rax], n);
        EXPECT_EQ(c.r[rdx], 0x1234u);
    }
    c.r[rcx] = 4;
    EXPECT_EQ(fault({0x0f, 0x33}), exc_gp) << "there are four";
    c.r[rcx] = 0;
    c.halted = false;
    m.user64();
    m.code(kCode, {0x0f, 0x33});
    EXPECT_EQ(m.vector_taken(), exc_gp);
    m.user64();
    c.halted = false;
    c.cr4 |= cr4::pce;
    m.code(kCode, {0x0f, 0x33, 0x0f, 0x0b}); // rdpmc; ud2
    EXPECT_EQ(m.vector_taken(), exc_ud);
}

TEST_F(RareInstructions, InvdAndWbinvdAreForTheKernelOnlyAndLeaveMemoryUnchanged) {
    m.write<std::uint64_t>(kData, 0x55);
    for (const int opcode : {0x08, 0x09}) { // invd, wbinvd
        m.level(m.kCode64, m.kData);
        c.r[rax] = 0x77;
        // mov [4000h], rax; invd; mov rbx, [4000h]
        EXPECT_EQ(fault({0x48, 0x89, 0x04, 0x25, 0, 0x40, 0, 0, 0x0f, opcode, 0x48, 0x8b, 0x1c, 0x25, 0, 0x40, 0, 0}),
                  -1);
        EXPECT_EQ(c.r[rbx], 0x77u) << "caches are coherent here, INVD loses nothing";
        m.user64();
        c.halted = false;
        m.code(kCode, {0x0f, opcode});
        EXPECT_EQ(m.vector_taken(), exc_gp);
    }
}

TEST_F(RareInstructions, ClearOfTheTaskSwitchFlagAndTheMachineStatusWord) {
    const std::uint64_t before = c.cr0;
    c.r[rax] = 0xffff0000 | cr0::ts | cr0::em | cr0::mp;
    EXPECT_EQ(fault({0x0f, 0x01, 0xf0}), -1); // lmsw ax
    EXPECT_EQ(c.cr0, before | cr0::ts | cr0::em | cr0::mp) << "PE stays, the upper half is left alone";
    EXPECT_EQ(fault({0x0f, 0x01, 0xe3}), -1); // smsw ebx
    EXPECT_EQ(c.r[rbx] & 0xffff, c.cr0 & 0xffff);
    m.write<std::uint64_t>(kData, 0);
    EXPECT_EQ(fault({0x0f, 0x01, 0x24, 0x25, 0, 0x40, 0, 0}), -1); // smsw [4000h]
    EXPECT_EQ(m.read<std::uint64_t>(kData), c.cr0 & 0xffff);
    EXPECT_EQ(fault({0x0f, 0x06}), -1); // clts
    EXPECT_EQ(c.cr0, before | cr0::em | cr0::mp);
}

TEST_F(RareInstructions, TheGlobalDescriptorTableIsReadAndWrittenWhole) {
    m.write<std::uint16_t>(kData, 0x2ff);
    m.write<std::uint64_t>(kData + 2, 0xffff800000002000);
    EXPECT_EQ(fault({0x0f, 0x01, 0x14, 0x25, 0, 0x40, 0, 0, 0x0f, 0x01, 0x04, 0x25, 0x10, 0x40, 0, 0}),
              -1); // lgdt; sgdt
    EXPECT_EQ(m.read<std::uint16_t>(kData + 0x10), 0x2ff);
    EXPECT_EQ(m.read<std::uint64_t>(kData + 0x12), 0xffff800000002000u);
}

TEST_F(RareInstructions, Int1AndInt3AreTrapsAndUd0AndUd1AreFaults) {
    EXPECT_EQ(fault({0xf1}), exc_db); // int1
    EXPECT_EQ(m.pushed(0), kCode + 1);
    EXPECT_EQ(fault({0xcc}), exc_bp); // int3
    EXPECT_EQ(m.pushed(0), kCode + 1);
    EXPECT_EQ(fault({0x0f, 0xff, 0xc0}), exc_ud); // ud0
    EXPECT_EQ(fault({0x0f, 0xb9, 0xc0}), exc_ud); // ud1
    EXPECT_EQ(m.pushed(0), kCode);
}

TEST_F(RareInstructions, PortStringsOfEachSize) {
    const struct {
        int in, out;
        unsigned bytes;
    } sizes[] = {{0x6c, 0x6e, 1}, {0x6d, 0x6f, 4}}; // insb, outsb; insd, outsd
    for (const auto &x : sizes) {
        m.ports[0x1f0] = 0x87654321;
        m.write<std::uint64_t>(kData, 0);
        c.r[rdx] = 0x1f0;
        c.r[rdi] = kData;
        EXPECT_EQ(fault({x.in}), -1);
        EXPECT_EQ(c.r[rdi], kData + x.bytes);
        EXPECT_EQ(m.read<std::uint64_t>(kData), x.bytes == 1 ? 0x21u : 0x87654321u);
        m.write<std::uint64_t>(kData, 0x1122334455667788);
        c.r[rsi] = kData;
        EXPECT_EQ(fault({0xfd, x.out, 0xfc}), -1); // std; outs; cld
        EXPECT_EQ(c.r[rsi], kData - x.bytes);
        EXPECT_EQ(m.ports[0x1f0], x.bytes == 1 ? 0x88u : 0x55667788u);
    }
}

TEST_F(RareInstructions, SegmentRegistersArePushedAndPoppedAsStackWords) {
    c.seg[fs].selector = m.kUserData | 3;
    const std::uint64_t stack = c.r[rsp];
    EXPECT_EQ(fault({0x0f, 0xa0, 0x6a, m.kData, 0x0f, 0xa9, 0x8c, 0xeb}), -1); // push fs; push 10h; pop gs; mov ebx, gs
    EXPECT_EQ(c.r[rsp], stack - 8);
    EXPECT_EQ(m.read<std::uint64_t>(stack - 8) & 0xffff, m.kUserData | 3u);
    EXPECT_EQ(c.seg[gs].selector, m.kData);
    EXPECT_EQ(c.r[rbx], m.kData);
    EXPECT_EQ(fault({0x66, 0x0f, 0xa8, 0x66, 0x0f, 0xa1}), -1); // push gs; pop fs, two bytes each
    EXPECT_EQ(c.r[rsp], stack - 8);
    EXPECT_EQ(c.seg[fs].selector, m.kData);
    EXPECT_EQ(fault({0x6a, 0x7c, 0x0f, 0xa9}), exc_gp) << "pop gs of what is no segment";
}

struct RareInstructionsOfLegacyMode : testing::Test {
    RareInstructionsOfLegacyMode() { m.kernel32(); }
    int fault(std::initializer_list<int> bytes) { return m.fault(kCode, bytes); }
    SystemMachine m;
    Core &c = m.core;
};

TEST_F(RareInstructionsOfLegacyMode, FarPointersAreLoadedWithTheirSegment) {
    const struct {
        std::initializer_list<int> bytes;
        Seg to;
    } loads[] = {{{0xc5, 0x1d, 0, 0x40, 0, 0}, ds},
                 {{0xc4, 0x1d, 0, 0x40, 0, 0}, es},
                 {{0x0f, 0xb4, 0x1d, 0, 0x40, 0, 0}, fs},
                 {{0x0f, 0xb5, 0x1d, 0, 0x40, 0, 0}, gs},
                 {{0x0f, 0xb2, 0x1d, 0, 0x40, 0, 0}, ss}}; // lds, les, lfs, lgs, lss
    m.write<std::uint32_t>(kData, 0x12345678);
    for (const auto &x : loads) {
        m.write<std::uint16_t>(kData + 4, m.kSpare);
        m.set(m.kSpare, SystemMachine::descriptor(0, 0xfffff, 0xc093));
        EXPECT_EQ(fault(x.bytes), -1);
        EXPECT_EQ(c.r[rbx], 0x12345678u);
        EXPECT_EQ(c.seg[x.to].selector, m.kSpare);
        c.r[rbx] = 0;
        m.write<std::uint16_t>(kData + 4, m.kTask);
        EXPECT_EQ(fault(x.bytes), exc_gp) << "no segment of data";
        EXPECT_EQ(c.r[rbx], 0u);
        m.kernel32();
    }
}

TEST_F(RareInstructionsOfLegacyMode, BoundInterruptsOnlyOutOfBoundsAndIntoOnlyOnOverflow) {
    m.write<std::int32_t>(kData, -5);
    m.write<std::int32_t>(kData + 4, 7);
    for (const int i : {-6, -5, 0, 7, 8}) {
        c.r[rax] = static_cast<std::uint32_t>(i);
        EXPECT_EQ(fault({0x62, 0x05, 0, 0x40, 0, 0}), i < -5 || i > 7 ? int{exc_br} : -1) << i; // bound eax, [4000h]
        m.kernel32();
    }
    EXPECT_EQ(fault({0xce}), -1); // into
    c.flags.set_value(Flags::fixed | Flags::of);
    EXPECT_EQ(fault({0xce}), exc_of);
    EXPECT_EQ(m.pushed<std::uint32_t>(0), kCode + 1);
}

TEST_F(RareInstructionsOfLegacyMode, EachSegmentRegisterHasItsPushAndPop) {
    const std::uint64_t stack = c.r[rsp];
    EXPECT_EQ(fault({0x0e, 0x16, 0x1e, 0x06, 0x07, 0x1f, 0x17}),
              -1); // push cs; push ss; push ds; push es; pop es; pop ds; pop ss
    EXPECT_EQ(c.r[rsp], stack - 4);
    EXPECT_EQ(m.read<std::uint32_t>(stack - 4) & 0xffff, m.kCode32);
    for (const unsigned n : {2u, 3u, 4u})
        EXPECT_EQ(m.read<std::uint32_t>(stack - 4 * n) & 0xffff, m.kData);
}

TEST_F(RareInstructionsOfLegacyMode, ArplRaisesTheRequestedPrivilegeAndReportsItInZf) {
    const auto arpl = [&](std::uint64_t to, std::uint64_t from) {
        c.halted = false;
        c.r[rbx] = to;
        c.r[rcx] = from;
        m.code(kCode, {0x63, 0xcb, 0xf4}); // arpl bx, cx; hlt
        EXPECT_EQ(m.run(), Exit::halt);
        return c.r[rbx];
    };
    for (std::uint64_t to = 0; to < 4; ++to)
        for (std::uint64_t from = 0; from < 4; ++from) {
            EXPECT_EQ(arpl(0xabcd1230 | to, 0x4560 | from), 0xabcd1230 | std::max(to, from));
            EXPECT_EQ(c.flags.z(), to < from);
        }
    c.halted = false;
    m.write<std::uint32_t>(kData, 0xabcd0040);
    c.r[rcx] = 3;
    m.code(kCode, {0x63, 0x0d, 0, 0x40, 0, 0, 0xf4}); // arpl [4000h], cx; hlt
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(m.read<std::uint32_t>(kData), 0xabcd0043u);
}

/// Near branches with an operand-size prefix in 64-bit mode: all of them 16 bits, on this maker's processors.
struct CutBranches : RareInstructions {
    static constexpr Addr kFar = 0x31000, kCut = 0x1000, kTarget = kCut + 0x50;

    CutBranches() {
        m.write<std::uint8_t>(kTarget, 0xf4);
        m.write<std::uint8_t>(kFar + 0x50, 0xf4);
    }
    /// Runs the bytes at kFar; where they halt.
    Addr goes(std::initializer_list<int> bytes) {
        c.halted = false;
        m.code(kFar, bytes);
        m.write<std::uint8_t>(kFar + bytes.size(), 0xf4);
        EXPECT_EQ(m.run(), Exit::halt);
        return c.rip - 1;
    }
    std::uint64_t stack = c.r[rsp];
};

TEST_F(CutBranches, JmpGoesToTheLow16BitsOfItsTarget) {
    EXPECT_EQ(goes({0x66, 0xe9, 0x4c, 0x00}), kTarget);
    EXPECT_EQ(goes({0x66, 0xeb, 0x4d}), kTarget);
    c.r[rax] = 0x12340000 | kTarget;
    EXPECT_EQ(goes({0x66, 0xff, 0xe0}), kTarget); // jmp ax
    m.write<std::uint64_t>(kData, 0x5555555555550000 | kTarget);
    EXPECT_EQ(goes({0x66, 0xff, 0x24, 0x25, 0, 0x40, 0, 0}), kTarget);
    EXPECT_EQ(goes({0xe9, 0x4b, 0x00, 0x00, 0x00}), kFar + 0x50) << "without the prefix";
    EXPECT_EQ(goes({0x66, 0x48, 0xe9, 0x49, 0x00, 0x00, 0x00}), kFar + 0x50) << "REX.W goes before it";
}

TEST_F(CutBranches, ConditionalAndLoopBranchesCutTheirTargetOnlyIfTaken) {
    const auto with_zero = [&](bool zero) { c.flags.set_value(Flags::fixed | (zero ? Flags::zf : 0)); };
    for (const bool all : {false, true})
        for (int code = 0; code < 16; ++code) { // jo jno jb jnb jz jnz jbe jnbe js jns jp jnp jl jnl jle jnle
            c.flags.set_value(Flags::fixed | (all ? Flags::cf | Flags::pf | Flags::zf | Flags::sf | Flags::of : 0));
            const bool taken = (all && code / 2 != 6) != (code & 1); // "less" is SF unlike OF
            EXPECT_EQ(goes({0x66, 0x0f, 0x80 | code, 0x4b, 0x00}), taken ? kTarget : kFar + 5) << code;
            EXPECT_EQ(goes({0x66, 0x70 | code, 0x4d}), taken ? kTarget : kFar + 3) << code;
        }
    with_zero(false);
    for (const int opcode : {0xe0, 0xe2}) { // loopne, loop
        c.r[rcx] = 2;
        EXPECT_EQ(goes({0x66, opcode, 0x4d}), kTarget);
        EXPECT_EQ(c.r[rcx], 1u);
        EXPECT_EQ(goes({0x66, opcode, 0x4d}), kFar + 3);
    }
    c.r[rcx] = 0;
    EXPECT_EQ(goes({0x66, 0xe3, 0x4d}), kTarget);       // jrcxz
    EXPECT_EQ(goes({0x66, 0x67, 0xe3, 0x4c}), kTarget); // jecxz
    with_zero(true);
    c.r[rcx] = 2;
    EXPECT_EQ(goes({0x66, 0xe1, 0x4d}), kTarget); // loope
}

TEST_F(CutBranches, JcxzAndJmpInProtectedModeCutTheirTargetToo) {
    m.kernel32();
    c.r[rcx] = 0xffff0000;
    EXPECT_EQ(goes({0x66, 0x67, 0xe3, 0x4c}), kTarget); // jcxz
    EXPECT_EQ(goes({0x66, 0xe9, 0x4c, 0x00}), kTarget);
    EXPECT_EQ(goes({0xe9, 0x4b, 0x00, 0x00, 0x00}), kFar + 0x50);
}

TEST_F(CutBranches, CallPushesAndRetPopsTwoBytes) {
    EXPECT_EQ(goes({0x66, 0xe8, 0x4c, 0x00}), kTarget);
    EXPECT_EQ(c.r[rsp], stack - 2);
    EXPECT_EQ(m.read<std::uint16_t>(stack - 2), kCut + 4);
    c.r[rax] = 0x12340000 | kTarget;
    EXPECT_EQ(goes({0x66, 0xff, 0xd0}), kTarget); // call ax
    EXPECT_EQ(c.r[rsp], stack - 4);
    EXPECT_EQ(m.read<std::uint16_t>(stack - 4), kCut + 3);
    m.write<std::uint64_t>(stack - 4, 0x5555555555550000 | kTarget);
    EXPECT_EQ(goes({0x66, 0xc3}), kTarget); // ret
    EXPECT_EQ(c.r[rsp], stack - 2);
    m.write<std::uint64_t>(stack - 2, 0x5555555555550000 | kTarget);
    EXPECT_EQ(goes({0x66, 0xc2, 0x10, 0x00}), kTarget); // ret 10h
    EXPECT_EQ(c.r[rsp], stack + 0x10);
}

} // namespace
