// SPDX-License-Identifier: BSD-3-Clause
// Breakpoints of DR0 to DR3 on fetches, data and ports; RFLAGS.RF; alignment checks (AMD 24593, sections 13.1
// and 8.2.18).
#include <gtest/gtest.h>

#include "cpu/x86/system/msr.hh"
#include "cpu/x86/system_machine.hh"

namespace moscope::x86::test {
namespace {

constexpr Addr kCode = 0x1000, kData = 0x50000;
enum : unsigned { fetch = 0, write = 1, port = 2, access = 3 };
enum : unsigned { one = 0, two = 1, eight = 2, four = 3 };

struct BreakpointMachine {
    SystemMachine m;
    Core &c = m.core;
    BreakpointMachine() { m.kernel64(); }

    void set(unsigned n, Addr at, unsigned condition, unsigned length = one) {
        c.dr[n] = at;
        c.dr[7] |= std::uint64_t{2} << 2 * n | std::uint64_t{condition | length << 2} << (16 + 4 * n);
        c.debug_changed();
    }
    /// IRETQ to `rip` with these flags, at 0x3000.
    void return_to(Addr rip, std::uint64_t flags) {
        m.code(0x3000, {0x48, 0xcf});
        c.r[rsp] = 0x70000;
        const std::uint64_t frame[] = {rip, m.kCode64, flags | Flags::fixed, 0x70000, m.kData};
        for (unsigned i = 0; i < 5; ++i)
            m.write<std::uint64_t>(0x70000 + 8 * i, frame[i]);
        c.halted = false;
        c.rip = 0x3000;
    }
    std::uint64_t hits() const { return c.dr[6] & 0xf; }
};
struct Breakpoints : testing::Test, BreakpointMachine {};

TEST_F(Breakpoints, AFetchStrikesBeforeTheInstruction) {
    m.code(kCode, {0x90, 0xff, 0xc3, 0xff, 0xc3, 0xf4}); // nop; inc ebx; inc ebx; hlt
    set(2, kCode + 3, fetch);
    c.r[rbx] = 0;
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode + 3);
    EXPECT_EQ(c.r[rbx], 1u);
    EXPECT_EQ(hits(), 4u);
    EXPECT_FALSE(m.pushed(2) & Flags::rf) << "the handler has to set RF itself";
}

TEST_F(Breakpoints, WithDebugControlSetOnlyControlTransfersAreStepped) {
    constexpr std::uint32_t kDebugControl = 0x1d9;
    m.model.msrs[kDebugControl].writable = 0x3f;
    reset_msrs(c);
    // mov cl, 4; rep stosb; test ecx, ecx; jnz not taken; jz l; nop; l: inc ebx; hlt
    m.code(kCode, {0xb1, 4, 0xf3, 0xaa, 0x85, 0xc9, 0x75, 0xf8, 0x74, 1, 0x90, 0xff, 0xc3, 0xf4});
    c.r[rdi] = kData;
    c.r[rcx] = 0;
    ASSERT_TRUE(write_msr(c, kDebugControl, 3));
    return_to(kCode, Flags::tf);
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode + 11) << "after the taken branch alone";
    EXPECT_TRUE(c.dr[6] >> 14 & 1);
    std::uint64_t control = 0;
    ASSERT_TRUE(read_msr(c, kDebugControl, control));
    EXPECT_EQ(control, 1u) << "the exception turns these steps off";
    return_to(kCode + 11, Flags::tf);
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode + 13) << "each instruction is stepped again";

    m.code(kCode, {0xeb, 0xfe}); // l: jmp l
    ASSERT_TRUE(write_msr(c, kDebugControl, 2));
    return_to(kCode, Flags::tf);
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode);
}

TEST_F(Breakpoints, OneSetAfterTheCodeWasDecodedStrikesToo) {
    m.code(kCode, {0x90, 0xff, 0xc3, 0xf4});
    EXPECT_EQ(m.run(), Exit::halt);
    set(0, kCode + 1, fetch);
    c.halted = false;
    c.rip = kCode;
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode + 1);
}

