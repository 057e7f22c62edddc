// SPDX-License-Identifier: BSD-3-Clause
// IRET, far transfers, call gates, SYSCALL, SYSENTER, software interrupts, task switches, virtual-8086 mode.
#include <gtest/gtest.h>

#include "cpu/x86/system_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using test::SystemMachine;

namespace {

constexpr Addr kCode = 0x1000, kUser = 0x2000;

/// Writes a frame of 64-bit items at the stack pointer.
void frame(SystemMachine &m, std::initializer_list<std::uint64_t> items) {
    Addr a = m.core.r[rsp] -= 8 * items.size();
    for (std::uint64_t x : items) {
        m.write(a, x);
        a += 8;
    }
}

TEST(InterruptReturn, GoesToUserCodeWithItsStackAndFlags) {
    SystemMachine m;
    m.kernel64();
    m.code(kUser, {0x0f, 0x0b});
    m.code(kCode, {0x48, 0xcf}); // iretq
    m.core.nmi_blocked = true;
    frame(m, {kUser, m.kUserCode64 | 3u, Flags::if_ | Flags::fixed | Flags::cf, 0x61000, m.kUserData | 3u});
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.pushed(0), kUser);
    EXPECT_EQ(m.pushed(2) & ~Flags::rf, Flags::if_ | Flags::fixed | Flags::cf);
    EXPECT_EQ(m.pushed(3), 0x61000u);
    EXPECT_FALSE(m.core.nmi_blocked);
}

TEST(InterruptReturn, GoesToCompatibilityModeWhere32BitCodeRuns) {
    SystemMachine m;
    m.kernel64();
    m.code(kUser, {0x40, 0x0f, 0x0b}); // inc eax (a REX prefix in 64-bit mode); ud2
    m.code(kCode, {0x48, 0xcf});
    m.core.r[rax] = 0xffffffff00000007;
    frame(m, {kUser, m.kUserCode32 | 3u, Flags::fixed, 0x61000, m.kUserData | 3u});
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.core.r[rax], 8u);
    EXPECT_EQ(m.pushed(0), kUser + 1);
}

TEST(InterruptReturn, AtTheSameLevelTakesTheStackFromTheFrameToo) {
    SystemMachine m;
    m.kernel64();
    m.code(kUser, {0xf4});
    m.code(kCode, {0x48, 0xcf});
    frame(m, {kUser, m.kCode64, Flags::fixed, 0x65000, 0});
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(m.core.r[rsp], 0x65000u);
    EXPECT_EQ(m.core.seg[ss].selector, 0) << "a null SS is fine at privilege level 0";
}

TEST(InterruptReturn, ClearsDataSegmentsThatTheOuterLevelMayNotUse) {
    SystemMachine m;
    m.kernel64();
    m.code(kUser, {0x0f, 0x0b});
    m.code(kCode, {0x48, 0xcf});
    m.core.seg[fs].base = 0x1234;
    frame(m, {kUser, m.kUserCode64 | 3u, Flags::fixed, 0x61000, m.kUserData | 3u});
    m.core.seg[es] = m.segment(m.kUserData | 3);
    m.vector_taken();
    EXPECT_EQ(m.core.seg[ds].selector, 0);
    EXPECT_EQ(m.core.seg[es].selector, m.kUserData | 3);
    EXPECT_EQ(m.core.seg[fs].base, 0x1234u) << "the base survives a null selector";
}

TEST(InterruptReturn, ToAnOuterLevelMakesNullSelectorsZeroAndAtTheSameLevelKeepsThem) {
    SystemMachine m;
    m.kernel64();
    m.code(kUser, {0x0f, 0x0b});
    m.code(kCode, {0x48, 0xcf});
    for (Seg s : {ds, es, fs, gs})
        m.core.seg[s] = {0x1234, 0xffff, static_cast<std::uint16_t>(s & 3), 0};
    frame(m, {kCode, m.kCode64, Flags::fixed, m.core.r[rsp] - 40, m.kData, // to itself, then to the user
              kUser, m.kUserCode64 | 3u, Flags::fixed, 0x61000, m.kUserData | 3u});
    EXPECT_EQ(m.run(1), Exit::none);
    EXPECT_EQ(m.core.seg[ds].selector, 3) << "also after a return at the same level";
    EXPECT_EQ(m.vector_taken(), exc_ud);
    for (Seg s : {ds, es, fs, gs}) {
        EXPECT_EQ(m.core.seg[s].selector, 0);
        EXPECT_EQ(m.core.seg[s].base, 0x1234u);
    }
}

