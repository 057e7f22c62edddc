// SPDX-License-Identifier: BSD-3-Clause
// Floating-point arithmetic, comparison and approximation: SSE, SSE2 and SSE3 (AMD 26568). See sse_float.hh.
// RCPPS and RSQRTPS (and their scalar forms) give the host's approximation, which differs from the Opteron's in its
// last bits; both keep the bound of 1.5 * 2^-12 that the manual gives.
#include "cpu/x86/exec/simd/sse_float.hh"

namespace moscope::x86 {

using namespace simd;

namespace {

struct F32 {
    using Source = std::uint32_t;
    static constexpr Lanes kLanes = Lanes::f32x1;
};
struct F64 {
    using Source = std::uint64_t;
    static constexpr Lanes kLanes = Lanes::f64x1;
};
struct F32x4 {
    using Source = Xmm;
    static constexpr Lanes kLanes = Lanes::f32x4;
};
struct F64x2 {
    using Source = Xmm;
    static constexpr Lanes kLanes = Lanes::f64x2;
};

#define OPERATION(NAME, KIND, ARITHMETIC)                                                                              \
    struct NAME : KIND {                                                                                               \
        static constexpr Shape kShape{kLanes, Arithmetic::ARITHMETIC};                                                 \
        static void run(V &d, const V &s, std::uint32_t &mxcsr) {                                                      \
            asm volatile(#NAME " %2, %0\n\tstmxcsr %1" : "+x"(d), "=m"(mxcsr) : "x"(s));                               \
        }                                                                                                              \
    };
#define PACKED(NAME, ARITHMETIC) OPERATION(NAME##ps, F32x4, ARITHMETIC) OPERATION(NAME##pd, F64x2, ARITHMETIC)
#define FOUR(NAME, ARITHMETIC)                                                                                         \
    PACKED(NAME, ARITHMETIC) OPERATION(NAME##ss, F32, ARITHMETIC) OPERATION(NAME##sd, F64, ARITHMETIC)

FOUR(add, add)
FOUR(sub, sub)
FOUR(mul, mul)
FOUR(div, div)
FOUR(sqrt, none)
FOUR(min, none)
FOUR(max, none)
OPERATION(rcpss, F32, none)
OPERATION(rcpps, F32x4, none)
OPERATION(rsqrtss, F32, none)
OPERATION(rsqrtps, F32x4, none)
PACKED(addsub, add_sub)
PACKED(hadd, horizontal_add)
PACKED(hsub, horizontal_sub)

#undef FOUR
#undef PACKED
#undef OPERATION

// --- comparison to a mask; the predicate is the immediate's low three bits
#define COMPARE(NAME, KIND)                                                                                            \
    template <unsigned kPredicate> struct NAME : KIND { /* NOLINT(bugprone-macro-parentheses): a base class */         \
        static constexpr Shape kShape{};                                                                               \
        static void run(V &d, const V &s, std::uint32_t &mxcsr) {                                                      \
            asm volatile(#NAME " %3, %2, %0\n\tstmxcsr %1" : "+x"(d), "=m"(mxcsr) : "x"(s), "i"(kPredicate));          \
        }                                                                                                              \
    };
COMPARE(cmpss, F32)
COMPARE(cmpsd, F64)
COMPARE(cmpps, F32x4)
COMPARE(cmppd, F64x2)
#undef COMPARE

template <template <unsigned> class F> Exec lower_compare(const Insn &insn, Op &op) {
    if (!is_xmm(insn, 0)) // CMPSD is a string instruction's name too
        return nullptr;
    switch (op.imm & 7) {
    case 0: return lower_float<F<0>>(insn, op);
    case 1: return lower_float<F<1>>(insn, op);
    case 2: return lower_float<F<2>>(insn, op);
    case 3: return lower_float<F<3>>(insn, op);
    case 4: return lower_float<F<4>>(insn, op);
    case 5: return lower_float<F<5>>(insn, op);
    case 6: return lower_float<F<6>>(insn, op);
    default: return lower_float<F<7>>(insn, op);
    }
}

// --- comparison to ZF, PF and CF; OF, AF and SF become 0
#define TO_FLAGS(NAME, KIND)                                                                                           \
    struct NAME : KIND {                                                                                               \
        static constexpr Shape kShape{};                                                                               \
        static void run(V &d, const V &s, std::uint32_t &mxcsr) {                                                      \
            bool z, p, c;                                                                                              \
            asm volatile(#NAME " %5, %4\n\tstmxcsr %3"                                                                 \
                         : "=@ccz"(z), "=@ccp"(p), "=@ccc"(c), "=m"(mxcsr)                                             \
                         : "x"(d), "x"(s));                                                                            \
            d = low((z ? Flags::zf : 0u) + (p ? Flags::pf : 0u) + (c ? std::uint64_t{Flags::cf} : 0u));                \
        }                                                                                                              \
    };
TO_FLAGS(comiss, F32)
TO_FLAGS(comisd, F64)
TO_FLAGS(ucomiss, F32)
TO_FLAGS(ucomisd, F64)
#undef TO_FLAGS

template <class F, bool kMemory> const Op *flags_op(Core &c, const Op *op) {
    V s, flags;
    if (!ready(c) || !xmm_source<typename F::Source, kMemory>(c, op, s) || !compute<F>(c, xmm(c, op->dst), s, flags))
        return c.fault_at(op);
    c.flags.set_arithmetic(low(flags));
    return op + 1;
}
template <class F> Exec lower_flags(const Insn &, Op &op) { return op.mem ? flags_op<F, true> : flags_op<F, false>; }

#define FOUR(NAME, name)                                                                                               \
    {ZYDIS_MNEMONIC_##NAME##SS, lower_float<name##ss>}, {ZYDIS_MNEMONIC_##NAME##SD, lower_float<name##sd>},            \
        {ZYDIS_MNEMONIC_##NAME##PS, lower_float<name##ps>}, {                                                          \
        ZYDIS_MNEMONIC_##NAME##PD, lower_float<name##pd>                                                               \
    }
const Form kForms[] = {
    FOUR(ADD, add),
    FOUR(SUB, sub),
    FOUR(MUL, mul),
    FOUR(DIV, div),
    FOUR(SQRT, sqrt),
    FOUR(MIN, min),
    FOUR(MAX, max),
    {ZYDIS_MNEMONIC_RCPSS, lower_float<rcpss>},
    {ZYDIS_MNEMONIC_RCPPS, lower_float<rcpps>},
    {ZYDIS_MNEMONIC_RSQRTSS, lower_float<rsqrtss>},
    {ZYDIS_MNEMONIC_RSQRTPS, lower_float<rsqrtps>},
    {ZYDIS_MNEMONIC_ADDSUBPS, lower_float<addsubps>},
    {ZYDIS_MNEMONIC_ADDSUBPD, lower_float<addsubpd>},
    {ZYDIS_MNEMONIC_HADDPS, lower_float<haddps>},
    {ZYDIS_MNEMONIC_HADDPD, lower_float<haddpd>},
    {ZYDIS_MNEMONIC_HSUBPS, lower_float<hsubps>},
    {ZYDIS_MNEMONIC_HSUBPD, lower_float<hsubpd>},
    {ZYDIS_MNEMONIC_CMPSS, lower_compare<cmpss>},
    {ZYDIS_MNEMONIC_CMPSD, lower_compare<cmpsd>},
    {ZYDIS_MNEMONIC_CMPPS, lower_compare<cmpps>},
    {ZYDIS_MNEMONIC_CMPPD, lower_compare<cmppd>},
    {ZYDIS_MNEMONIC_COMISS, lower_flags<comiss>},
    {ZYDIS_MNEMONIC_COMISD, lower_flags<comisd>},
    {ZYDIS_MNEMONIC_UCOMISS, lower_flags<ucomiss>},
    {ZYDIS_MNEMONIC_UCOMISD, lower_flags<ucomisd>},
};
const Group kGroup("sse arithmetic", kForms);

#undef FOUR

} // namespace

} // namespace moscope::x86
