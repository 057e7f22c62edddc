// SPDX-License-Identifier: BSD-3-Clause
// MMX and SSE where the host is no reference: who may use them, what MXCSR says of misalignment and exceptions, state
// saves by mode, SSE4a, and the guest's rounding, independent of the host's. Lanes are tested against the host (native/).
#include <cfenv>
#include <random>

#include <gtest/gtest-spi.h>

#include "cpu/x86/one_instruction.hh"

namespace moscope::x86::test {
namespace {

constexpr Addr kData = 0x10000;

struct Media : OneInstruction {
    Media() { core.r[rdi] = kData; }
    void set(unsigned i, double low, double high = 0) {
        core.xmm[i].f64[0] = low;
        core.xmm[i].f64[1] = high;
    }
};

TEST(SseAvailability, NeedsOsfxsrAndNoEmulationAndNoTaskSwitch) {
    Media m;
    EXPECT_EQ(m.run({0x0f, 0x58, 0xc1}), kDone); // addps xmm0, xmm1
    m.core.cr0 |= cr0::ts;
    EXPECT_EQ(m.run({0x0f, 0x58, 0xc1}), exc_nm);
    EXPECT_EQ(m.run({0x0f, 0x28, 0x07}), exc_nm); // movaps xmm0, [rdi]
    m.core.cr0 |= cr0::em;
    EXPECT_EQ(m.run({0x0f, 0x58, 0xc1}), exc_ud);
    m.core.cr0 &= ~(cr0::em | cr0::ts);
    m.core.cr4 &= ~cr4::osfxsr;
    EXPECT_EQ(m.run({0x0f, 0x58, 0xc1}), exc_ud);
    EXPECT_EQ(m.run({0x0f, 0xae, 0x1f}), exc_ud); // stmxcsr [rdi]
    EXPECT_EQ(m.run({0x0f, 0xfe, 0xc1}), kDone);  // paddd mm0, mm1: MMX does not depend on it
}

TEST(MmxAvailability, EmulationTaskSwitchAndPendingExceptionRefuseIt) {
    Media m;
    m.core.fpu.status = X87::kSummary;
    EXPECT_EQ(m.run({0x0f, 0xfe, 0xc1}), exc_mf);
    EXPECT_EQ(m.run({0x0f, 0x77}), exc_mf);            // emms
    EXPECT_EQ(m.run({0x0f, 0x2a, 0xc1}), exc_mf);      // cvtpi2ps xmm0, mm1
    EXPECT_EQ(m.run({0x66, 0x0f, 0xfe, 0xc1}), kDone); // paddd xmm0, xmm1
    m.core.cr0 |= cr0::ts;
    EXPECT_EQ(m.run({0x0f, 0xfe, 0xc1}), exc_nm);
    m.core.cr0 |= cr0::em;
    EXPECT_EQ(m.run({0x0f, 0xfe, 0xc1}), exc_ud);
}

TEST(Mmx, WritesMarkAllX87RegistersUsedAndEmmsEmptiesThem) {
    Media m;
    m.core.fpu.set_top(5);
    m.core.fpu.valid = 0;
    m.core.fpu.st[1].significand = 7;
    EXPECT_EQ(m.run({0x0f, 0x6f, 0xd1}), kDone); // movq mm2, mm1
    EXPECT_EQ(m.core.fpu.st[2].significand, 7u);
    EXPECT_EQ(m.core.fpu.st[2].sign_exponent, 0xffff);
    EXPECT_EQ(m.core.fpu.top(), 0u);
    EXPECT_EQ(m.core.fpu.valid, 0xff);
    EXPECT_EQ(m.run({0x0f, 0x77}), kDone);
    EXPECT_EQ(m.core.fpu.valid, 0);
}

TEST(SseAlignment, PackedOperandsMayBeMisalignedOnlyWithTheMask) {
    Media m;
    m.core.r[rdi] = kData + 4;
    EXPECT_EQ(m.run({0x0f, 0x58, 0x07}), exc_gp); // addps xmm0, [rdi]
    EXPECT_EQ(m.run({0x0f, 0x10, 0x07}), kDone);  // movups xmm0, [rdi]
    m.core.mxcsr |= 1 << 17;
    EXPECT_EQ(m.run({0x0f, 0x58, 0x07}), kDone);
    EXPECT_EQ(m.run({0x0f, 0x28, 0x07}), exc_gp); // movaps xmm0, [rdi]
    EXPECT_EQ(m.run({0x0f, 0x29, 0x07}), exc_gp); // movaps [rdi], xmm0
    EXPECT_EQ(m.run({0x0f, 0x2b, 0x07}), exc_gp); // movntps [rdi], xmm0
}

TEST(Mxcsr, ReservedBitsAreRefused) {
    Media m;
    m.write<std::uint32_t>(kData, 0x1f80 | 1 << 16);
    EXPECT_EQ(m.run({0x0f, 0xae, 0x17}), exc_gp); // ldmxcsr [rdi]
    EXPECT_EQ(m.core.mxcsr, 0x1f80u);
    m.write<std::uint32_t>(kData, 0x2ffff);
    EXPECT_EQ(m.run({0x0f, 0xae, 0x17}), kDone);
    EXPECT_EQ(m.core.mxcsr, 0x2ffffu);
}

TEST(SseExceptions, UnmaskedOnesLeaveTheDestinationAndSetTheirFlag) {
    Media m;
    m.core.mxcsr = 0x1f80 & ~0x200u; // division by zero unmasked
    m.set(0, 3);
    m.set(1, 0);
    EXPECT_EQ(m.run({0xf2, 0x0f, 0x5e, 0xc1}), exc_xf); // divsd xmm0, xmm1
    EXPECT_EQ(m.core.xmm[0].f64[0], 3.0);
    EXPECT_EQ(m.core.mxcsr & 0x3f, 4u);
    m.core.cr4 &= ~cr4::osxmmexcpt;
    EXPECT_EQ(m.run({0xf2, 0x0f, 0x5e, 0xc1}), exc_ud);
}

TEST(SseExceptions, FlagsAreEachCoresOwn) {
    Media a, b;
    for (Media *m : {&a, &b}) {
        m->set(0, 1);
        m->set(1, 3);
    }
    EXPECT_EQ(a.run({0xf2, 0x0f, 0x5e, 0xc1}), kDone); // 1 / 3: inexact
    EXPECT_EQ(b.run({0xf2, 0x0f, 0x58, 0xc1}), kDone); // 1 + 3: exact
    EXPECT_EQ(a.core.mxcsr, 0x1fa0u);
    EXPECT_EQ(b.core.mxcsr, 0x1f80u);
    EXPECT_EQ(a.run({0xf2, 0x0f, 0x5e, 0xc1}), kDone);
    b.core.mxcsr = 0x1f84;
    EXPECT_EQ(b.run({0xf2, 0x0f, 0x58, 0xc1}), kDone);
    EXPECT_EQ(b.core.mxcsr, 0x1f84u);
}

TEST(SseExceptions, FlagsThatTheGuestClearedComeBackOnlyIfRaisedAgain) {
    Media m;
    m.set(0, 1);
    m.set(1, 3);
    EXPECT_EQ(m.run({0xf2, 0x0f, 0x5e, 0xc1}), kDone);
    m.core.mxcsr = 0x1f80;
    m.set(0, 1);
    EXPECT_EQ(m.run({0xf2, 0x0f, 0x58, 0xc1}), kDone);
    EXPECT_EQ(m.core.mxcsr, 0x1f80u);
    m.set(0, 1);
    EXPECT_EQ(m.run({0xf2, 0x0f, 0x5e, 0xc1}), kDone);
    EXPECT_EQ(m.core.mxcsr, 0x1fa0u);
}

TEST(SseRounding, FollowsTheGuestAndLeavesTheHostsUnchanged) {
    Media m;
    volatile double one = 1, three = 3;
    const double nearest = one / three;
    m.set(1, 3);
    m.core.mxcsr = 0x1f80 | 0x4000; // up
    m.set(0, 1);
    EXPECT_EQ(m.run({0xf2, 0x0f, 0x5e, 0xc1}), kDone);
    EXPECT_GT(m.core.xmm[0].f64[0], nearest);
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    EXPECT_EQ(one / three, nearest);
    m.core.mxcsr = 0x1f80;
    m.set(0, 1);
    EXPECT_EQ(m.run({0xf2, 0x0f, 0x5e, 0xc1}), kDone);
    EXPECT_EQ(m.core.xmm[0].f64[0], nearest);
}

TEST(SseRounding, DenormalsAreZeroAndFlushToZeroFollowTheGuest) {
    Media m;
    m.set(0, 0x1p-1060);
    m.set(1, 1);
    m.core.mxcsr = 0x1f80 | 0x40;                      // denormals are zeros
    EXPECT_EQ(m.run({0xf2, 0x0f, 0x59, 0xc1}), kDone); // mulsd xmm0, xmm1
    EXPECT_EQ(m.core.xmm[0].f64[0], 0.0);
    m.set(0, 0x1p-1020);
    m.set(1, 0x1.8p-10);
    m.core.mxcsr = 0x1f80 | 0x8000; // flush to zero
    EXPECT_EQ(m.run({0xf2, 0x0f, 0x59, 0xc1}), kDone);
    EXPECT_EQ(m.core.xmm[0].f64[0], 0.0);
    EXPECT_EQ(m.core.mxcsr & 0x3f, 0x30u);
}

// --- FXSAVE
TEST(Fxsave, FastFormOfRingZeroLeavesXmmOut) {
    Media m;
    m.core.xmm[3].u64[0] = 0x1122334455667788;
    const Addr xmm3 = kData + 160 + 3 * 16;
    EXPECT_EQ(m.run({0x0f, 0xae, 0x07}), kDone); // fxsave [rdi]
    EXPECT_EQ(m.read<std::uint64_t>(xmm3), 0x1122334455667788u);
    m.write<std::uint64_t>(xmm3, 5);
    m.core.efer |= efer::ffxsr;
    EXPECT_EQ(m.run({0x0f, 0xae, 0x07}), kDone);
    EXPECT_EQ(m.read<std::uint64_t>(xmm3), 5u);
    EXPECT_EQ(m.run({0x0f, 0xae, 0x0f}), kDone); // fxrstor [rdi]
    EXPECT_EQ(m.core.xmm[3].u64[0], 0x1122334455667788u);
    m.core.cpl = 3;
    m.core.mode_changed();
    EXPECT_EQ(m.run({0x0f, 0xae, 0x0f}), kDone);
    EXPECT_EQ(m.core.xmm[3].u64[0], 5u);
}

TEST(Fxsave, LegacyModesMoveEightXmmRegisters) {
    Media m;
    m.legacy_mode(true);
    m.write<std::uint64_t>(kData + 160 + 8 * 16, 77);
    m.core.xmm[8].u64[0] = 1;
    EXPECT_EQ(m.run({0x0f, 0xae, 0x07}), kDone);
    EXPECT_EQ(m.read<std::uint64_t>(kData + 160 + 8 * 16), 77u);
    EXPECT_EQ(m.run({0x0f, 0xae, 0x0f}), kDone);
    EXPECT_EQ(m.core.xmm[8].u64[0], 1u);
}

TEST(Fxsave, BringsEverythingBack) {
    Media m;
    std::mt19937_64 random(1);
    for (auto &x : m.core.xmm)
        x.u64[0] = random(), x.u64[1] = random();
    for (auto &r : m.core.fpu.st)
        r = {random(), static_cast<std::uint16_t>(random())};
    m.core.fpu.status = 3 << 11 | 0x4522;
    m.core.fpu.valid = 0x5a;
    m.core.fpu.control = 0x27f;
    m.core.mxcsr = 0x3fa1;
    const State saved = m.core;
    EXPECT_EQ(m.run({0x48, 0x0f, 0xae, 0x07}), kDone); // fxsave64 [rdi]
    for (auto &x : m.core.xmm)
        x = Xmm{};
    m.core.fpu = X87{};
    m.core.mxcsr = 0x1f80;
    EXPECT_EQ(m.run({0x48, 0x0f, 0xae, 0x0f}), kDone); // fxrstor64 [rdi]
    EXPECT_EQ(std::memcmp(m.core.xmm, saved.xmm, sizeof saved.xmm), 0);
    for (unsigned i = 0; i < 8; ++i) {
        EXPECT_EQ(m.core.fpu.st[i].significand, saved.fpu.st[i].significand);
        EXPECT_EQ(m.core.fpu.st[i].sign_exponent, saved.fpu.st[i].sign_exponent);
    }
    EXPECT_EQ(m.core.fpu.status, saved.fpu.status);
    EXPECT_EQ(m.core.fpu.valid, saved.fpu.valid);
    EXPECT_EQ(m.core.fpu.control, saved.fpu.control);
    EXPECT_EQ(m.core.mxcsr, saved.mxcsr);
}

TEST(Fxsave, RefusesMisalignedAreasAndReservedMxcsrBits) {
    Media m;
    m.core.r[rdi] = kData + 8;
    EXPECT_EQ(m.run({0x0f, 0xae, 0x07}), exc_gp);
    m.core.r[rdi] = kData;
    EXPECT_EQ(m.run({0x0f, 0xae, 0x07}), kDone);
    EXPECT_EQ(m.read<std::uint32_t>(kData + 28), 0x2ffffu); // the mask of what MXCSR has
    m.write<std::uint32_t>(kData + 24, 0x10000);
    EXPECT_EQ(m.run({0x0f, 0xae, 0x0f}), exc_gp);
    m.core.cr0 |= cr0::ts;
    EXPECT_EQ(m.run({0x0f, 0xae, 0x07}), exc_nm);
}

// --- SSE4a, by the manual's words: bit by bit
std::uint64_t bits(unsigned n) { return n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1; }
unsigned length_of(unsigned field) { return field ? field : 64; }

TEST(Sse4a, ExtractsAndInsertsEveryField) {
    Media m;
    std::mt19937_64 random(2);
    for (unsigned length = 0; length < 64; ++length)
        for (unsigned at = 0; at + length_of(length) <= 64; ++at) {
            const std::uint64_t d = random(), s = random(), n = length_of(length);
            const std::uint64_t extracted = d >> at & bits(static_cast<unsigned>(n));
            std::uint64_t inserted = d;
            for (unsigned i = 0; i < n; ++i)
                inserted = (inserted & ~(std::uint64_t{1} << (at + i))) | (s >> i & 1) << (at + i);
            const int l = static_cast<int>(length), p = static_cast<int>(at);

            m.core.xmm[1].u64[0] = d;
            ASSERT_EQ(m.run({0x66, 0x0f, 0x78, 0xc1, l, p}), kDone); // extrq xmm1, length, index
            ASSERT_EQ(m.core.xmm[1].u64[0], extracted) << length << " at " << at;
            m.core.xmm[1].u64[0] = d;
            m.core.xmm[2].u64[0] = length | at << 8;
            ASSERT_EQ(m.run({0x66, 0x0f, 0x79, 0xca}), kDone); // extrq xmm1, xmm2
            ASSERT_EQ(m.core.xmm[1].u64[0], extracted);

            m.core.xmm[1].u64[0] = d;
            m.core.xmm[2].u64[0] = s;
            ASSERT_EQ(m.run({0xf2, 0x0f, 0x78, 0xca, l, p}), kDone); // insertq xmm1, xmm2, length, index
            ASSERT_EQ(m.core.xmm[1].u64[0], inserted) << length << " at " << at;
            m.core.xmm[1].u64[0] = d;
            m.core.xmm[2].u64[1] = length | at << 8;
            ASSERT_EQ(m.run({0xf2, 0x0f, 0x79, 0xca}), kDone); // insertq xmm1, xmm2
            ASSERT_EQ(m.core.xmm[1].u64[0], inserted);
        }
}

TEST(Sse4a, NonTemporalScalarsStoreTheLowLane) {
    Media m;
    m.core.xmm[1].u64[0] = 0x1122334455667788;
    m.core.r[rdi] = kData + 1;                         // any alignment
    EXPECT_EQ(m.run({0xf2, 0x0f, 0x2b, 0x0f}), kDone); // movntsd [rdi], xmm1
    EXPECT_EQ(m.read<std::uint64_t>(kData + 1), 0x1122334455667788u);
    m.write<std::uint64_t>(kData + 1, 0);
    EXPECT_EQ(m.run({0xf3, 0x0f, 0x2b, 0x0f}), kDone); // movntss [rdi], xmm1
    EXPECT_EQ(m.read<std::uint64_t>(kData + 1), 0x55667788u);
}

TEST(NonTemporal, StoresAreMarkedForTheMemorySystem) {
    Media m;
    EXPECT_EQ(m.run({0x0f, 0x2b, 0x07}), kDone); // movntps [rdi], xmm0
    EXPECT_TRUE(m.op.non_temporal);
    EXPECT_EQ(m.run({0x0f, 0xe7, 0x07}), kDone); // movntq [rdi], mm0
    EXPECT_TRUE(m.op.non_temporal);
    EXPECT_EQ(m.run({0x66, 0x0f, 0xf7, 0xc1}), kDone); // maskmovdqu xmm0, xmm1
    EXPECT_TRUE(m.op.non_temporal);
    EXPECT_EQ(m.run({0x0f, 0xc3, 0x07}), kDone); // movnti [rdi], eax
    EXPECT_TRUE(m.op.non_temporal);
    EXPECT_EQ(m.run({0x0f, 0x29, 0x07}), kDone); // movaps [rdi], xmm0
    EXPECT_FALSE(m.op.non_temporal);
}

TEST(MaskedStores, FaultAtTheFirstChosenByteAndLeaveTheOthersAlone) {
    Media m;
    for (unsigned i = 0; i < 16; ++i) {
        m.core.xmm[0].u8[i] = 0xaa;
        m.core.xmm[1].u8[i] = i % 2 ? 0x80 : 0x7f;
    }
    m.core.r[rdi] = 0x100000000 - 8; // the map ends at 4 GiB
    EXPECT_EQ(m.run({0x66, 0x0f, 0xf7, 0xc1}), exc_pf);
    EXPECT_EQ(m.core.fault.address, 0x100000001u);
    m.core.r[rdi] = kData;
    EXPECT_EQ(m.run({0x66, 0x0f, 0xf7, 0xc1}), kDone);
    EXPECT_EQ(m.read<std::uint64_t>(kData), 0xaa00aa00aa00aa00u);
}

TEST(Sse, LaterExtensionsHaveNoImplementation) {
    Media m;
    EXPECT_NONFATAL_FAILURE(m.run({0x66, 0x0f, 0x3a, 0x15, 0xc8, 1}), "pextrw"); // the form of SSE4.1
}

} // namespace
} // namespace moscope::x86::test