struct BadFrame {
    const char *name;
    std::uint64_t rip, code, stack;
    unsigned vector;
    std::uint32_t error;
};
class BadReturn : public testing::TestWithParam<BadFrame> {};
TEST_P(BadReturn, FaultsWithNothingChanged) {
    const BadFrame &p = GetParam();
    SystemMachine m;
    m.kernel64();
    m.gate64(p.vector, 0x8e, m.kCode64, 1);
    m.set(m.kSpare, SystemMachine::descriptor(0, 0xfffff, 0xa07b)); // code that is not present, DPL 3
    m.set(m.kFree, SystemMachine::descriptor(0, 0xfffff, 0xc073));  // data that is not present, DPL 3
    m.code(kCode, {0x48, 0xcf});
    frame(m, {p.rip, p.code, Flags::fixed, 0x61000, p.stack});
    const std::uint64_t sp = m.core.r[rsp];
    EXPECT_EQ(m.vector_taken(), static_cast<int>(p.vector));
    EXPECT_EQ(m.pushed(0), p.error);
    EXPECT_EQ(m.pushed(1), kCode);
    EXPECT_EQ(m.pushed(4), sp);
}
INSTANTIATE_TEST_SUITE_P(Frames, BadReturn,
                         testing::Values(BadFrame{"NullCode", kUser, 0, 0x53, exc_gp, 0},
                                         BadFrame{"DataAsCode", kUser, 0x53, 0x53, exc_gp, 0x50},
                                         BadFrame{"InnerCode", kUser, 0x1b, 0x53, exc_gp, 0x18},
                                         BadFrame{"AbsentCode", kUser, 0x63, 0x53, exc_np, 0x60},
                                         BadFrame{"BeyondTheTable", kUser, 0x1003, 0x53, exc_gp, 0x1000},
                                         BadFrame{"NonCanonical", 0x800000000000, 0x5b, 0x53, exc_gp, 0},
                                         BadFrame{"NullStackForUsers", kUser, 0x5b, 0, exc_gp, 0},
                                         BadFrame{"KernelStackForUsers", kUser, 0x5b, 0x10, exc_gp, 0x10},
                                         BadFrame{"AbsentStack", kUser, 0x5b, 0x23, exc_ss, 0x20}),
                         [](const auto &i) { return i.param.name; });

TEST(InterruptReturn, WithTheNestedTaskFlagIsRefusedInLongMode) {
    SystemMachine m;
    m.kernel64();
    m.code(kCode, {0x48, 0xcf});
    m.core.flags.system |= Flags::nt;
    EXPECT_EQ(m.vector_taken(), exc_gp);
}

TEST(InterruptReturn, UserCodeCannotRaiseItsPrivilegeBits) {
    SystemMachine m;
    m.kernel64();
    m.user64();
    m.code(kCode, {0x48, 0xcf});
    m.code(kUser, {0x0f, 0x0b});
    m.core.rip = kCode;
    frame(m, {kUser, m.kUserCode64 | 3u, Flags::iopl | Flags::if_ | Flags::fixed, 0x61000, m.kUserData | 3u});
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.pushed(2) & (Flags::iopl | Flags::if_), 0u);
}

