// SPDX-License-Identifier: BSD-3-Clause
// Control registers, model-specific registers, CPUID, ports, segment loads, tests of selectors (LAR, LSL, VERR, VERW),
// and privileged flags.
#include <gtest/gtest.h>

#include "cpu/x86/system/msr.hh"
#include "cpu/x86/system_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using test::FakeApic;
using test::SystemMachine;

namespace {

constexpr Addr kCode = 0x1000;

struct SystemInstructions : testing::Test {
    SystemInstructions() { m.kernel64(); }
    /// As the machine's; a user's HLT counts as the end as well.
    int fault(std::initializer_list<int> bytes) {
        const bool user = c.cpl == 3;
        const int v = m.fault(kCode, bytes);
        return user && v == exc_gp && m.pushed(1) == kCode + bytes.size() ? -1 : v;
    }
    void expect_no_change_of_cr0(std::uint64_t value) {
        const std::uint64_t before = c.cr0;
        c.r[rax] = value;
        EXPECT_EQ(fault({0x0f, 0x22, 0xc0}), exc_gp) << std::hex << value;
        EXPECT_EQ(c.cr0, before);
    }
    SystemMachine m;
    Core &c = m.core;
};

TEST_F(SystemInstructions, Cr0RefusesNonsense) {
    expect_no_change_of_cr0(c.cr0 | std::uint64_t{1} << 32);
    expect_no_change_of_cr0(c.cr0 & ~cr0::pe);             // paging without protection
    expect_no_change_of_cr0((c.cr0 | cr0::nw) & ~cr0::cd); // not write-through with caches on
    expect_no_change_of_cr0(c.cr0 & ~cr0::pg);             // leaving long mode from 64-bit code
}

TEST_F(SystemInstructions, Cr4RefusesBitsThatTheFamilyLacksAndKeepsPaeInLongMode) {
    c.r[rax] = c.cr4 | 1 << 20; // SMEP
    EXPECT_EQ(fault({0x0f, 0x22, 0xe0}), exc_gp);
    c.r[rax] = c.cr4 & ~cr4::pae;
    EXPECT_EQ(fault({0x0f, 0x22, 0xe0}), exc_gp);
    c.r[rax] = c.cr4 | cr4::pge;
    EXPECT_EQ(fault({0x0f, 0x22, 0xe0}), -1);
    EXPECT_TRUE(c.cr4 & cr4::pge);
}

TEST_F(SystemInstructions, Cr8IsTheApicsPriority) {
    FakeApic apic(c);
    c.r[rax] = 9;
    EXPECT_EQ(fault({0x44, 0x0f, 0x22, 0xc0, 0x44, 0x0f, 0x20, 0xc3}), -1); // mov cr8, rax; mov rbx, cr8
    EXPECT_EQ(apic.priority, 9);
    EXPECT_EQ(c.r[rbx], 9u);
    c.r[rax] = 16;
    EXPECT_EQ(fault({0x44, 0x0f, 0x22, 0xc0}), exc_gp);
}

TEST_F(SystemInstructions, PrivilegedOnesFaultForUsers) {
    const std::initializer_list<int> all[] = {
        {0x0f, 0x20, 0xc0},
        {0x0f, 0x22, 0xd8},
        {0x0f, 0x21, 0xf8},
        {0x0f, 0x06},
        {0x0f, 0x01, 0x14, 0x25, 0, 5, 0, 0},
        {0x0f, 0x00, 0xd0},
        {0x0f, 0x00, 0xd8},
        {0x0f, 0x01, 0xf8},
        {0x0f, 0x32},
        {0x0f, 0x30},
        {0x0f, 0x09},
        {0xf4},
        {0xfa},
        {0x0f, 0x01, 0x38},
        {0xec},
    };
    m.write<std::uint16_t>(m.kTss + 0x66, 0x1000); // no I/O permission map
    for (const auto &bytes : all) {
        m.user64();
        c.halted = false;
        m.code(kCode, bytes);
        EXPECT_EQ(m.vector_taken(), exc_gp) << std::hex << *bytes.begin();
        EXPECT_EQ(m.pushed(0), 0u);
        EXPECT_EQ(m.pushed(1), kCode);
    }
}

TEST_F(SystemInstructions, DebugRegistersFourAndFiveAreSixAndSevenUnlessDebuggingExtensionsAreOn) {
    EXPECT_EQ(fault({0x0f, 0x21, 0xe0}), -1); // mov rax, dr4
    EXPECT_EQ(c.r[rax], c.dr[6]);
    c.cr4 |= cr4::de;
    EXPECT_EQ(fault({0x0f, 0x21, 0xe0}), exc_ud);
}

TEST_F(SystemInstructions, DebugRegistersSixAndSevenKeepTheirReservedBits) {
    c.r[rax] = 0xffffdfff;                                               // without general detect
    EXPECT_EQ(m.fault(kCode, {0x0f, 0x23, 0xf0, 0x0f, 0x23, 0xf8}), -1); // mov dr6, rax; mov dr7, rax
    EXPECT_EQ(c.dr[6], 0xffffcfffu);
    EXPECT_EQ(c.dr[7], 0xffff07ffu);
    c.r[rax] = 0;
    EXPECT_EQ(m.fault(kCode, {0x0f, 0x23, 0xf0, 0x0f, 0x23, 0xf8}), -1);
    EXPECT_EQ(c.dr[6], 0xffff0ff0u);
    EXPECT_EQ(c.dr[7], 0x400u);
}

TEST_F(SystemInstructions, GeneralDetectStopsAccessesToDebugRegisters) {
    c.dr[7] |= 1 << 13;
    EXPECT_EQ(fault({0x0f, 0x21, 0xc0}), exc_db); // mov rax, dr0
    EXPECT_TRUE(c.dr[6] & 1 << 13);
    EXPECT_FALSE(c.dr[7] & 1 << 13);
    EXPECT_EQ(m.pushed(0), kCode) << "it is a fault";
}

TEST_F(SystemInstructions, GeneralDetectIsOffInTheHandlerOfInt1Too) {
    c.dr[7] |= 1 << 13;
    EXPECT_EQ(m.fault(kCode, {0xcd, 1}), exc_db); // INT 1, which is no debug exception
    EXPECT_TRUE(c.dr[7] & 1 << 13);
    EXPECT_EQ(m.fault(kCode, {0xf1}), exc_db);
    EXPECT_FALSE(c.dr[7] & 1 << 13);
}

TEST_F(SystemInstructions, EferRefusesForbiddenChanges) {
    const auto write = [&](std::uint64_t v) {
        c.r[rcx] = msr::efer;
        c.r[rax] = v & 0xffffffff;
        c.r[rdx] = v >> 32;
        return fault({0x0f, 0x30});
    };
    EXPECT_EQ(write(c.efer & ~efer::lme), exc_gp) << "not while paging";
    EXPECT_EQ(write(c.efer | efer::svme), exc_gp) << "SVM is masked";
    EXPECT_EQ(write(c.efer | efer::ffxsr), -1);
    EXPECT_TRUE(c.efer & efer::ffxsr);
}

TEST_F(SystemInstructions, AddressesInRegistersMustBeCanonical) {
    for (std::uint32_t number : {msr::lstar, msr::fs_base, msr::kernel_gs_base}) {
        c.r[rcx] = number;
        c.r[rax] = 0;
        c.r[rdx] = 0x8000;
        EXPECT_EQ(fault({0x0f, 0x30}), exc_gp);
        c.r[rdx] = 0xffff8000;
        EXPECT_EQ(fault({0x0f, 0x30}), -1);
        EXPECT_EQ(fault({0x31, 0xc0, 0x31, 0xd2, 0x0f, 0x32}), -1); // xor eax,eax; xor edx,edx; rdmsr
        EXPECT_EQ(c.r[rdx], 0xffff8000u);
    }
}

TEST_F(SystemInstructions, MsrsOfTheModelChangeOnlyTheirWritableBits) {
    m.model.msrs[0xc0010015] = {0x1000010, 0xff};
    m.model.msrs[0x179] = {0x106, 0};
    reset_msrs(c);
    c.r[rcx] = 0xc0010015;
    c.r[rax] = 0xffff;
    c.r[rdx] = 0;
    EXPECT_EQ(fault({0x0f, 0x30, 0x0f, 0x32}), -1);
    EXPECT_EQ(c.r[rax], 0x10000ffu);
    c.r[rcx] = 0x179;
    EXPECT_EQ(fault({0x0f, 0x30}), exc_gp) << "read-only";
    c.r[rcx] = 0x12345;
    EXPECT_EQ(fault({0x0f, 0x32}), exc_gp) << "there is none";
}

TEST_F(SystemInstructions, TheFirmwareLeavesTheHoleUncachedAndTheRestWriteBack) {
    for (std::uint32_t n = 0x200; n < 0x210; ++n)
        m.model.msrs[n] = {};
    m.model.msrs[msr::mtrr_def_type] = {};
    m.model.msrs[msr::top_mem] = {};
    m.phys.hole = 0xd0000000; // 256 MiB, then 512
    m.phys.dram = std::uint64_t{8} << 30;
    reset_msrs(c);
    EXPECT_EQ(find_msr(c, msr::mtrr_def_type)->value, 0xc06u);
    EXPECT_EQ(find_msr(c, msr::top_mem)->value, 0xd0000000u);
    EXPECT_EQ(find_msr(c, 0x200)->value, 0xd0000000u);
    EXPECT_EQ(find_msr(c, 0x201)->value, 0xfffff0000800u);
    EXPECT_EQ(find_msr(c, 0x202)->value, 0xe0000000u);
    EXPECT_EQ(find_msr(c, 0x203)->value, 0xffffe0000800u);
    EXPECT_EQ(find_msr(c, 0x205)->value, 0u);
}

TEST_F(SystemInstructions, TheTimeStampCounterCanBeSetAndForbidden) {
    c.r[rcx] = msr::tsc;
    c.r[rax] = 0;
    c.r[rdx] = 5;
    EXPECT_EQ(fault({0x0f, 0x30, 0x0f, 0x31}), -1); // wrmsr; rdtsc
    EXPECT_EQ(c.r[rdx], 5u);
    EXPECT_LT(c.r[rax], 100u);
    c.cr4 |= cr4::tsd;
    m.user64();
    m.code(kCode, {0x0f, 0x31});
    c.halted = false;
    EXPECT_EQ(m.vector_taken(), exc_gp);
}

TEST_F(SystemInstructions, RdtscpReadsTheAuxiliaryRegister) {
    c.tsc_aux = 0x1234;
    EXPECT_EQ(fault({0x0f, 0x01, 0xf9}), -1);
    EXPECT_EQ(c.r[rcx], 0x1234u);
}

TEST_F(SystemInstructions, CpuidCarriesTheApicIdentifierAndWhetherTheApicIsOn) {
    FakeApic apic(c);
    m.model.leaves[{1, 0}] = {0x100f80, 0x60800, 0x802009, 0x178bfbff};
    c.apic_id = 42;
    c.r[rax] = 1;
    EXPECT_EQ(fault({0x0f, 0xa2}), -1);
    EXPECT_EQ(c.r[rax], 0x100f80u);
    EXPECT_EQ(c.r[rbx], 42u << 24 | 0x60800);
    EXPECT_EQ(c.r[rdx], 0x178bfbffu);
    apic.base &= ~std::uint64_t{0x800};
    c.r[rax] = 1;
    EXPECT_EQ(fault({0x0f, 0xa2}), -1);
    EXPECT_EQ(c.r[rdx], 0x178bfbffu & ~0x200u);
    c.r[rax] = 0x40000000;
    EXPECT_EQ(fault({0x0f, 0xa2}), -1);
    EXPECT_EQ(c.r[rax] | c.r[rbx] | c.r[rcx] | c.r[rdx], 0u);
}

TEST_F(SystemInstructions, SwapgsExchangesTheBases) {
    c.seg[gs].base = 1;
    c.kernel_gs_base = 2;
    EXPECT_EQ(fault({0x0f, 0x01, 0xf8}), -1);
    EXPECT_EQ(c.seg[gs].base, 2u);
    EXPECT_EQ(c.kernel_gs_base, 1u);
}

TEST_F(SystemInstructions, TheTaskRegisterBecomesBusyAndIsNotLoadedTwice) {
    m.write<std::uint64_t>(m.kGdt + m.kTask + 8, 0);
    c.r[rax] = m.kTask;
    EXPECT_EQ(fault({0x0f, 0x00, 0xd8}), -1); // ltr ax
    EXPECT_EQ(c.tr.base, m.kTss);
    EXPECT_EQ(m.read<std::uint8_t>(m.kGdt + m.kTask + 5) & 15, 11);
    EXPECT_EQ(fault({0x0f, 0x00, 0xd8}), exc_gp);
    EXPECT_EQ(m.pushed(0), m.kTask);
}

TEST_F(SystemInstructions, DescriptorTablesAreReadAndWrittenWhole) {
    m.write<std::uint16_t>(0x4000, 0x1ff);
    m.write<std::uint64_t>(0x4002, 0xffff800000001000);
    EXPECT_EQ(fault({0x0f, 0x01, 0x1c, 0x25, 0, 0x40, 0, 0, 0x0f, 0x01, 0x0c, 0x25, 0x10, 0x40, 0, 0}),
              -1); // lidt; sidt
    EXPECT_EQ(m.read<std::uint16_t>(0x4010), 0x1ff);
    EXPECT_EQ(m.read<std::uint64_t>(0x4012), 0xffff800000001000u);
}

TEST_F(SystemInstructions, SegmentLoadsCheckTypeAndPrivilege) {
    const auto load = [&](std::uint16_t selector) {
        c.r[rax] = selector;
        return fault({0x8e, 0xd8}); // mov ds, eax
    };
    EXPECT_EQ(load(m.kData), -1);
    EXPECT_EQ(load(0), -1);
    EXPECT_EQ(load(m.kTask), exc_gp);
    EXPECT_EQ(m.pushed(0), m.kTask);
    EXPECT_EQ(load(0x1000), exc_gp);
    EXPECT_EQ(load(m.kData | 3), exc_gp) << "RPL above DPL";
    m.set(m.kSpare, SystemMachine::descriptor(0, 0xfffff, 0xc013));
    EXPECT_EQ(load(m.kSpare), exc_np);
    m.set(m.kSpare, SystemMachine::descriptor(0, 0xfffff, 0xc098));
    EXPECT_EQ(load(m.kSpare), exc_gp) << "code that may not be read";
    m.set(m.kSpare, SystemMachine::descriptor(0, 0xfffff, 0xc092));
    EXPECT_EQ(load(m.kSpare), -1);
    EXPECT_EQ(m.read<std::uint8_t>(m.kGdt + m.kSpare + 5) & 1, 1) << "accessed";
    EXPECT_EQ(fault({0x8e, 0xc8}), exc_ud) << "MOV CS";
}

TEST_F(SystemInstructions, ALocalDescriptorTableIsUsed) {
    constexpr Addr table = 0x14000;
    m.set(m.kSpare, SystemMachine::descriptor(table, 0xf, 0x0082));
    m.write<std::uint64_t>(m.kGdt + m.kSpare + 8, 0);
    m.write<std::uint64_t>(table + 8, SystemMachine::descriptor(0x5678, 0xfffff, 0xc093));
    c.r[rax] = m.kSpare;
    c.r[rbx] = 0xc;
    EXPECT_EQ(fault({0x0f, 0x00, 0xd0, 0x8e, 0xe3}), -1); // lldt ax; mov fs, ebx
    EXPECT_EQ(c.seg[fs].base, 0x5678u);
    c.r[rbx] = 0x14;
    EXPECT_EQ(fault({0x8e, 0xe3}), exc_gp) << "beyond its limit";
    EXPECT_EQ(m.pushed(0), 0x14u);
}

TEST_F(SystemInstructions, LarLslVerrAndVerwAnswerInZf) {
    c.r[rcx] = m.kUserCode64;
    EXPECT_EQ(fault({0x0f, 0x02, 0xc1}), -1); // lar eax, ecx
    EXPECT_TRUE(c.flags.z());
    EXPECT_EQ(c.r[rax], 0xaffb00u) << "masked with 00FFFF00h, as AMD hosts do";
    EXPECT_EQ(fault({0x0f, 0x03, 0xc1}), -1); // lsl eax, ecx
    EXPECT_TRUE(c.flags.z());
    EXPECT_EQ(c.r[rax], 0xffffffffu);
    EXPECT_EQ(fault({0x0f, 0x00, 0xe9}), -1); // verw cx
    EXPECT_FALSE(c.flags.z());
    EXPECT_EQ(fault({0x0f, 0x00, 0xe1}), -1); // verr cx
    EXPECT_TRUE(c.flags.z());
    c.r[rcx] = 0;
    EXPECT_EQ(fault({0x0f, 0x02, 0xc1}), -1);
    EXPECT_FALSE(c.flags.z());
}

TEST_F(SystemInstructions, TheIoPermissionMapDecidesForUsers) {
    m.write<std::uint8_t>(m.kTss + 0x68 + 0x70 / 8, 0xfe); // port 70h is free, 71h is not
    m.ports[0x70] = 0x5a;
    m.user64();
    m.code(kCode, {0xe4, 0x70, 0xe5, 0x70}); // in al, 70h; in eax, 70h
    EXPECT_EQ(m.vector_taken(), exc_gp);
    EXPECT_EQ(m.pushed(1), kCode + 2) << "four ports are asked for by the second";
    EXPECT_EQ(c.r[rax] & 0xff, 0x5au);
}

TEST_F(SystemInstructions, IoPrivilegeLevelThreeOpensAllPorts) {
    m.user64();
    c.flags.system |= Flags::iopl;
    m.code(kCode, {0xb0, 7, 0xe6, 0x71, 0xfa, 0x0f, 0x0b}); // mov al, 7; out 71h, al; cli; ud2
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.ports[0x71], 7u);
}

