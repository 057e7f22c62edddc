// SPDX-License-Identifier: BSD-3-Clause
// Encodings that assemblers do not write, against the processor that the tests run on: prefixes repeated and in any
// order, REX that is not last, LOCK where it is not allowed, more than 15 bytes, bytes that are no instruction, and
// instructions that run into a page that is not there.
#include <gtest/gtest.h>

#include "cpu/x86/native/both.hh"

namespace moscope::x86::native {
namespace {

std::vector<NativeForm> modelled_forms(Mode mode = Mode::code64) {
    std::vector<NativeForm> forms;
    for (NativeForm &f : all_forms(mode))
        if (modelled(f) && f.z.meta.isa_ext != ZYDIS_ISA_EXT_SSE4A)
            forms.push_back(std::move(f));
    return forms;
}

struct Judge {
    HostCpu &host = HostCpu::get();
    ModelCpu model;
    std::uint64_t ran = 0, wrong = 0;
    std::string report;

    Judge() { std::memset(HostCpu::memory(kData), 0, kDataBytes); }
    void run(const NativeForm &f, const Case &c, std::uint64_t n, std::uint64_t seed) {
        bool host_lacks = false;
        const std::string difference = run_both(host, model, f, c, host_lacks);
        ++ran;
        if (!difference.empty() && ++wrong <= 20)
            report += describe(f, c, n, seed) + difference;
    }
    void conclude() {
        std::printf("%llu executions\n", ull(ran));
        EXPECT_EQ(wrong, 0u) << report;
        EXPECT_GT(ran, 0u);
    }
};

/// The form that the bytes are; false if they are not to be run on the host, or mean different things on the
/// two vendors' processors.
bool form_of(Mode mode, const Bytes &code, NativeForm &f) {
    f = NativeForm{};
    f.mode = mode;
    if (!decode(f.mode, code, f.z, f.op))
        return true; // both have to refuse it
    if (f.z.length != code.size() || not_beside_the_host(f.z, f.op) ||
        f.z.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
        return false;
    f.name = "any";
    f.memory = f.memory_bytes() != 0;
    f.stops = f.z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE;
    return true;
}

/// A segment override makes it look at the segment of code, where the host has other bytes than the model: its way
/// back.
bool reads_code(const NativeForm &f) {
    for (unsigned i = 0; i < f.z.operand_count; ++i)
        if (f.op[i].type == ZYDIS_OPERAND_TYPE_MEMORY && f.op[i].mem.segment == ZYDIS_REGISTER_CS)
            return true;
    return false;
}

/// In 16-bit code without overrides of GS, which is null there, and CS.
void prefixed(Mode mode, std::uint64_t cases) {
    MOSCOPE_NEEDS_AN_EMPTY_PROCESS();
    cases = number("MOSCOPE_NATIVE_CASES", cases);
    const std::vector<NativeForm> forms = modelled_forms(mode);
    Judge judge;
    for (std::uint64_t n = 0; n < cases; ++n) {
        const std::uint64_t seed = seed_of("prefixes", n);
        Values v(seed);
        const NativeForm &f = forms[v.below(forms.size())];
        if (f.stops)
            continue;
        CaseMaker maker(f, seed);
        Case c = maker.make(HostCpu::memory(kData));
        static constexpr std::uint8_t prefixes[] = {0x66, 0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x26, 0x36,
                                                    0x3e, 0x2e, 0x65, 0x40, 0x48, 0x4f, 0x41};
        const std::size_t choice = mode == Mode::code64 ? std::size(prefixes) : 9;
        // Before, among and after the prefixes that are there.
        for (std::uint64_t i = 0, extra = 1 + v.below(v.percent(5) ? 12 : 4); i < extra; ++i)
            c.code.insert(c.code.begin() + static_cast<std::ptrdiff_t>(v.below(c.code.size() < 3 ? c.code.size() : 3)),
                          prefixes[v.below(choice)]);
        NativeForm g;
        if (!form_of(mode, c.code, g))
            continue;
        if (g.z.length && (!modelled(g) || g.z.meta.isa_ext == ZYDIS_ISA_EXT_SSE4A))
            continue;
        // Whether bytes that are masked out can fault is the processor's choice; images with error pointers in them
        // are compared where it is known where they lie.
        if (g.is(ZYDIS_MNEMONIC_MASKMOVQ) || g.is(ZYDIS_MNEMONIC_MASKMOVDQU) || g.memory_bytes() > 16 ||
            g.memory_bytes() == 14)
            continue;
        if (splits_lock(g, c) || (mode == Mode::code16 && reads_code(g)))
            continue;
        judge.run(g, c, n, seed);
    }
    judge.conclude();
}

TEST(EncodingsAgainstTheHost, PrefixesInAnyNumberAndOrderAgree) { prefixed(Mode::code64, 60'000); }
TEST(EncodingsAgainstTheHostLong, PrefixesInAnyNumberAndOrderAgree) { prefixed(Mode::code64, 10'000'000); }

void prefixed_16_bit(std::uint64_t cases) {
    if (!HostCpu::get().has_sixteen_bit_code())
        GTEST_SKIP() << "the host's Linux has no segments of 16 bits (modify_ldt)";
    prefixed(Mode::code16, cases);
}
TEST(EncodingsAgainstTheHost, PrefixesInSixteenBitCodeAgree) { prefixed_16_bit(60'000); }
TEST(EncodingsAgainstTheHostLong, PrefixesInSixteenBitCodeAgree) { prefixed_16_bit(10'000'000); }

TEST(EncodingsAgainstTheHost, AnInstructionThatRunsIntoAMissingPageFaultsThere) {
    const std::vector<NativeForm> forms = modelled_forms();
    Judge judge;
    for (std::uint64_t n = 0; n < 20'000; ++n) {
        const std::uint64_t seed = seed_of("page end", n);
        Values v(seed);
        const NativeForm &f = forms[v.below(forms.size())];
        CaseMaker maker(f, seed);
        Case c = maker.make(HostCpu::memory(kData));
        if (c.code.size() == 1)
            continue;
        c.at = kCode + kCodeBytes - 1 - v.below(c.code.size() - 1);
        judge.run(f, c, n, seed);
    }
    judge.conclude();
}

TEST(EncodingsAgainstTheHost, ABranchToWhereThereIsNoCodeFaultsAtItsTarget) {
    struct Target {
        std::uint64_t at;
        int vector;
        std::uint32_t error;
    };
    constexpr std::uint32_t user = 4, fetch = 0x10, present = 1;
    const Target low[] = {{kCode + kCodeBytes - 1, -1, 0}, // an INT3
                          {kCode + kCodeBytes, exc_pf, fetch | user},
                          {kMiddle, exc_pf, fetch | user | present}, // not executable
                          {kReadOnly + 8, exc_pf, fetch | user | present},
                          {kReadOnly + 0x1000, exc_pf, fetch | user}};
    const Target high[] = {{0x27f4'86bf'ffff, exc_pf, fetch | user},
                           {0xffff'ffff'ffff'bfc3, exc_pf, fetch | user},
                           {0x8000'0000'0000, exc_gp, 0}}; // not canonical: the branch itself faults
    Judge judge;
    std::uint64_t n = 0;
    const auto follow = [&](Mode mode, const Bytes &code, const Target &t) {
        SCOPED_TRACE(text("case %llu: %02x to %llx", ull(n), code[0], ull(t.at)));
        NativeForm f;
        ASSERT_TRUE(form_of(mode, code, f));
        ASSERT_TRUE(f.stops);
        Case c;
        c.code = code;
        c.at = kCode + 0x800;
        c.in = Snapshot{};
        c.in.flags = 0x246;
        c.in.fx.control = 0x37f;
        c.in.fx.mxcsr = 0x1f80;
        c.in.r[rax] = t.at;
        c.in.r[rbx] = c.in.r[rsp] = kMiddle + 0x100;
        for (std::uint8_t *data : {HostCpu::memory(kData), judge.model.data()})
            std::memcpy(data + (kMiddle + 0x100 - kData), &t.at, 8);
        Snapshot after;
        const Outcome o = judge.model.run(code, c.at, c.in, after, mode, 0, f.stops);
        EXPECT_EQ(o.vector, t.vector);
        EXPECT_EQ(o.error, t.error);
        EXPECT_EQ(o.address, t.vector == exc_pf ? t.at : 0);
        EXPECT_EQ(after.rip, t.vector == exc_gp ? c.at : t.at);
        judge.run(f, c, n++, 0);
    };
    const Bytes indirect[] = {
        {0xff, 0x23}, {0xff, 0xe0}, {0xff, 0x13}, {0xff, 0xd0}, {0xc3}}; // JMP and CALL by [RBX] and RAX, RET
    const Bytes relative[] = {{0xe9}, {0xe8}, {0x0f, 0x84}};             // JMP, CALL, JZ
    for (const Mode mode : {Mode::code64, Mode::code32})
        for (const Target &t : low) {
            for (const Bytes &code : indirect)
                follow(mode, code, t);
            for (Bytes code : relative) {
                const auto distance = static_cast<std::uint32_t>(t.at - (kCode + 0x800 + code.size() + 4));
                for (unsigned i = 0; i < 4; ++i)
                    code.push_back(static_cast<std::uint8_t>(distance >> 8 * i));
                follow(mode, code, t);
            }
        }
    for (const Target &t : high)
        for (const Bytes &code : indirect)
            follow(Mode::code64, code, t);
    judge.conclude();
}

/// The outcome of the bytes on the model.
Outcome outcome(const Bytes &code, std::uint64_t at = kCode + 0x800) {
    ModelCpu model;
    Values v(1);
    Snapshot in, out;
    v.fill(in);
    in.r[rbx] = kMiddle;
    return model.run(code, at, in, out);
}

TEST(Encodings, FifteenBytesAreAnInstructionAndSixteenAGeneralProtectionFault) {
    Bytes fifteen(14, 0x66);
    fifteen.push_back(0x90);
    EXPECT_EQ(outcome(fifteen).vector, -1);
    fifteen.insert(fifteen.begin(), 0x66);
    EXPECT_EQ(outcome(fifteen).vector, exc_gp);
    EXPECT_EQ(outcome(Bytes(15, 0x2e)).vector, exc_gp);
}

TEST(EncodingsAgainstTheHost, AnAddressInOtherMemoryOfTheProcessIsNotCompared) {
    const std::uint64_t local = 0x1234;
    const Bytes code{0x48, 0x8b, 0x03}; // MOV RAX, [RBX]
    NativeForm f;
    ASSERT_TRUE(form_of(Mode::code64, code, f));
    Case c;
    c.code = code;
    c.at = kCode + 0x800;
    c.in = Snapshot{};
    c.in.fx.control = 0x37f;
    c.in.fx.mxcsr = 0x1f80;
    c.in.r[rsp] = kMiddle + 0x100;
    c.in.r[rbx] = reinterpret_cast<std::uint64_t>(&local);
    Judge judge;
    judge.run(f, c, 0, 0);
    judge.conclude();
    EXPECT_TRUE(HostCpu::has_other_memory(c.in.r[rbx]));
    EXPECT_FALSE(HostCpu::has_other_memory(kMiddle));
    EXPECT_FALSE(HostCpu::has_other_memory(0x27f4'86bf'f000)); // nothing is there
}

TEST(Encodings, AnOverlongInstructionPageFaultsOnlyIfItsFirst15BytesReachAMissingPage) {
    // Fifteen prefixes end with the last page: nothing beyond it is needed to refuse them.
    EXPECT_EQ(outcome(Bytes(15, 0x66), kCode + kCodeBytes - 15).vector, exc_gp);
    const Outcome cut = outcome(Bytes(15, 0x66), kCode + kCodeBytes - 14);
    EXPECT_EQ(cut.vector, exc_pf);
    EXPECT_EQ(cut.address, kCode + kCodeBytes);
    EXPECT_EQ(cut.error, 0x14u); // user, fetch
}

TEST(Encodings, LockIsForReadModifyWritesOfMemoryOnly) {
    EXPECT_EQ(outcome({0xf0, 0x01, 0x03}).vector, -1);           // LOCK ADD [RBX], EAX
    EXPECT_EQ(outcome({0xf0, 0x01, 0xc3}).vector, exc_ud);       // LOCK ADD EBX, EAX
    EXPECT_EQ(outcome({0xf0, 0x03, 0x03}).vector, exc_ud);       // LOCK ADD EAX, [RBX]
    EXPECT_EQ(outcome({0xf0, 0x39, 0x03}).vector, exc_ud);       // LOCK CMP [RBX], EAX
    EXPECT_EQ(outcome({0xf0, 0x89, 0x03}).vector, exc_ud);       // LOCK MOV [RBX], EAX
    EXPECT_EQ(outcome({0xf0, 0x0f, 0xa3, 0x03}).vector, exc_ud); // LOCK BT [RBX], EAX
    EXPECT_EQ(outcome({0xf0, 0x90}).vector, exc_ud);             // LOCK NOP
}

TEST(Encodings, InstructionsOfLaterProcessorsAreUndefined) {
    EXPECT_EQ(outcome({0x66, 0x0f, 0x38, 0x00, 0xc1}).vector, exc_ud);       // PSHUFB (SSSE3)
    EXPECT_EQ(outcome({0x66, 0x0f, 0x3a, 0x14, 0xc0, 0x01}).vector, exc_ud); // PEXTRB (SSE4.1)
    EXPECT_EQ(outcome({0xf2, 0x0f, 0x38, 0xf1, 0xc3}).vector, exc_ud);       // CRC32 (SSE4.2)
    EXPECT_EQ(outcome({0x0f, 0x38, 0xf0, 0x03}).vector, exc_ud);             // MOVBE
    EXPECT_EQ(outcome({0xc5, 0xf8, 0x58, 0xc1}).vector, exc_ud);             // VADDPS
    EXPECT_EQ(outcome({0x62, 0xf1, 0x7c, 0x48, 0x58, 0xc1}).vector, exc_ud); // VADDPS of AVX-512
    EXPECT_EQ(outcome({0x0f, 0xc7, 0xf0}).vector, exc_ud);                   // RDRAND
    EXPECT_EQ(outcome({0xf3, 0x0f, 0xae, 0xc0}).vector, exc_ud);             // RDFSBASE
    EXPECT_EQ(outcome({0x0f, 0x01, 0xd0}).vector, exc_ud);                   // XGETBV
    EXPECT_EQ(outcome({0x66, 0x0f, 0xae, 0x3b}).vector, exc_ud);             // CLFLUSHOPT
    EXPECT_EQ(outcome({0x0f, 0xff, 0xc0}).vector, exc_ud);                   // UD0
    EXPECT_EQ(outcome({0x27}).vector, exc_ud);                               // DAA in 64-bit mode
}

TEST(Encodings, PrefixesOfLaterProcessorsAreIgnoredByEarlierInstructions) {
    EXPECT_EQ(outcome({0xf3, 0x0f, 0xbc, 0xc3}).vector, -1); // TZCNT runs as BSF
    EXPECT_EQ(outcome({0xf3, 0x0f, 0x1e, 0xfa}).vector, -1); // ENDBR64 as NOP
    EXPECT_EQ(outcome({0xf2, 0xf0, 0x01, 0x03}).vector, -1); // XACQUIRE LOCK ADD
    EXPECT_EQ(outcome({0x0f, 0x1c, 0x03}).vector, -1);       // CLDEMOTE as NOP
    EXPECT_EQ(outcome({0x66, 0x90}).vector, -1);
}

} // namespace
} // namespace moscope::x86::native