TEST(SystemCall, SavesAndMasksAsTheRegistersSay) {
    SystemMachine m;
    m.kernel64();
    m.core.star = std::uint64_t{m.kUserCode32 | 3u} << 48 | std::uint64_t{m.kCode64} << 32;
    m.core.lstar = 0x3000;
    m.core.sfmask = Flags::if_ | Flags::df;
    m.user64();
    m.code(0x3000, {0x48, 0x0f, 0x07});      // sysretq
    m.code(kCode, {0x0f, 0x05, 0x0f, 0x0b}); // syscall; ud2
    m.core.flags.set_value(Flags::fixed | Flags::if_ | Flags::df | Flags::cf);
    EXPECT_EQ(m.core.run(1), Exit::none);
    EXPECT_EQ(m.core.rip, 0x3000u);
    EXPECT_EQ(m.core.cpl, 0u);
    EXPECT_EQ(m.core.r[rcx], kCode + 2);
    EXPECT_EQ(m.core.r[r11], Flags::fixed | Flags::if_ | Flags::df | Flags::cf);
    EXPECT_EQ(m.core.flags.value(), Flags::fixed | Flags::cf);
    EXPECT_EQ(m.core.seg[cs].selector, m.kCode64);
    EXPECT_EQ(m.core.seg[ss].selector, m.kCode64 + 8);
    EXPECT_EQ(m.core.r[rsp], 0x60000u) << "the stack is the caller's";
    // And back.
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.pushed(0), kCode + 2);
    EXPECT_EQ(m.pushed(1), m.kUserCode64 | 3u);
    EXPECT_EQ(m.pushed(2) & ~Flags::rf, Flags::fixed | Flags::if_ | Flags::df | Flags::cf);
    EXPECT_EQ(m.pushed(4), m.kUserData | 3u);
}

TEST(SystemCall, IsSteppedAsTheFlagsThatItLoadsSayAndSoIsSysret) {
    for (const bool masked : {true, false}) {
        SystemMachine m;
        m.kernel64();
        m.core.star = std::uint64_t{m.kUserCode32 | 3u} << 48 | std::uint64_t{m.kCode64} << 32;
        m.core.lstar = 0x3000;
        m.core.sfmask = masked ? Flags::tf : 0;
        m.user64();
        m.code(0x3000, {0x90, 0x48, 0x0f, 0x07}); // nop; sysretq
        m.code(kCode, {0x0f, 0x05, 0x90, 0x90});  // syscall; nop; nop
        m.core.flags.set_value(Flags::fixed | Flags::tf);
        EXPECT_EQ(m.vector_taken(), exc_db);
        EXPECT_EQ(m.pushed(0), masked ? kCode + 2 : 0x3000) << "after SYSRET, or before the handler";
        EXPECT_EQ(m.core.dr[6] & 0x4000, 0x4000u);
    }
}

TEST(SystemCall, FromCompatibilityModeGoesToCstarAndReturnsTo32Bits) {
    SystemMachine m;
    m.kernel64();
    m.core.star = std::uint64_t{m.kUserCode32 | 3u} << 48 | std::uint64_t{m.kCode64} << 32;
    m.core.cstar = 0x3000;
    m.user32();
    m.code(0x3000, {0x0f, 0x07}); // sysretl
    m.code(kCode, {0x0f, 0x05, 0x0f, 0x0b});
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.pushed(0), kCode + 2);
    EXPECT_EQ(m.pushed(1), m.kUserCode32 | 3u);
}

TEST(SystemCall, IsUndefinedUnlessEnabled) {
    SystemMachine m;
    m.kernel64();
    m.core.efer &= ~efer::sce;
    m.code(kCode, {0x0f, 0x05});
    EXPECT_EQ(m.vector_taken(), exc_ud);
}

TEST(SystemEnter, IsUndefinedInLongModeOnThisFamily) {
    SystemMachine m;
    m.kernel64();
    m.core.sysenter_cs = m.kCode64;
    m.user32();
    m.code(kCode, {0x0f, 0x34});
    EXPECT_EQ(m.vector_taken(), exc_ud);
}

// As AMD hosts do.
TEST(SystemExit, IsPrivilegedForUsersAndUndefinedForTheKernel) {
    SystemMachine m;
    m.kernel64();
    EXPECT_EQ(m.fault(kCode, {0x0f, 0x35}), exc_ud);
    m.user64();
    EXPECT_EQ(m.fault(kCode, {0x0f, 0x35}), exc_gp);
}