TEST_F(SystemInstructions, RepeatedPortStringsMoveAllElements) {
    c.r[rdx] = 0x1f0;
    c.r[rdi] = 0x5000;
    c.r[rcx] = 1000;
    m.ports[0x1f0] = 0xabcd;
    EXPECT_EQ(fault({0xf3, 0x66, 0x6d}), -1); // rep insw
    EXPECT_EQ(c.r[rdi], 0x5000u + 2000);
    EXPECT_EQ(c.r[rcx], 0u);
    EXPECT_EQ(m.read<std::uint16_t>(0x5000 + 1998), 0xabcdu);
    c.r[rsi] = 0x5000;
    c.r[rcx] = 3;
    EXPECT_EQ(fault({0xf3, 0x66, 0x6f}), -1); // rep outsw
    EXPECT_EQ(m.writes, 3u);
    EXPECT_EQ(c.r[rsi], 0x5006u);
}

TEST_F(SystemInstructions, PopfOfAUserKeepsInterruptsAndIoPrivilege) {
    m.user64();
    c.flags.system |= Flags::if_;
    c.r[rsp] -= 8;
    m.write<std::uint64_t>(c.r[rsp], Flags::iopl | Flags::cf | Flags::ac | Flags::id);
    m.code(kCode, {0x9d, 0x0f, 0x0b});
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.pushed(2) & ~Flags::rf, Flags::fixed | Flags::if_ | Flags::cf | Flags::ac | Flags::id);
}

