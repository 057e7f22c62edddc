// SPDX-License-Identifier: BSD-3-Clause
// Exceptions: what is on the handler's stack, error codes of page faults, the interrupt-stack table, double and triple
// faults.
#include <gtest/gtest.h>

#include <string>

#include "cpu/x86/system_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using test::SystemMachine;

namespace {

constexpr Addr kCode = 0x1000, kPage = 0x5000;

TEST(Faults, AFaultFromUserCodeSwitchesToTheKernelStackAndReturnsToTheInstruction) {
    SystemMachine m;
    m.kernel64();
    m.user64();
    m.code(kCode, {0x90, 0x0f, 0x0b}); // nop; ud2
    m.core.flags.system |= Flags::if_;
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.core.cpl, 0u);
    EXPECT_EQ(m.core.r[rsp], m.kStack0 - 40);
    EXPECT_EQ(m.pushed(0), kCode + 1);
    EXPECT_EQ(m.pushed(1), m.kUserCode64 | 3u);
    EXPECT_EQ(m.pushed(2) & (Flags::if_ | Flags::rf), Flags::if_ | Flags::rf);
    EXPECT_EQ(m.pushed(3), 0x60000u);
    EXPECT_EQ(m.pushed(4), m.kUserData | 3u);
    EXPECT_EQ(m.core.seg[ss].selector, 0) << "SS is null after a change of privilege";
    EXPECT_FALSE(m.core.flags.system & Flags::if_);
}

TEST(Faults, TheStackIsAlignedAlsoWithoutAChangeOfLevel) {
    SystemMachine m;
    m.kernel64();
    m.code(kCode, {0x0f, 0x0b});
    m.core.r[rsp] = 0x7000c;
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.core.r[rsp], 0x70000u - 40);
    EXPECT_EQ(m.pushed(3), 0x7000cu);
}

TEST(Faults, TheInterruptStackTableGivesTheStackEvenWithoutAChangeOfLevel) {
    SystemMachine m;
    m.kernel64();
    m.gate64(exc_ud, 0x8e, m.kCode64, 1);
    m.code(kCode, {0x0f, 0x0b});
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.core.r[rsp], m.kStackIst1 - 40);
}

TEST(Faults, AStoreOf80BitsThatFaultsInItsSecondPageLeavesTheFirstAsItWas) {
    constexpr Addr kOperand = kPage - 8;
    for (const std::initializer_list<int> &bytes :
         {std::initializer_list<int>{0xd9, 0xe8, 0xdb, 0x3f},    // fld1; fstp tbyte [rdi]
          std::initializer_list<int>{0xd9, 0xe8, 0xdf, 0x37}}) { // fld1; fbstp [rdi]
        SystemMachine m;
        m.kernel64();
        m.small_pages();
        m.page(kPage, 0);
        m.write<std::uint64_t>(kOperand, 0x1111);
        m.core.r[rdi] = kOperand;
        EXPECT_EQ(m.fault(kCode, bytes), exc_pf);
        EXPECT_EQ(m.core.cr2, kPage);
        EXPECT_EQ(m.read<std::uint64_t>(kOperand), 0x1111u);
        EXPECT_EQ(m.core.fpu.valid, 0x80) << "it is not popped";
        m.page(kPage, kPage | 3);
        EXPECT_EQ(m.fault(kCode, {0xdb, 0x3f}), -1);
        EXPECT_EQ(m.read<std::uint64_t>(kOperand), std::uint64_t{1} << 63);
        EXPECT_EQ(m.read<std::uint16_t>(kPage), 0x3fff);
    }
}

/// REPE CMPSB as hosts execute it: it changes the flags only when it has ended.
TEST(Faults, ARepeatedComparisonThatFaultsMidwayKeepsItsProgressAndItsInitialFlags) {
    SystemMachine m;
    m.kernel64();
    m.small_pages();
    m.code(kCode, {0xf3, 0xa6});
    m.page(0x43000, 0);
    m.core.r[rsi] = 0x40000; // zeros both
    m.core.r[rdi] = 0x50000;
    m.core.r[rcx] = 0x4000;
    m.core.flags.set_value(Flags::fixed | Flags::cf | Flags::sf);
    EXPECT_EQ(m.vector_taken(5000), exc_pf);
    EXPECT_EQ(m.core.r[rcx], 0x1000u);
    EXPECT_EQ(m.core.r[rsi], 0x43000u);
    EXPECT_EQ(m.pushed(3) & (Flags::cf | Flags::sf | Flags::zf), Flags::cf | Flags::sf);
}