TEST(SystemEnter, WorksInProtectedMode) {
    SystemMachine m;
    m.kernel32();
    m.core.sysenter_cs = 0x08;
    m.core.sysenter_esp = 0x75000;
    m.core.sysenter_eip = 0x3000;
    m.user32();
    m.code(0x3000, {0xf4});
    m.code(kCode, {0x0f, 0x34}); // sysenter
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(m.core.rip, 0x3001u);
    EXPECT_EQ(m.core.cpl, 0u);
    EXPECT_EQ(m.core.r[rsp], 0x75000u);
    // And back, to the selectors that follow.
    m.core.halted = false;
    m.core.r[rdx] = 0x4000;
    m.core.r[rcx] = 0x66000;
    m.write<std::uint16_t>(0x4000, 0x0b0f); // ud2
    m.code(0x3000, {0x0f, 0x35});           // sysexit
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.pushed<std::uint32_t>(0), 0x4000u);
    EXPECT_EQ(m.pushed<std::uint32_t>(1), 0x1bu);
    EXPECT_EQ(m.pushed<std::uint32_t>(3), 0x66000u);
    EXPECT_EQ(m.pushed<std::uint32_t>(4), 0x23u);
}

TEST(SoftwareInterrupt, NeedsAGateOfItsPrivilege) {
    SystemMachine m;
    m.kernel64();
    m.user64();
    m.code(kCode, {0xcd, 0x80}); // int 80h
    EXPECT_EQ(m.vector_taken(), exc_gp);
    EXPECT_EQ(m.pushed(0), 0x80u * 8 + 2) << "no EXT: the program did it";
    EXPECT_EQ(m.pushed(1), kCode);

    m.gate64(0x80, 0xee);
    m.user64();
    m.code(kCode, {0xcd, 0x80});
    m.core.halted = false;
    EXPECT_EQ(m.vector_taken(), 0x80);
    EXPECT_EQ(m.pushed(0), kCode + 2);
    EXPECT_EQ(m.pushed(2) & Flags::rf, 0u);
}

TEST(SoftwareInterrupt, ATrapGateKeepsInterruptsEnabled) {
    SystemMachine m;
    m.kernel64();
    m.gate64(exc_bp, 0xef);
    m.code(kCode, {0xcc});
    m.core.flags.system |= Flags::if_;
    EXPECT_EQ(m.vector_taken(), exc_bp);
    EXPECT_EQ(m.pushed(0), kCode + 1);
    EXPECT_TRUE(m.core.flags.system & Flags::if_);
}

TEST(FarTransfer, ACallGateSwitchesStacksInLongMode) {
    SystemMachine m;
    m.kernel64();
    // A 64-bit call gate of DPL 3 at kSpare (16 bytes) to kernel code at 0x3000.
    m.write<std::uint64_t>(m.kGdt + m.kSpare, 0x3000 | std::uint64_t{m.kCode64} << 16 | std::uint64_t{0xec} << 40);
    m.write<std::uint64_t>(m.kGdt + m.kSpare + 8, 0);
    m.write<std::uint32_t>(0x4000, 0);
    m.write<std::uint16_t>(0x4004, m.kSpare | 3);
    m.user64();
    m.code(0x3000, {0x48, 0xcb});                                 // retf, 64-bit
    m.code(kCode, {0xff, 0x1c, 0x25, 0, 0x40, 0, 0, 0x0f, 0x0b}); // call far [0x4000]; ud2
    m.core.run(1);
    EXPECT_EQ(m.core.rip, 0x3000u);
    EXPECT_EQ(m.core.cpl, 0u);
    EXPECT_EQ(m.core.r[rsp], m.kStack0 - 32);
    EXPECT_EQ(m.read<std::uint64_t>(m.kStack0 - 32), kCode + 7);
    EXPECT_EQ(m.read<std::uint64_t>(m.kStack0 - 16), 0x60000u);
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.pushed(0), kCode + 7);
    EXPECT_EQ(m.pushed(1), m.kUserCode64 | 3u);
    EXPECT_EQ(m.pushed(3), 0x60000u);
}