TEST_F(SystemInstructions, ProtectedVirtualInterruptsUseVif) {
    m.user64();
    c.cr4 |= cr4::pvi;
    m.code(kCode, {0xfb, 0x0f, 0x0b}); // sti; ud2
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_TRUE(m.pushed(2) & Flags::vif);
    EXPECT_FALSE(m.pushed(2) & Flags::if_);
}

TEST_F(SystemInstructions, FlushesOfATranslationAreSeenAtOnce) {
    m.small_pages();
    m.write<std::uint64_t>(0x6000, 0x66);
    m.write<std::uint64_t>(0x7000, 0x77);
    // mov rax,[6000h]; mov qword [entry of 6000h], 7007h; invlpg [6000h]; mov rbx,[6000h]
    const auto entry = static_cast<int>(m.kTables + 0x3000 + 6 * 8);
    EXPECT_EQ(
        fault(
            {0x48,        0x8b, 0x04, 0x25, 0, 0x60, 0,    0,    0x48, 0xc7, 0x04, 0x25, entry & 255, entry >> 8 & 255,
             entry >> 16, 0,    0x07, 0x70, 0, 0,    0x0f, 0x01, 0x3c, 0x25, 0,    0x60, 0,           0,
             0x48,        0x8b, 0x1c, 0x25, 0, 0x60, 0,    0}),
        -1);
    EXPECT_EQ(c.r[rax], 0x66u);
    EXPECT_EQ(c.r[rbx], 0x77u);
}

