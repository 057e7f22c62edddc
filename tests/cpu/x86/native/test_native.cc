// SPDX-License-Identifier: BSD-3-Clause
// Every form of instruction that the model has in user mode of 64-bit mode, with generated operands, against the
// processor that the tests run on: registers, flags, memory, x87 and SSE state and faults are the same but for what
// the manual calls undefined. MOSCOPE_NATIVE_FORM=text runs only forms whose name contains it, MOSCOPE_NATIVE_SEED and
// MOSCOPE_NATIVE_CASES choose others than the usual ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "cpu/x86/native/cases.hh"
#include "cpu/x86/native/compare.hh"
#include "cpu/x86/native/host_cpu.hh"
#include "cpu/x86/native/model_cpu.hh"

namespace moscope::x86::native {
namespace {

enum class Part { integer, simd, x87 };

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

/// The model has a function for it.
bool modelled(const NativeForm &f) {
    Insn insn;
    insn.z = f.z;
    std::copy(std::begin(f.op), std::end(f.op), insn.op);
    insn.mode = Mode::code64;
    Op op;
    fill_operands(insn, op);
    return lower(insn, op) != nullptr;
}

std::uint64_t number(const char *variable, std::uint64_t otherwise) {
    const char *text = std::getenv(variable);
    return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

std::uint64_t seed_of(const std::string &name, std::uint64_t n) {
    std::uint64_t h = number("MOSCOPE_NATIVE_SEED", 1);
    for (char c : name)
        h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return h * 0x9e3779b97f4a7c15 + n;
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
        for (const Window &w : kWindows)
            std::memcpy(model.data() + (w.at - kData), HostCpu::memory(w.at), w.bytes);
        Snapshot native, modelled;
        Outcome expected = host.run(c.code, c.at, f.stops, c.in, native);
        const Outcome got = model.run(c.code, c.at, c.in, modelled);
        if (expected.vector == exc_ud && got.vector != exc_ud && n == 0)
            return ""; // the host lacks it
        ++ran;
        ignore_order(f, c, expected, got, native, modelled, HostCpu::memory(kData), model.data());
        ignore_undefined(f, c, native, modelled, HostCpu::memory(kData), model.data());
        const std::string difference = differences(c, expected, native, got, modelled, HostCpu::memory(kData), model.data());
        if (!difference.empty() && ++wrong <= 2)
            report += describe(f, c, n, seed) + difference;
        if (!difference.empty())
            std::memcpy(model.data(), HostCpu::memory(kData), kDataBytes);
    }
    return report.empty() ? "" : f.name + ": " + std::to_string(wrong) + " of " + std::to_string(cases) + " differ\n" + report;
}

void run_part(Part part, std::uint64_t cases) {
    cases = number("MOSCOPE_NATIVE_CASES", cases);
    const char *only = std::getenv("MOSCOPE_NATIVE_FORM");
    ModelCpu model;
    std::memset(HostCpu::get().memory(kData), 0, kDataBytes);
    std::uint64_t forms = 0, ran = 0;
    std::set<std::string> lacking;
    for (const NativeForm &f : all_forms()) {
        if (part_of(f) != part || !modelled(f) || (only && f.name.find(only) == std::string::npos))
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

TEST(InstructionsAgainstTheHostLong, IntegerFormsAgree) { run_part(Part::integer, kLong); }
TEST(InstructionsAgainstTheHostLong, MmxAndSseFormsAgree) { run_part(Part::simd, kLong); }
TEST(InstructionsAgainstTheHostLong, X87FormsAgree) { run_part(Part::x87, kLong); }

} // namespace
} // namespace moscope::x86::native