TEST_F(Breakpoints, TheResumeFlagLetsOneInstructionPass) {
    m.code(kCode, {0xff, 0xc3, 0x83, 0xfb, 0x02, 0x75, 0xf9, 0xf4}); // l: inc ebx; cmp ebx, 2; jne l; hlt
    set(0, kCode, fetch);
    c.r[rbx] = 0;
    return_to(kCode, Flags::rf);
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(c.r[rbx], 1u) << "the first time it passed, the second time it struck";
}

TEST_F(Breakpoints, TheResumeFlagIsGoneAfterTheInstruction) {
    m.code(kCode, {0x9c, 0x5b, 0xf4}); // pushfq; pop rbx; hlt
    return_to(kCode, Flags::rf);
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_FALSE(c.r[rbx] & Flags::rf);
    EXPECT_FALSE(c.flags.system & Flags::rf);
}

TEST_F(Breakpoints, DataStrikesAfterTheInstructionWithTheAccessDone) {
    m.code(kCode, {0x89, 0x07, 0x90, 0xf4}); // mov [rdi], eax; nop; hlt
    set(1, kData, write, four);
    c.r[rdi] = kData;
    c.r[rax] = 0x1234;
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode + 2);
    EXPECT_EQ(m.read<std::uint32_t>(kData), 0x1234u);
    EXPECT_EQ(hits(), 2u);
}

TEST_F(Breakpoints, AWriteBreakpointLetsReadsPass) {
    m.code(kCode, {0x8b, 0x07, 0xf4}); // mov eax, [rdi]; hlt
    c.r[rdi] = kData;
    set(1, kData, write, four);
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(c.rip, kCode + 3);
    c.dr[7] = 0;
    set(1, kData, access, four);
    c.halted = false;
    c.rip = kCode;
    EXPECT_EQ(m.vector_taken(), exc_db);
}

TEST_F(Breakpoints, AnAccessToAnyByteOfTheFieldStrikesAndToNoOther) {
    m.code(kCode, {0x88, 0x07, 0xf4}); // mov [rdi], al; hlt
    set(0, kData + 5, write, four);    // aligned down: kData + 4 to kData + 7
    for (Addr a = kData; a < kData + 12; ++a) {
        c.r[rdi] = a;
        c.r[rsp] = 0x70000;
        c.halted = false;
        c.rip = kCode;
        EXPECT_EQ(m.vector_taken() == exc_db, a >= kData + 4 && a < kData + 8) << a - kData;
    }
}

TEST_F(Breakpoints, PushesAndReadModifyWritesAreWritesAndRepeatedStringsStopAtTheElement) {
    set(0, 0x70000 - 8, write, eight);
    m.code(kCode, {0x50, 0xf4}); // push rax; hlt
    c.r[rsp] = 0x70000;
    EXPECT_EQ(m.vector_taken(), exc_db);
    set(1, kData, write, eight);
    m.code(kCode, {0xf0, 0xff, 0x07, 0xf4}); // lock inc dword [rdi]; hlt
    c.halted = false;
    c.r[rsp] = 0x68000;
    c.r[rdi] = kData + 4;
    EXPECT_EQ(m.vector_taken(), exc_db);
    m.code(kCode, {0xf3, 0xaa, 0xf4}); // rep stosb; hlt
    c.halted = false;
    c.r[rsp] = 0x68000;
    c.r[rdi] = kData - 3;
    c.r[rcx] = 100;
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode) << "the instruction goes on afterwards";
    EXPECT_EQ(c.r[rcx], 96u);
}

TEST_F(Breakpoints, AnAccessThatFaultsDoesNotStrike) {
    m.small_pages();
    m.page(kData, 0);
    m.code(kCode, {0x89, 0x07, 0xf4});
    set(0, kData, write, four);
    c.r[rdi] = kData;
    EXPECT_EQ(m.vector_taken(), exc_pf);
    EXPECT_EQ(hits(), 0u);
}

TEST_F(Breakpoints, AfterALoadOfTheStackSegmentTheyWaitForTheNextInstruction) {
    m.write<std::uint16_t>(kData, m.kData);
    m.code(kCode, {0x8e, 0x17, 0x90, 0xf4}); // mov ss, [rdi]; nop; hlt
    set(0, kData, access, two);
    c.r[rdi] = kData;
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode + 3);
}