// Decoded code is remembered by address; that of global pages survives changes of CR3.
TEST_F(SystemInstructions, InvlpgForgetsCodeOfAGlobalPageInTheLowerHalf) {
    c.cr4 |= cr4::pge;
    m.small_pages();
    m.page(0x6000, 0x6107);
    m.code(0x7000, {0xbb, 2, 0, 0, 0, 0xf4}); // mov ebx, 2; hlt
    m.code(0x6000, {0xbb, 1, 0, 0, 0, 0xf4});
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(c.r[rbx], 1u);
    c.halted = false;
    const auto entry = static_cast<int>(m.kTables + 0x3000 + 6 * 8);
    // mov qword [entry of 6000h], 7107h; invlpg [6000h]; mov eax, 6000h; jmp rax
    m.code(kCode, {0x48,        0xc7, 0x04, 0x25, entry & 255, entry >> 8 & 255,
                   entry >> 16, 0,    0x07, 0x71, 0,           0,
                   0x0f,        0x01, 0x3c, 0x25, 0,           0x60,
                   0,           0,    0xb8, 0,    0x60,        0,
                   0,           0xff, 0xe0});
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(c.r[rbx], 2u);
}

TEST_F(SystemInstructions, AChangeOfCr3ForgetsAnInstructionThatEndsInAPageThatIsNotGlobal) {
    constexpr Addr kUpper = 0xffff800000000000;
    c.cr4 |= cr4::pge;
    m.small_pages();
    m.write<std::uint64_t>(m.kTables + 256 * 8, (m.kTables + 0x1000) | 7);
    m.page(0x6000, 0x6107);
    m.code(0x8000, {2, 0, 0, 0xf4});
    m.code(0x6ffe, {0xbb, 1, 1, 0, 0, 0xf4}); // mov ebx, 101h; hlt
    c.rip += kUpper;
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(c.r[rbx], 0x101u);
    c.halted = false;
    const auto entry = static_cast<int>(m.kTables + 0x3000 + 7 * 8);
    c.r[rcx] = kUpper + 0x6ffe;
    // mov qword [entry of 7000h], 8007h; mov rax, cr3; mov cr3, rax; jmp rcx
    m.code(kCode,
           {0x48, 0xc7, 0x04, 0x25, entry & 255, entry >> 8 & 255, entry >> 16, 0, 0x07, 0x80, 0, 0, 0x0f, 0x20, 0xd8,
            0x0f, 0x22, 0xd8, 0xff, 0xe1});
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(c.r[rbx], 0x201u);
}

TEST_F(SystemInstructions, Ud2RsmAndInstructionsThatAreMaskedOrTooNewAreUndefined) {
    EXPECT_EQ(fault({0x0f, 0x0b}), exc_ud);
    EXPECT_EQ(fault({0x0f, 0xaa}), exc_ud) << "RSM outside system-management mode";
    EXPECT_EQ(fault({0x0f, 0x01, 0xd8}), exc_ud) << "VMRUN: SVM is masked";
    EXPECT_EQ(fault({0x0f, 0x0f, 0xc1, 0x9e}), exc_ud) << "PFADD: 3DNow! is masked";
    EXPECT_EQ(fault({0x66, 0x0f, 0x38, 0x00, 0xc1}), exc_ud) << "PSHUFB: SSSE3 is later than the family";
}

} // namespace
