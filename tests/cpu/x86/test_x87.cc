// SPDX-License-Identifier: BSD-3-Clause
// x87 where the host is no reference: who may use it, waiting, and the formats of its environment outside 64-bit mode.
// Arithmetic is tested against the host (native/).
#include "cpu/x86/one_instruction.hh"

namespace moscope::x86::test {
namespace {

constexpr Addr kData = 0x8000;

struct Unit : OneInstruction {
    Unit() { core.r[rdi] = core.r[rbx] = kData; }
    template <class T> std::vector<std::uint32_t> fields(unsigned n) const {
        std::vector<std::uint32_t> all;
        for (unsigned i = 0; i < n; ++i)
            all.push_back(read<T>(kData + i * sizeof(T)));
        return all;
    }
    /// TOP 6; register 6 is 1.0, 7 is zero, 0 is infinity, the others are empty.
    void known_state() {
        X87 &f = core.fpu;
        f = X87{};
        f.set_top(6);
        f.status |= 0x4100;
        f.valid = 0xc1;
        f.st[6] = {0x8000000000000000, 0x3fff};
        f.st[0] = {0x8000000000000000, 0x7fff};
        f.opcode = 0x5d9;
        f.instruction = 0x12345;
        f.instruction_cs = 0x8;
        f.operand = 0x6789a;
        f.operand_ds = 0x10;
    }
    static constexpr std::uint32_t kTags = 0x4ffe; ///< by register: 7 zero, 6 valid, 0 special, others empty
};

TEST(X87Availability, EmulationAndTaskSwitchAreDeviceNotAvailable) {
    for (const std::uint64_t bit : {cr0::em, cr0::ts}) {
        Unit m;
        m.core.cr0 |= bit;
        EXPECT_EQ(m.run({0xd9, 0xe8}), exc_nm); // fld1
        EXPECT_EQ(m.run({0xdb, 0xe3}), exc_nm); // fninit
        EXPECT_EQ(m.run({0xdf, 0xe0}), exc_nm); // fnstsw ax
        EXPECT_EQ(m.run({0xd9, 0x3f}), exc_nm); // fnstcw [rdi]
        EXPECT_EQ(m.run({0x9b}), kDone);        // fwait: only with CR0.MP
    }
    Unit m;
    m.core.cr0 |= cr0::ts | cr0::mp;
    EXPECT_EQ(m.run({0x9b}), exc_nm);
}

TEST(X87Exceptions, ShowAtTheNextInstructionThatWaits) {
    Unit m;
    m.write<std::uint16_t>(kData, 0x37b);  // division by zero unmasked
    EXPECT_EQ(m.run({0xd9, 0x2f}), kDone); // fldcw [rdi]
    EXPECT_EQ(m.run({0xd9, 0xe8}), kDone); // fld1
    EXPECT_EQ(m.run({0xd9, 0xee}), kDone); // fldz
    EXPECT_EQ(m.run({0xde, 0xf9}), kDone); // fdivp st(1): raises
    EXPECT_EQ(m.core.fpu.top(), 6u);       // nothing was popped
    EXPECT_EQ(m.core.fpu.status & 0x80bf, 0x8084);
    EXPECT_EQ(m.run({0xd9, 0xe8}), exc_mf);
    EXPECT_EQ(m.run({0x9b}), exc_mf);
    EXPECT_EQ(m.run({0xdf, 0xe0}), kDone); // fnstsw ax
    EXPECT_EQ(m.core.r[rax] & 0x84, 0x84u);
    EXPECT_EQ(m.run({0xdb, 0xe2}), kDone); // fnclex
    EXPECT_EQ(m.run({0x9b}), kDone);
}

TEST(X87Exceptions, UnmaskingOneThatIsSetMakesItPending) {
    Unit m;
    EXPECT_EQ(m.run({0xd9, 0xee}), kDone); // fldz
    EXPECT_EQ(m.run({0xd8, 0xf0}), kDone); // fdiv st(0), st(0): invalid, masked
    EXPECT_EQ(m.core.fpu.status & 0x8081, 1);
    m.write<std::uint16_t>(kData, 0x37e);
    EXPECT_EQ(m.run({0xd9, 0x2f}), kDone);
    EXPECT_EQ(m.core.fpu.status & 0x8081, 0x8081);
    EXPECT_EQ(m.run({0xd9, 0x37}), kDone); // fnstenv [rdi] masks all
    EXPECT_EQ(m.core.fpu.control & 0x3f, 0x3f);
    EXPECT_EQ(m.core.fpu.status & 0x8081, 1);
}

TEST(X87Exceptions, StoresThatTrapLeaveMemoryUnchanged) {
    Unit m;
    m.core.fpu.control = 0x37e; // invalid operation unmasked
    m.write<std::uint32_t>(kData, 0x55555555);
    EXPECT_EQ(m.run({0xd9, 0x17}), kDone); // fst dword [rdi] of an empty register
    EXPECT_EQ(m.read<std::uint32_t>(kData), 0x55555555u);
    EXPECT_EQ(m.core.fpu.status & 0xc1, 0xc1);
}

TEST(X87, ControlPrecisionIsHonoured) {
    Unit m;
    for (const auto &[control, significand] : {std::pair<int, std::uint64_t>{0x07f, 0xaaaaab0000000000},
                                               {0x27f, 0xaaaaaaaaaaaaa800},
                                               {0x37f, 0xaaaaaaaaaaaaaaab}}) {
        m.core.fpu = X87{};
        m.core.fpu.control = static_cast<std::uint16_t>(control);
        m.write<std::uint32_t>(kData, 3);
        EXPECT_EQ(m.run({0xd9, 0xe8}), kDone); // fld1
        EXPECT_EQ(m.run({0xda, 0x37}), kDone); // fidiv dword [rdi]
        EXPECT_EQ(m.core.fpu.st[m.core.fpu.top()].significand, significand);
    }
}

TEST(X87Environment, ProtectedModeOf32Bits) {
    Unit m;
    m.legacy_mode(true);
    m.known_state();
    EXPECT_EQ(m.run({0xd9, 0x37}), kDone); // fnstenv [edi]
    EXPECT_EQ(m.fields<std::uint32_t>(7), (std::vector<std::uint32_t>{0xffff037f, 0xffff7100, 0xffff0000 | Unit::kTags,
                                                                      0x12345, 0x5d90008, 0x6789a, 0xffff0010}));
    m.core.fpu = X87{};
    EXPECT_EQ(m.run({0xd9, 0x27}), kDone); // fldenv [edi]
    EXPECT_EQ(m.core.fpu.top(), 6u);
    EXPECT_EQ(m.core.fpu.valid, 0xc1);
    EXPECT_EQ(m.core.fpu.opcode, 0x5d9);
    EXPECT_EQ(m.core.fpu.operand, 0x6789au);
}

TEST(X87Environment, ProtectedModeOf16Bits) {
    Unit m;
    m.legacy_mode(true);
    m.known_state();
    EXPECT_EQ(m.run({0x66, 0xd9, 0x37}), kDone);
    EXPECT_EQ(m.fields<std::uint16_t>(7),
              (std::vector<std::uint32_t>{0x37f, 0x7100, Unit::kTags, 0x2345, 0x8, 0x789a, 0x10}));
}

TEST(X87Environment, RealModeHoldsLinearAddresses) {
    Unit m;
    m.legacy_mode(false);
    m.known_state();
    m.core.fpu.instruction = 0x2345;
    m.core.fpu.instruction_cs = 0x1000;
    m.core.fpu.operand = 0x9a;
    m.core.fpu.operand_ds = 0xf000;
    EXPECT_EQ(m.run({0xd9, 0x37}), kDone); // fnstenv [bx]
    EXPECT_EQ(m.fields<std::uint16_t>(7),
              (std::vector<std::uint32_t>{0x37f, 0x7100, Unit::kTags, 0x2345, 0x15d9, 0x009a, 0xf000}));
    EXPECT_EQ(m.run({0x66, 0xd9, 0x37}), kDone);
    EXPECT_EQ(m.fields<std::uint32_t>(7), (std::vector<std::uint32_t>{0xffff037f, 0xffff7100, 0xffff0000 | Unit::kTags,
                                                                      0xffff2345, 0x15d9, 0xffff009a, 0xf000}));
}

TEST(X87Environment, SaveInitializesAndRestoreBringsBack) {
    for (const bool wide : {false, true}) {
        Unit m;
        m.legacy_mode(true);
        m.known_state();
        const X87 before = m.core.fpu;
        EXPECT_EQ(wide ? m.run({0xdd, 0x37}) : m.run({0x66, 0xdd, 0x37}), kDone); // fnsave [edi]
        EXPECT_EQ(m.core.fpu.valid, 0);
        EXPECT_EQ(m.core.fpu.top(), 0u);
        for (auto &r : m.core.fpu.st)
            r = {};
        EXPECT_EQ(wide ? m.run({0xdd, 0x27}) : m.run({0x66, 0xdd, 0x27}), kDone); // frstor [edi]
        EXPECT_EQ(m.core.fpu.valid, before.valid);
        EXPECT_EQ(m.core.fpu.status, before.status);
        for (unsigned i = 0; i < 8; ++i) {
            EXPECT_EQ(m.core.fpu.st[i].significand, before.st[i].significand);
            EXPECT_EQ(m.core.fpu.st[i].sign_exponent, before.st[i].sign_exponent);
        }
    }
}

TEST(X87, RemembersTheLastNonControlInstruction) {
    Unit m;
    m.core.r[reg_block] = 0x4000;
    EXPECT_EQ(m.run({0xdd, 0x47, 0x10}), kDone); // fld qword [rdi + 16]
    EXPECT_EQ(m.core.fpu.opcode, 0x547);
    EXPECT_EQ(m.core.fpu.instruction, 0x4000u);
    EXPECT_EQ(m.core.fpu.operand, kData + 16);
    m.core.r[reg_block] = 0x5000;
    EXPECT_EQ(m.run({0xd9, 0x3f}), kDone); // fnstcw: not one of those
    EXPECT_EQ(m.core.fpu.instruction, 0x4000u);
}

} // namespace
} // namespace moscope::x86::test