TEST(FarTransfer, ACallGateCopiesParametersInProtectedMode) {
    SystemMachine m;
    m.kernel32();
    m.set(m.kSpare, 0x3000 | std::uint64_t{m.kCode32} << 16 | std::uint64_t{2} << 32 | std::uint64_t{0xec} << 40);
    m.user32();
    m.code(0x3000, {0xca, 8, 0}); // retf 8
    m.code(kCode,
           {0x6a, 0x11, 0x6a, 0x22, 0x9a, 0, 0, 0, 0, 0x63, 0, 0x0f, 0x0b}); // push 11h; push 22h; call gate; ud2
    m.core.run(3);
    EXPECT_EQ(m.core.rip, 0x3000u);
    EXPECT_EQ(m.pushed<std::uint32_t>(0), kCode + 11);
    EXPECT_EQ(m.pushed<std::uint32_t>(2), 0x22u);
    EXPECT_EQ(m.pushed<std::uint32_t>(3), 0x11u);
    EXPECT_EQ(m.pushed<std::uint32_t>(4), 0x60000u - 8);
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.pushed<std::uint32_t>(0), kCode + 11);
    EXPECT_EQ(m.pushed<std::uint32_t>(3), 0x60000u) << "both stacks lose their parameters";
}

TEST(FarTransfer, AJumpToInnerCodeIsRefused) {
    SystemMachine m;
    m.kernel64();
    m.write<std::uint32_t>(0x4000, 0x3000);
    m.write<std::uint16_t>(0x4004, m.kCode64 | 3);
    m.user64();
    m.code(kCode, {0xff, 0x2c, 0x25, 0, 0x40, 0, 0}); // jmp far [4000h]
    EXPECT_EQ(m.vector_taken(), exc_gp);
    EXPECT_EQ(m.pushed(0), m.kCode64);
}

TEST(FarTransfer, ACallPushesItsReturnAddressBeforeItChecksTheOffset) {
    const auto call = [](std::uint32_t stack_limit, SystemMachine &m) {
        m.kernel32();
        m.set(m.kFree, SystemMachine::descriptor(0, 0x1fff, 0x40fb));
        m.user32();
        m.core.seg[ss].limit = stack_limit;
        m.code(kCode, {0x9a, 0, 0x30, 0, 0, m.kFree | 3, 0}); // call to beyond the limit
        return m.vector_taken();
    };
    SystemMachine m, small;
    EXPECT_EQ(call(0xffffffff, m), exc_gp);
    EXPECT_EQ(m.read<std::uint32_t>(0x60000 - 8), kCode + 7);
    EXPECT_EQ(m.read<std::uint32_t>(0x60000 - 4), m.kUserCode32 | 3u);
    EXPECT_EQ(m.pushed<std::uint32_t>(4), 0x60000u) << "the stack pointer is unchanged";
    EXPECT_EQ(call(0xffff, small), exc_ss) << "a fault of the stack goes first";
}

struct Tasks : testing::Test {
    static constexpr Addr kOther = 0x13000; ///< a second task-state segment, of selector kSpare

    Tasks() {
        m.kernel32();
        m.set(m.kSpare, SystemMachine::descriptor(kOther, 0x67, 0x0089));
        m.write<std::uint32_t>(kOther + 0x20, 0x3000); // EIP
        m.write<std::uint32_t>(kOther + 0x24, Flags::fixed | Flags::cf);
        m.write<std::uint32_t>(kOther + 0x28, 0xabcd);  // EAX
        m.write<std::uint32_t>(kOther + 0x38, 0x68000); // ESP
        for (unsigned i = 0; i < 6; ++i)
            m.write<std::uint32_t>(kOther + 0x48 + 4 * i, i == cs ? m.kCode32 : m.kData);
        m.code(0x3000, {0xf4});
        m.code(kCode, {0xea, 0, 0, 0, 0, 0x60, 0}); // jmp 60:0
    }
    SystemMachine m;
};

TEST_F(Tasks, AJumpToATaskSavesTheOldAndLoadsTheNew) {
    m.core.r[rbx] = 0x77;
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(m.core.rip, 0x3001u);
    EXPECT_EQ(m.core.r[rax], 0xabcdu);
    EXPECT_EQ(m.core.r[rsp], 0x68000u);
    EXPECT_TRUE(m.core.flags.c());
    EXPECT_TRUE(m.core.cr0 & cr0::ts);
    EXPECT_EQ(m.core.tr.selector, m.kSpare);
    EXPECT_EQ(m.read<std::uint32_t>(m.kTss + 0x34), 0x77u) << "EBX of the old task";
    EXPECT_EQ(m.read<std::uint32_t>(m.kTss + 0x20), kCode + 7);
    EXPECT_EQ(m.read<std::uint8_t>(m.kGdt + m.kTask + 5) & 15, 9) << "available again";
    EXPECT_EQ(m.read<std::uint8_t>(m.kGdt + m.kSpare + 5) & 15, 11) << "busy";
    EXPECT_EQ(m.core.dr[6] & 1 << 15, 0u);
}