TEST_F(Breakpoints, AfterALoadOfTheStackSegmentTheyWaitForTheHandlerOfASoftwareInterrupt) {
    struct Case {
        const char *name;
        std::initializer_list<int> code; ///< mov ss, [rdi], then the interrupt
        Addr vector;
    };
    for (const Case &k :
         {Case{"int3", {0x8e, 0x17, 0xcc, 0xf4}, exc_bp}, Case{"int1", {0x8e, 0x17, 0xf1, 0xf4}, exc_db},
          Case{"int n", {0x8e, 0x17, 0xcd, 0x40, 0xf4}, 0x40}}) {
        SCOPED_TRACE(k.name);
        BreakpointMachine b;
        b.m.write<std::uint16_t>(kData, b.m.kData);
        b.m.code(kCode, k.code);
        b.set(0, kData, access, two);
        b.c.r[rdi] = kData;
        EXPECT_EQ(b.m.vector_taken(), exc_db);
        EXPECT_EQ(b.m.pushed(0), b.m.kHandlers + 16 * k.vector) << "the handler's first instruction has not run";
        EXPECT_EQ(b.hits(), 1u);
        EXPECT_EQ(b.m.read<std::uint64_t>(b.m.pushed(3)), kCode + k.code.size() - 1) << "the interrupt's own frame";
    }
}

TEST_F(Breakpoints, PortsStrikeWithDebugExtensionsOnly) {
    m.code(kCode, {0xe6, 0x80, 0xf4}); // out 0x80, al; hlt
    set(3, 0x80, port);
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(m.writes, 1u);
    EXPECT_EQ(c.rip, kCode + 3);
    c.cr4 |= cr4::de;
    c.halted = false;
    c.rip = kCode;
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.writes, 2u);
    EXPECT_EQ(hits(), 8u);
    EXPECT_EQ(m.pushed(0), kCode + 2);
}

TEST_F(Breakpoints, RepeatedPortStringsStopAtTheElementToo) {
    const auto stops_at = [&](std::uint64_t left, unsigned writes) {
        c.halted = false;
        c.rip = kCode;
        c.r[rcx] = 5;
        c.r[rsi] = c.r[rdi] = kData;
        c.r[rdx] = 0x80;
        m.writes = 0;
        EXPECT_EQ(m.vector_taken(), exc_db);
        EXPECT_EQ(c.r[rcx], left);
        EXPECT_EQ(m.pushed(0), left ? kCode : kCode + 2);
        EXPECT_EQ(m.writes, writes);
    };
    m.code(kCode, {0xf3, 0x6e, 0xf4}); // rep outsb; hlt
    c.flags.system |= Flags::tf;
    stops_at(4, 1);
    c.cr4 |= cr4::de;
    set(0, 0x80, port);
    stops_at(4, 1);
    c.halted = false;
    c.rip = kCode;
    c.r[rcx] = 0;
    c.flags.system &= ~Flags::tf;
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(c.rip, kCode + 3) << "no element, no access";
    c.dr[7] = 0;
    set(1, kData + 4, access);
    stops_at(0, 5);
    m.code(kCode, {0xf3, 0x6c, 0xf4}); // rep insb; hlt
    c.dr[7] = 0;
    set(2, kData + 1, write);
    stops_at(3, 0);
}

TEST_F(Breakpoints, WritesToDr7ArmAndDisarm) {
    // mov dr0, rax; mov dr7, rbx; mov [rax], cl; hlt
    m.code(kCode, {0x0f, 0x23, 0xc0, 0x0f, 0x23, 0xfb, 0x88, 0x08, 0xf4});
    c.r[rax] = kData;
    c.r[rbx] = 1 | write << 16;
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode + 8);
    c.halted = false;
    c.r[rbx] = 0;
    c.rip = kCode;
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(c.rip, kCode + 9);
}

TEST_F(Breakpoints, AreReportedTogetherWithASingleStep) {
    m.code(kCode, {0x88, 0x07, 0xf4});
    set(0, kData, write);
    c.r[rdi] = kData;
    c.flags.system |= Flags::tf;
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(c.dr[6] & 0x400f, 0x4001u);
}

