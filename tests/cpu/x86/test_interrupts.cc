// SPDX-License-Identifier: BSD-3-Clause
// Pins and shadows: maskable interrupts, NMI, HLT, INIT and SIPI, single steps.
#include <gtest/gtest.h>

#include "cpu/x86/system_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using dev::CoreSignals;
using test::FakeApic;
using test::SystemMachine;

namespace {

constexpr Addr kCode = 0x1000;

struct Interrupts : testing::Test {
    Interrupts() { m.kernel64(); }
    SystemMachine m;
    FakeApic apic{m.core};
    Core &c = m.core;
};

TEST_F(Interrupts, AreTakenBetweenInstructionsWhenEnabled) {
    m.code(kCode, {0x90, 0xeb, 0xfe});
    c.flags.system |= Flags::if_;
    apic.interrupt(0x41);
    EXPECT_EQ(m.vector_taken(), 0x41);
    EXPECT_EQ(m.pushed(0), kCode);
    EXPECT_TRUE(m.pushed(2) & Flags::if_);
    EXPECT_FALSE(c.flags.system & Flags::if_);
}

TEST_F(Interrupts, WaitWhileDisabled) {
    m.code(kCode, {0x90, 0x90, 0xf4});
    apic.interrupt(0x41);
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(c.rip, kCode + 3);
    EXPECT_FALSE(interrupt_deliverable(c));
}

TEST_F(Interrupts, AreHeldOffForOneInstructionAfterSti) {
    m.code(kCode, {0xfb, 0x90, 0x90}); // sti; nop; nop
    apic.interrupt(0x41);
    EXPECT_EQ(m.vector_taken(), 0x41);
    EXPECT_EQ(m.pushed(0), kCode + 2) << "the first NOP has run";
}

TEST_F(Interrupts, AreNotHeldOffByASecondSti) {
    m.code(kCode, {0xfb, 0xfb, 0x90, 0x90}); // sti; sti; nop; nop
    apic.interrupt(0x41);
    EXPECT_EQ(m.vector_taken(), 0x41);
    EXPECT_EQ(m.pushed(0), kCode + 2);
}

TEST_F(Interrupts, WakeACoreThatHaltedRightAfterSti) {
    m.code(kCode, {0xfb, 0xf4, 0x0f, 0x0b}); // sti; hlt; ud2
    apic.interrupt(0x41);
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(c.rip, kCode + 2) << "HLT ran in the shadow";
    EXPECT_TRUE(interrupt_deliverable(c));
    EXPECT_EQ(m.vector_taken(), 0x41);
    EXPECT_EQ(m.pushed(0), kCode + 2) << "and the handler returns behind it";
}

TEST_F(Interrupts, AreHeldOffForOneInstructionAfterALoadOfTheStackSegment) {
    m.code(kCode, {0x8e, 0xd0, 0x48, 0x89, 0xdc, 0x90}); // mov ss, eax; mov rsp, rbx; nop
    c.r[rax] = m.kData;
    c.r[rbx] = 0x64000;
    c.flags.system |= Flags::if_;
    c.rip = kCode;
    EXPECT_EQ(c.run(1), Exit::none); // as far as the shadow
    apic.interrupt(0x41);
    EXPECT_EQ(m.vector_taken(), 0x41);
    EXPECT_EQ(m.pushed(0), kCode + 5);
    EXPECT_EQ(m.pushed(3), 0x64000u);
}

TEST_F(Interrupts, AGateToANullDescriptorFaultsWithTheExternalBitSet) {
    m.gate64(0x41, 0x8e, m.kFree); // a gate to a null descriptor
    m.code(kCode, {0x90, 0xeb, 0xfe});
    c.flags.system |= Flags::if_;
    apic.interrupt(0x41);
    EXPECT_EQ(m.vector_taken(), exc_gp);
    EXPECT_EQ(m.pushed(0), m.kFree + 1u);
}

// What only the upper half of addresses maps, as in Linux: the task-state segment, whose RSP0 lies on two pages.
TEST_F(Interrupts, OfCompatibilityModeFindTheStackWhereTheTaskStateSegmentCrossesAPage) {
    constexpr Addr kHigh = 0xffff800000000000, kTables = SystemMachine::kTables, kTask = 0x12ff8;
    m.small_pages();
    m.write<std::uint64_t>(kTables + 8 * 256, (kTables + 0x4000) | 7);
    m.write<std::uint64_t>(kTables + 0x4000, 0x87); // a page of 1 GiB
    m.page(kTask + 8, 0);
    m.write<std::uint64_t>(kTask + 4, m.kStack0);
    c.tr.base = kHigh + kTask;
    m.user32();
    m.code(kCode, {0x0f, 0x0b});
    EXPECT_EQ(m.vector_taken(), exc_ud);
    EXPECT_EQ(c.r[rsp], m.kStack0 - 40);
}

TEST_F(Interrupts, NmiIsTakenOnceUntilIret) {
    m.code(kCode, {0xeb, 0xfe});
    c.signals.raise(CoreSignals::nmi);
    EXPECT_EQ(m.vector_taken(), exc_nmi);
    c.signals.raise(CoreSignals::nmi);
    EXPECT_FALSE(interrupt_deliverable(c));
    m.code(0x3000, {0x48, 0xcf}); // iretq
    c.halted = false;
    EXPECT_EQ(m.vector_taken(), exc_nmi);
    EXPECT_EQ(m.pushed(0), kCode);
}

TEST_F(Interrupts, NmiGoesFirst) {
    m.code(kCode, {0xeb, 0xfe});
    c.flags.system |= Flags::if_;
    apic.interrupt(0x41);
    c.signals.raise(CoreSignals::nmi);
    EXPECT_EQ(m.vector_taken(), exc_nmi);
}

TEST_F(Interrupts, InitMakesAnApplicationProcessorWaitForSipi) {
    apic.base &= ~std::uint64_t{0x100}; // not the boot processor
    m.code(kCode, {0xeb, 0xfe});
    c.xmm[3].u64[0] = 77;
    c.signals.raise(CoreSignals::init);
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_TRUE(c.wait_for_sipi);
    EXPECT_EQ(apic.inits, 1u);
    EXPECT_FALSE(c.protected_mode());
    EXPECT_EQ(c.xmm[3].u64[0], 77u) << "INIT leaves SSE state alone";
    // Nothing but SIPI (or INIT) gets through.
    c.signals.raise(CoreSignals::nmi);
    EXPECT_FALSE(interrupt_deliverable(c));
    c.signals.lower(CoreSignals::nmi);
    m.write<std::uint8_t>(0x9000, 0xf4);
    c.signals.sipi_vector = 9;
    c.signals.raise(CoreSignals::sipi);
    EXPECT_TRUE(interrupt_deliverable(c));
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_FALSE(c.wait_for_sipi);
    EXPECT_EQ(c.seg[cs].selector, 0x900);
    EXPECT_EQ(c.seg[cs].base, 0x9000u);
    EXPECT_EQ(c.rip, 1u);
}

TEST_F(Interrupts, ASipiToARunningCoreIsDropped) {
    m.code(kCode, {0x90, 0xf4});
    c.signals.raise(CoreSignals::sipi);
    EXPECT_EQ(m.run(), Exit::halt);
    EXPECT_EQ(c.rip, kCode + 2);
    EXPECT_EQ(c.signals.pending, 0u);
}

TEST_F(Interrupts, TheBootProcessorRestartsAfterInit) {
    m.code(kCode, {0xeb, 0xfe});
    c.signals.raise(CoreSignals::init);
    EXPECT_TRUE(poll_interrupts(c));
    EXPECT_FALSE(c.wait_for_sipi);
    EXPECT_EQ(c.seg[cs].base, 0xffff0000u);
}

TEST_F(Interrupts, StopEndsTheRun) {
    m.code(kCode, {0xeb, 0xfe});
    c.signals.raise(CoreSignals::stop);
    EXPECT_EQ(m.run(), Exit::stop);
}

TEST_F(Interrupts, TheTrapFlagStepsOneInstruction) {
    m.code(kCode, {0x9d, 0x90, 0x90}); // popfq; nop; nop
    c.r[rsp] -= 8;
    m.write<std::uint64_t>(c.r[rsp], Flags::tf | Flags::fixed);
    EXPECT_EQ(m.vector_taken(), exc_db);
    EXPECT_EQ(m.pushed(0), kCode + 2) << "after the instruction that follows POPF";
    EXPECT_TRUE(c.dr[6] & 1 << 14);
    EXPECT_TRUE(m.pushed(2) & Flags::tf);
    EXPECT_FALSE(c.flags.system & Flags::tf);
}

TEST_F(Interrupts, ASoftwareInterruptClearsTheTrapFlagFirst) {
    m.code(kCode, {0xcc});
    c.flags.system |= Flags::tf;
    EXPECT_EQ(m.vector_taken(), exc_bp);
    EXPECT_FALSE(c.dr[6] & 1 << 14);
}

} // namespace
