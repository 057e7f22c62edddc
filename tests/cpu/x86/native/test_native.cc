// SPDX-License-Identifier: BSD-3-Clause
// Every form of instruction that the model has in user mode, in 64-bit, 32-bit and 16-bit code, with generated
// operands, against the processor that the tests run on: registers, flags, memory, x87 and SSE state and faults are the
// same but for what the manual calls undefined. MOSCOPE_NATIVE_FORM=text runs only forms whose name contains it,
// MOSCOPE_NATIVE_SEED and MOSCOPE_NATIVE_CASES choose others than the usual ones.
#include <gtest/gtest.h>

#include <set>

#include "cpu/x86/native/both.hh"

namespace moscope::x86::native {
namespace {

enum class Part { integer, simd, x87, all };

Part part_of(const NativeForm &f) {
    switch (f.z.meta.isa_ext) {
    case ZYDIS_ISA_EXT_X87: return Part::x87;
    case ZYDIS_ISA_EXT_MMX:
    case ZYDIS_ISA_EXT_SSE:
    case ZYDIS_ISA_EXT_SSE2:
    case ZYDIS_ISA_EXT_SSE3:
    case ZYDIS_ISA_EXT_SSE4A: return Part::simd;
    default: return Part::integer;
    }
}

/// Cases of one form; returns a report, empty if all agree.
std::string run_form(ModelCpu &model, const NativeForm &f, std::uint64_t cases, std::uint64_t &ran) {
    HostCpu &host = HostCpu::get();
    std::string report;
    std::uint64_t wrong = 0;
    for (std::uint64_t n = 0; n < cases; ++n) {
        const std::uint64_t seed = seed_of(f.name, n);
        CaseMaker maker(f, seed);
        const Case c = maker.make(HostCpu::memory(kData));
        bool host_lacks = false;
        const std::string difference = run_both(host, model, f, c, host_lacks);
        if (host_lacks && n == 0)
            return "";
        ++ran;
        if (!difference.empty() && ++wrong <= 2)
            report += describe(f, c, n, seed) + difference;
    }
    return report.empty()
               ? ""
               : f.name + ": " + std::to_string(wrong) + " of " + std::to_string(cases) + " differ\n" + report;
}

void run_part(Part part, std::uint64_t cases, Mode mode = Mode::code64) {
    MOSCOPE_NEEDS_AN_EMPTY_PROCESS();
    cases = number("MOSCOPE_NATIVE_CASES", cases);
    const char *only = std::getenv("MOSCOPE_NATIVE_FORM");
    ModelCpu model;
    std::memset(HostCpu::get().memory(kData), 0, kDataBytes);
    std::uint64_t forms = 0, ran = 0;
    std::set<std::string> lacking;
    for (const NativeForm &f : all_forms(mode)) {
        if ((part != Part::all && part_of(f) != part) || !modelled(f) ||
            (only && f.name.find(only) == std::string::npos))
            continue;
        const std::uint64_t before = ran;
        const std::string report = run_form(model, f, cases, ran);
        if (ran == before)
            lacking.insert(ZydisMnemonicGetString(f.z.mnemonic));
        ++forms;
        if (!report.empty())
            ADD_FAILURE() << report;
    }
    std::string without;
    for (const std::string &m : lacking)
        without += " " + m;
    std::printf("%llu forms, %llu executions; the host lacks:%s\n", static_cast<unsigned long long>(forms),
                static_cast<unsigned long long>(ran), without.c_str());
    EXPECT_TRUE(only || forms == 0 || ran > 0);
}

constexpr std::uint64_t kShort = 200, kLong = 20'000;

TEST(InstructionsAgainstTheHost, IntegerFormsAgree) { run_part(Part::integer, kShort); }
TEST(InstructionsAgainstTheHost, MmxAndSseFormsAgree) { run_part(Part::simd, kShort); }
TEST(InstructionsAgainstTheHost, X87FormsAgree) { run_part(Part::x87, kShort); }

TEST(InstructionsAgainstTheHost, CompatibilityModeFormsAgree) { run_part(Part::all, kShort / 2, Mode::code32); }

void run_16_bit(std::uint64_t cases) {
    if (!HostCpu::get().has_sixteen_bit_code())
        GTEST_SKIP() << "the host's Linux has no segments of 16 bits (modify_ldt)";
    run_part(Part::all, cases, Mode::code16);
}
TEST(InstructionsAgainstTheHost, SixteenBitCodeAgrees) { run_16_bit(kShort / 2); }

TEST(NativeForms, AreExactlyTheInstructionsThatTheTableMarksAsCompared) {
    std::set<std::string> run, compared, promised;
    for (const Mode mode : {Mode::code64, Mode::code32, Mode::code16})
        for (const NativeForm &f : all_forms(mode))
            if (modelled(f))
                run.insert(ZydisMnemonicGetString(f.z.mnemonic));
    for (const IsaRow &r : isa_table(test::family10h_model()))
        if (r.promised) {
            promised.insert(r.mnemonic);
            if (r.compared)
                compared.insert(r.mnemonic);
        }
    std::erase_if(run, [&](const std::string &m) { return !promised.contains(m); });
    for (const std::string &m : promised)
        EXPECT_EQ(run.contains(m), compared.contains(m)) << m;
}

TEST(InstructionsAgainstTheHostLong, IntegerFormsAgree) { run_part(Part::integer, kLong); }
TEST(InstructionsAgainstTheHostLong, MmxAndSseFormsAgree) { run_part(Part::simd, kLong); }
TEST(InstructionsAgainstTheHostLong, X87FormsAgree) { run_part(Part::x87, kLong); }
TEST(InstructionsAgainstTheHostLong, CompatibilityModeFormsAgree) { run_part(Part::all, kLong, Mode::code32); }
TEST(InstructionsAgainstTheHostLong, SixteenBitCodeAgrees) { run_16_bit(kLong); }

} // namespace
} // namespace moscope::x86::native
