// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/decode/isa.hh"

namespace moscope::x86 {

namespace {

constexpr auto A = &CpuidLeaf::eax;
constexpr auto C = &CpuidLeaf::ecx;
constexpr auto D = &CpuidLeaf::edx;
constexpr std::uint32_t kExt = 0x80000001;

struct Row {
    ZydisISASet set;
    IsaFeature feature;
};

constexpr Row kRows[] = {
    {ZYDIS_ISA_SET_I86, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_I186, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_I286PROTECTED, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_I286REAL, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_I386, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_I486, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_I486REAL, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_PENTIUMREAL, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_PPRO, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_FAT_NOP, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_RDPMC, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_LAHF, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_PAUSE, {"", 0, A, 0}},
    {ZYDIS_ISA_SET_X87, {"fpu", 1, D, 0}},
    {ZYDIS_ISA_SET_CMOV, {"cmov", 1, D, 15}},
    {ZYDIS_ISA_SET_FCMOV, {"cmov", 1, D, 15}},
    {ZYDIS_ISA_SET_CLFSH, {"clflush", 1, D, 19}},
    {ZYDIS_ISA_SET_PENTIUMMMX, {"mmx", 1, D, 23}},
    {ZYDIS_ISA_SET_FXSAVE, {"fxsr", 1, D, 24}},
    {ZYDIS_ISA_SET_FXSAVE64, {"fxsr", 1, D, 24}},
    {ZYDIS_ISA_SET_SSE, {"sse", 1, D, 25}},
    {ZYDIS_ISA_SET_SSEMXCSR, {"sse", 1, D, 25}},
    {ZYDIS_ISA_SET_SSE_PREFETCH, {"sse", 1, D, 25}},
    {ZYDIS_ISA_SET_SSE2, {"sse2", 1, D, 26}},
    {ZYDIS_ISA_SET_SSE2MMX, {"sse2", 1, D, 26}},
    {ZYDIS_ISA_SET_SSE3, {"pni", 1, C, 0}},
    {ZYDIS_ISA_SET_SSE3X87, {"pni", 1, C, 0}},
    {ZYDIS_ISA_SET_PCLMULQDQ, {"pclmulqdq", 1, C, 1}},
    {ZYDIS_ISA_SET_MONITOR, {"monitor", 1, C, 3}},
    {ZYDIS_ISA_SET_SSSE3, {"ssse3", 1, C, 9}},
    {ZYDIS_ISA_SET_SSSE3MMX, {"ssse3", 1, C, 9}},
    {ZYDIS_ISA_SET_CMPXCHG16B, {"cx16", 1, C, 13}},
    {ZYDIS_ISA_SET_SSE4, {"sse4_1", 1, C, 19}},
    {ZYDIS_ISA_SET_SSE42, {"sse4_2", 1, C, 20}},
    {ZYDIS_ISA_SET_MOVBE, {"movbe", 1, C, 22}},
    {ZYDIS_ISA_SET_POPCNT, {"popcnt", 1, C, 23}},
    {ZYDIS_ISA_SET_AES, {"aes", 1, C, 25}},
    {ZYDIS_ISA_SET_XSAVE, {"xsave", 1, C, 26}},
    {ZYDIS_ISA_SET_RDRAND, {"rdrand", 1, C, 30}},
    {ZYDIS_ISA_SET_SVM, {"svm", kExt, C, 2}},
    {ZYDIS_ISA_SET_LZCNT, {"abm", kExt, C, 5}},
    {ZYDIS_ISA_SET_SSE4A, {"sse4a", kExt, C, 6}},
    {ZYDIS_ISA_SET_PREFETCH_NOP, {"3dnowprefetch", kExt, C, 8}},
    {ZYDIS_ISA_SET_PREFETCHWT1, {"3dnowprefetch", kExt, C, 8}}, // one of the reserved hints of PREFETCH there
    {ZYDIS_ISA_SET_AMD, {"syscall", kExt, D, 11}},
    {ZYDIS_ISA_SET_RDTSCP, {"rdtscp", kExt, D, 27}},
    {ZYDIS_ISA_SET_LONGMODE, {"lm", kExt, D, 29}},
    {ZYDIS_ISA_SET_AMD3DNOW, {"3dnow", kExt, D, 31}},
};

} // namespace

const IsaFeature *feature_of(ZydisISASet set) {
    for (const Row &r : kRows)
        if (r.set == set)
            return &r.feature;
    return nullptr;
}

namespace {

/// False: runs only with privilege, leaves user mode, loads segments or tells processors apart.
bool of_user_mode(const ZydisDecodedInstruction &z) {
    switch (z.meta.category) {
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_SEGOP:
    case ZYDIS_CATEGORY_RDWRFSGS: return false;
    default: break;
    }
    switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_LAR:
    case ZYDIS_MNEMONIC_LSL:
    case ZYDIS_MNEMONIC_VERR:
    case ZYDIS_MNEMONIC_VERW:
    case ZYDIS_MNEMONIC_ARPL:
    case ZYDIS_MNEMONIC_MONITOR:
    case ZYDIS_MNEMONIC_MWAIT:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2: return false;
    default: return true;
    }
}

} // namespace

const char *not_beside_the_host(const ZydisDecodedInstruction &z, const ZydisDecodedOperand *op) {
    const bool sixteen_bit_code =
        z.machine_mode == ZYDIS_MACHINE_MODE_LONG_COMPAT_16 || z.machine_mode == ZYDIS_MACHINE_MODE_LEGACY_16;
    if (!of_user_mode(z))
        return "system";
    if (z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
        return "far";
    // With an operand-size prefix, a branch outside 16-bit code truncates its target; in 64-bit mode on AMD processors
    // only.
    if (z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE && (z.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) &&
        !sixteen_bit_code)
        return "16-bit near branch";
    for (unsigned i = 0; i < z.operand_count_visible; ++i)
        if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
            switch (ZydisRegisterGetClass(op[i].reg.value)) {
            case ZYDIS_REGCLASS_SEGMENT: return "segment register";
            case ZYDIS_REGCLASS_CONTROL:
            case ZYDIS_REGCLASS_DEBUG: return "control register";
            default: break;
            }
    return nullptr;
}

Promises::Promises(const CpuModel &model) {
    for (const Row &r : kRows) {
        const IsaFeature &f = r.feature;
        const auto leaf = model.leaves.find({f.function, 0});
        sets_[r.set] = !*f.name || (leaf != model.leaves.end() && leaf->second.*f.word >> f.bit & 1);
    }
}

} // namespace moscope::x86