TEST_F(Tasks, TheTrapBitOfANewTaskStrikesBeforeItsFirstInstruction) {
    m.write<std::uint16_t>(kOther + 0x64, 1);
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_TRUE(m.core.dr[6] & 1 << 15);
    EXPECT_EQ(m.pushed<std::uint32_t>(0), 0x3000u);
    EXPECT_EQ(m.core.r[rsp], 0x68000u - 12) << "on the new task's stack";
}

TEST_F(Tasks, TheTrapBitStrikesAfterTheErrorCodeWasPushed) {
    m.write<std::uint16_t>(kOther + 0x64, 1);
    m.write<std::uint64_t>(m.kIdt + 8 * exc_gp,
                           std::uint64_t{0x85} << 40 | std::uint64_t{m.kSpare} << 16); // a task gate
    m.code(kCode, {0x8e, 0xd8});                                                       // mov ds, eax
    m.core.r[rax] = 0xfff8;
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed<std::uint32_t>(0), 0x3000u);
    EXPECT_EQ(m.pushed<std::uint32_t>(3), 0xfff8u) << "the error code of #GP";
}

TEST_F(Tasks, ANewTaskWhoseFaultCannotBeDeliveredShutsDownByJumpAndByInterrupt) {
    m.write<std::uint32_t>(kOther + 0x48 + 4 * cs, 0);  // #TS in the new task,
    for (unsigned v : {exc_df, exc_ts, exc_np, exc_gp}) // and no gate for it
        m.write<std::uint64_t>(m.kIdt + 8 * v, 0);
    const State before = m.core;
    EXPECT_EQ(m.run(), Exit::shutdown);
    EXPECT_EQ(m.core.retired, 1u);

    static_cast<State &>(m.core) = before;
    m.core.mode_changed();
    m.set(m.kSpare, SystemMachine::descriptor(kOther, 0x67, 0x0089));
    m.set(m.kTask, SystemMachine::descriptor(m.kTss, 0xfff, 0x008b));
    m.write<std::uint64_t>(m.kIdt + 8 * 0x40, std::uint64_t{0x85} << 40 | std::uint64_t{m.kSpare} << 16);
    m.code(kCode, {0xcd, 0x40});
    EXPECT_EQ(m.run(), Exit::shutdown);
    EXPECT_EQ(m.core.retired, 2u);
}

TEST(Virtual8086, IsEnteredByIretAndLeftByAnInterruptThatSavesTheSegments) {
    SystemMachine m;
    m.kernel32();
    m.code(0x30010, {0xb8, 0x34, 0x12, 0x0f, 0x0b}); // mov ax, 1234h; ud2 at 3000:10
    m.code(kCode, {0xcf});
    Addr a = m.core.r[rsp] -= 36;
    for (std::uint32_t x :
         {0x10u, 0x3000u, static_cast<std::uint32_t>(Flags::vm | Flags::fixed), 0x100u, 0x4000u, 1u, 2u, 3u, 4u}) {
        m.write(a, x);
        a += 4;
    }
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.core.r[rax] & 0xffff, 0x1234u);
    EXPECT_FALSE(m.core.virtual_8086());
    EXPECT_EQ(m.core.r[rsp], m.kStack0 - 36);
    EXPECT_EQ(m.pushed<std::uint32_t>(0), 0x13u);
    EXPECT_EQ(m.pushed<std::uint32_t>(1), 0x3000u);
    EXPECT_TRUE(m.pushed<std::uint32_t>(2) & Flags::vm);
    EXPECT_EQ(m.pushed<std::uint32_t>(4), 0x4000u);
    EXPECT_EQ(m.pushed<std::uint32_t>(5), 1u) << "ES";
    EXPECT_EQ(m.pushed<std::uint32_t>(8), 4u) << "GS";
    EXPECT_EQ(m.core.seg[ds].selector, 0);
}

} // namespace