TEST(Faults, ASingleStepWithinARepeatedComparisonShowsItsInitialFlags) {
    SystemMachine m;
    m.kernel64();
    m.code(kCode, {0xf3, 0xa6, 0x90});
    m.core.r[rsi] = 0x40000;
    m.core.r[rdi] = 0x50000;
    m.core.r[rcx] = 2;
    m.core.flags.set_value(Flags::fixed | Flags::cf | Flags::tf);
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode);
    EXPECT_EQ(m.core.r[rcx], 1u);
    EXPECT_EQ(m.pushed(2) & (Flags::cf | Flags::zf), Flags::cf);
}

struct PageCase {
    const char *name;
    bool user, write, fetch;
    std::uint64_t entry;
    std::uint32_t error;
};

class PageFault : public testing::TestWithParam<PageCase> {};

TEST_P(PageFault, HasItsErrorCode) {
    const PageCase &p = GetParam();
    SystemMachine m;
    m.kernel64();
    m.small_pages();
    m.page(kPage, p.entry);
    if (p.user)
        m.user64();
    m.core.r[rbx] = kPage + 8;
    if (p.fetch)
        m.code(kCode, {0xff, 0xe3}); // jmp rbx
    else if (p.write)
        m.code(kCode, {0x89, 0x03}); // mov [rbx], eax
    else
        m.code(kCode, {0x8b, 0x03}); // mov eax, [rbx]
    EXPECT_EQ(m.vector_taken(), exc_pf);
    EXPECT_EQ(m.core.cr2, kPage + 8);
    EXPECT_EQ(m.pushed(0), p.error);
    EXPECT_EQ(m.pushed(1), p.fetch ? kPage + 8 : kCode);
}

constexpr std::uint64_t kNx = std::uint64_t{1} << 63;
INSTANTIATE_TEST_SUITE_P(
    Accesses, PageFault,
    testing::Values(PageCase{"ReadOfAnAbsentPage", false, false, false, 0, 0},
                    PageCase{"WriteOfAnAbsentPage", false, true, false, 0, 2},
                    PageCase{"UserReadOfAnAbsentPage", true, false, false, 0, 4},
                    PageCase{"UserWriteOfAnAbsentPage", true, true, false, 0, 6},
                    PageCase{"FetchFromAnAbsentPage", false, false, true, 0, 16},
                    PageCase{"WriteOfAReadOnlyPage", false, true, false, kPage | 5, 3},
                    PageCase{"UserWriteOfAReadOnlyPage", true, true, false, kPage | 5, 7},
                    PageCase{"UserReadOfASupervisorPage", true, false, false, kPage | 3, 5},
                    PageCase{"UserFetchFromASupervisorPage", true, false, true, kPage | 3, 21},
                    PageCase{"FetchFromANoExecutePage", false, false, true, kPage | 7 | kNx, 17},
                    PageCase{"UserFetchFromANoExecutePage", true, false, true, kPage | 7 | kNx, 21},
                    PageCase{"ReservedBits", false, false, false, kPage | 7 | std::uint64_t{1} << 51, 9}),
    [](const auto &i) { return i.param.name; });

TEST(Faults, TheGlobalBitIsReservedInTheUpperTwoLevelsOfLongModeOnly) {
    constexpr std::uint64_t kGlobal = 0x100;
    constexpr struct {
        const char *level;
        Addr entry, next, va; ///< an entry that nothing else uses, what it refers to, an address that it translates
    } kEntries[] = {{"PML4", 0x8, 0x1000, (Addr{1} << 39) + kPage},
                    {"PDP", 0x1000 + 4 * 8, 0x2000, (Addr{4} << 30) + kPage},
                    {"PD", 0x2000 + 2 * 8, 0x3000, (Addr{2} << 21) + kPage}};
    for (const auto &[level, entry, next, va] : kEntries)
        for (const std::uint64_t global : {std::uint64_t{0}, kGlobal}) {
            SCOPED_TRACE(std::string(level) + (global ? " with the bit" : " without it"));
            SystemMachine m;
            m.kernel64();
            m.small_pages();
            m.write<std::uint64_t>(m.kTables + entry, (m.kTables + next) | 7 | global);
            m.core.r[rbx] = va;
            const bool reserved = global && entry < 0x2000;
            const int vector = m.fault(kCode, {0x8b, 0x03}); // mov eax, [rbx]
            EXPECT_EQ(vector, reserved ? int{exc_pf} : -1);
            if (reserved) {
                EXPECT_EQ(m.pushed(0), 9u);
            }
        }
}