TEST_F(Breakpoints, APauseIsSteppedToo) {
    m.code(kCode, {0xf3, 0x90, 0x90, 0xf4});
    c.flags.system |= Flags::tf;
    EXPECT_EQ(c.run(1), Exit::pause);
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode + 2);
}

// --- programs that retire nothing

TEST_F(Breakpoints, EndlessFaultsAndEndlessRepetitionsUseUpTheirTime) {
    m.code(kCode, {0x67, 0xf3, 0xac}); // rep lodsb, through all of 4 GiB
    c.r[rcx] = 0xffffffff;
    EXPECT_EQ(c.run(100'000), Exit::none);
    EXPECT_GT(c.r[rcx], 0xf0000000u);
    m.small_pages();
    m.gate64(exc_pf, 0x8e, m.kCode64, 1);
    m.page(SystemMachine::kHandlers, 0); // the page of the page-fault handler is not present
    c.rip = SystemMachine::kHandlers;
    EXPECT_EQ(c.run(10'000), Exit::none);
}

// --- alignment

struct Alignment : Breakpoints {
    Alignment() {
        m.user64();
        c.cr0 |= cr0::am;
        c.flags.system |= Flags::ac;
        c.mode_changed();
        c.r[rdi] = kData;
        for (unsigned v : {exc_ac, exc_gp})
            m.gate64(v);
    }
    int taken(std::initializer_list<int> code) {
        m.code(kCode, code);
        c.halted = false;
        return m.vector_taken();
    }
};

TEST_F(Alignment, MisalignedAccessesAtLevelThreeRaiseIt) {
    ++c.r[rdi];
    EXPECT_EQ(taken({0x8b, 0x07, 0x0f, 0x0b}), exc_ac); // mov eax, [rdi]; ud2
    EXPECT_EQ(m.pushed(0), 0u) << "error code";
    EXPECT_EQ(m.pushed(1), kCode);
}

TEST_F(Alignment, BytesAndAlignedAccessesPass) {
    EXPECT_EQ(taken({0x8b, 0x07, 0x8a, 0x47, 0x01, 0x0f, 0x0b}), exc_ud); // mov eax, [rdi]; mov al, [rdi + 1]; ud2
}

TEST_F(Alignment, X87ExtendedOperandsNeedEightBytesAndUnalignedMediaLoadsNone) {
    c.r[rdi] = kData + 8;
    EXPECT_EQ(taken({0xdb, 0x2f, 0x0f, 0x0b}), exc_ud); // fld tbyte [rdi]
    m.user64();
    c.r[rdi] = kData + 4;
    EXPECT_EQ(taken({0xdb, 0x2f, 0x0f, 0x0b}), exc_ac);
    m.user64();
    EXPECT_EQ(taken({0xf3, 0x0f, 0x6f, 0x07, 0x0f, 0x0b}), exc_ud); // movdqu xmm0, [rdi]
}

TEST_F(Alignment, IsCheckedOnlyWithFlagAcWithCr0AmAndAtPrivilegeLevelThree) {
    ++c.r[rdi];
    c.cr0 &= ~cr0::am;
    c.mode_changed();
    EXPECT_EQ(taken({0x8b, 0x07, 0x0f, 0x0b}), exc_ud);
    c.cr0 |= cr0::am;
    m.level(m.kCode64, m.kData);
    EXPECT_EQ(taken({0x8b, 0x07, 0x0f, 0x0b}), exc_ud);
}

TEST_F(Alignment, PopfSwitchesIt) {
    c.flags.system &= ~Flags::ac;
    c.mode_changed();
    c.r[rdi] = kData + 2;
    c.r[rax] = Flags::ac;
    // mov ecx, [rdi]; push rax; popfq; mov ecx, [rdi]
    EXPECT_EQ(taken({0x8b, 0x0f, 0x50, 0x9d, 0x8b, 0x0f}), exc_ac);
    EXPECT_EQ(m.pushed(1), kCode + 4);
}

} // namespace
} // namespace moscope::x86::test