TEST(Faults, ReservedBitsOfLegacyEntriesFault) {
    constexpr std::uint64_t kLarge = 0x87; // a large page with all rights
    const auto error_with = [](std::uint64_t cr4, std::uint64_t bit) {
        SystemMachine m;
        m.kernel32();
        if (cr4 == cr4::pae) {
            m.write<std::uint64_t>(m.kTables, (m.kTables + 0x1000) | 1);
            for (unsigned i = 0; i < 2; ++i)
                m.write<std::uint64_t>(m.kTables + 0x1000 + 8 * i, std::uint64_t{i} << 21 | kLarge);
            m.write<std::uint64_t>(m.kTables + 0x1010, (m.kTables + 0x2000) | 7);
            m.write<std::uint64_t>(m.kTables + 0x2000, kPage | 7 | bit);
        } else {
            m.write<std::uint32_t>(m.kTables, kLarge);
            m.write<std::uint32_t>(m.kTables + 4, static_cast<std::uint32_t>(kLarge | bit));
        }
        m.core.cr3 = m.kTables;
        m.core.cr4 = cr4;
        m.core.cr0 |= cr0::pg;
        m.core.flush_tlb(true);
        m.core.r[rbx] = 0x400000;
        const int vector = m.fault(kCode, {0x8b, 0x03}); // mov eax, [ebx]
        return vector == exc_pf ? static_cast<int>(m.pushed<std::uint32_t>(0)) : vector;
    };
    for (const std::uint64_t format : {cr4::pae, cr4::pse})
        EXPECT_EQ(error_with(format, 0), -1);
    for (const unsigned bit : {48u, 52u, 62u})
        EXPECT_EQ(error_with(cr4::pae, std::uint64_t{1} << bit), 9) << "PAE, bit " << bit;
    EXPECT_EQ(error_with(cr4::pse, 1 << 21), 9) << "a 4-MiB page";
}

TEST(Faults, AccessedAndDirtyBitsAreSet) {
    SystemMachine m;
    m.kernel64();
    m.small_pages();
    const Addr entry = m.kTables + 0x3000 + (kPage >> 12) * 8;
    m.page(kPage, kPage | 3);
    m.core.r[rbx] = kPage;
    m.code(kCode, {0x8b, 0x03, 0xf4}); // mov eax, [rbx]; hlt
    m.run();
    EXPECT_EQ(m.read<std::uint64_t>(entry) & 0x60, 0x20u);
    m.code(kCode, {0x89, 0x03, 0xf4}); // mov [rbx], eax; hlt
    m.core.halted = false;
    m.run();
    EXPECT_EQ(m.read<std::uint64_t>(entry) & 0x60, 0x60u);
}

TEST(Faults, ANonCanonicalAddressIsAGeneralProtectionFault) {
    SystemMachine m;
    m.kernel64();
    m.core.r[rbx] = 0x0000800000000000;
    m.code(kCode, {0x8b, 0x03});
    EXPECT_EQ(m.vector_taken(), exc_gp);
    EXPECT_EQ(m.pushed(0), 0u);
    EXPECT_EQ(m.pushed(1), kCode);
}

TEST(Faults, ANonCanonicalAddressInTheStackSegmentIsAStackFault) {
    SystemMachine m;
    m.kernel64();
    m.core.r[rbp] = 0x0000800000000000;
    m.code(kCode, {0x8b, 0x45, 0x00}); // mov eax, [rbp]
    EXPECT_EQ(m.vector_taken(), exc_ss);
    EXPECT_EQ(m.pushed(0), 0u);
}

TEST(Faults, APushToANonCanonicalStackIsAStackFault) {
    SystemMachine m;
    m.kernel64();
    m.gate64(exc_ss, 0x8e, m.kCode64, 1);
    m.core.r[rsp] = 0x0000800000001000;
    m.code(kCode, {0x50}); // push rax
    EXPECT_EQ(m.vector_taken(), exc_ss);
    EXPECT_EQ(m.pushed(0), 0u);
    EXPECT_EQ(m.pushed(4), 0x0000800000001000u) << "RSP did not move";
}

TEST(Faults, APageFaultWhileAPageFaultIsDeliveredIsADoubleFault) {
    SystemMachine m;
    m.kernel64();
    m.small_pages();
    m.page(0x6f000, 0); // the stack
    m.gate64(exc_df, 0x8e, m.kCode64, 1);
    m.core.r[rbx] = kPage;
    m.page(kPage, 0);
    m.code(kCode, {0x8b, 0x03});
    EXPECT_EQ(m.vector_taken(), exc_df);
    EXPECT_EQ(m.pushed(0), 0u) << "the error code of a double fault";
    EXPECT_EQ(m.pushed(1), kCode);
    EXPECT_EQ(m.core.cr2, 0x70000u - 8) << "the second fault's address";
}

TEST(Faults, ABenignExceptionThatMeetsAPageFaultLeadsToThePageFault) {
    SystemMachine m;
    m.kernel64();
    m.small_pages();
    m.page(0x6f000, 0);
    m.gate64(exc_pf, 0x8e, m.kCode64, 1);
    m.code(kCode, {0x0f, 0x0b});
    EXPECT_EQ(m.vector_taken(), exc_pf);
    EXPECT_EQ(m.pushed(0), 2u) << "a supervisor's write";
}

TEST(Faults, AGateThatIsNotPresentIsNamedByTheErrorCode) {
    SystemMachine m;
    m.kernel64();
    m.gate64(exc_ud, 0x0e);
    m.code(kCode, {0x0f, 0x0b});
    EXPECT_EQ(m.vector_taken(), exc_np);
    EXPECT_EQ(m.pushed(0), exc_ud * 8u + 2 + 1) << "IDT and EXT";
}

TEST(Faults, AThirdFaultShutsDown) {
    SystemMachine m;
    m.kernel64();
    m.core.idtr.limit = 0;
    m.code(kCode, {0x0f, 0x0b});
    EXPECT_EQ(m.run(), Exit::shutdown);
}

// Found by the fuzzing test, which hung.
TEST(Faults, AnAlignmentCheckWhoseDeliveryRaisesAnotherShutsDown) {
    SystemMachine m;
    m.kernel32();
    m.gate32(exc_ac, 0xee, m.kUserCode32 | 3);
    m.user32();
    m.core.cr0 |= cr0::am;
    m.core.flags.system |= Flags::ac;
    m.core.mode_changed();
    m.core.r[rsp] = 0x60001;
    m.code(kCode, {0x50}); // push eax
    EXPECT_EQ(m.run(), Exit::shutdown);
}

TEST(Faults, ADivideErrorInRealModeGoesThroughTheVectorTable) {
    SystemMachine m;
    reset(m.core, false);
    m.core.seg[cs] = {0, 0xffff, 0, 0x93};
    m.core.r[rsp] = 0x7000;
    m.write<std::uint16_t>(0, 0x10);
    m.write<std::uint16_t>(2, 0x2000);
    m.write<std::uint8_t>(0x20010, 0xf4);
    m.code(kCode, {0xf6, 0xf4}); // div ah
    m.core.r[rax] = 0;
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(m.core.seg[cs].base, 0x20000u);
    EXPECT_EQ(m.core.rip, 0x11u);
    EXPECT_EQ(m.pushed<std::uint16_t>(0), kCode);
    EXPECT_EQ(m.pushed<std::uint16_t>(1), 0u);
}

TEST(Faults, ProtectedModeHandlersGet32BitFramesAndTheStackOfTheirLevel) {
    SystemMachine m;
    m.kernel32();
    m.user32();
    m.code(kCode, {0x0f, 0x0b});
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(m.core.r[rsp], m.kStack0 - 20);
    EXPECT_EQ(m.pushed<std::uint32_t>(0), kCode);
    EXPECT_EQ(m.pushed<std::uint32_t>(1), m.kUserCode32 | 3u);
    EXPECT_EQ(m.pushed<std::uint32_t>(3), 0x60000u);
    EXPECT_EQ(m.pushed<std::uint32_t>(4), m.kUserData | 3u);
    EXPECT_EQ(m.core.seg[ss].selector, m.kData);
}

TEST(Faults, SegmentLimitsHoldInProtectedMode) {
    SystemMachine m;
    m.kernel32();
    m.set(m.kSpare, SystemMachine::descriptor(0x3000, 0x0f, 0x0093));
    m.core.seg[es] = m.segment(m.kSpare);
    m.core.r[rbx] = 0xc;
    m.code(kCode, {0x26, 0x8b, 0x03, 0x43, 0x26, 0x8b, 0x03}); // mov eax, es:[ebx]; inc ebx; mov eax, es:[ebx]
    EXPECT_EQ(m.vector_taken(), exc_gp);
    EXPECT_EQ(m.pushed<std::uint32_t>(0), 0u);
    EXPECT_EQ(m.pushed<std::uint32_t>(1), kCode + 4);
}

TEST(Faults, AWriteToAReadOnlySegmentFaults) {
    SystemMachine m;
    m.kernel32();
    m.set(m.kSpare, SystemMachine::descriptor(0, 0xfffff, 0xc091));
    m.core.seg[es] = m.segment(m.kSpare);
    m.code(kCode, {0x26, 0x89, 0x03}); // mov es:[ebx], eax
    EXPECT_EQ(m.vector_taken(), exc_gp);
}

} // namespace
