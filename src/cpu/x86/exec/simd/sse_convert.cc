// SPDX-License-Identifier: BSD-3-Clause
// Conversions between integers and floating point and between the floating-point formats: SSE, SSE2, with operands in
// XMM, MMX and general registers and memory (AMD 26568). See sse_float.hh.
#include "cpu/x86/decode/operands.hh"
#include "cpu/x86/exec/simd/sse_float.hh"

namespace moscope::x86 {

using namespace simd;

namespace {

constexpr Shape kOneSingle{Lanes::f32x1, Arithmetic::narrow}, kTwoSingles{Lanes::f32x2, Arithmetic::narrow};

/// d = NAME(s), whole registers as the host instruction has them.
#define CONVERT(NAME, SOURCE, SHAPE)                                                                                   \
    struct NAME {                                                                                                      \
        using Source = SOURCE;                                                                                         \
        static constexpr Shape kShape = SHAPE;                                                                         \
        static void run(V &d, const V &s, std::uint32_t &mxcsr) {                                                      \
            asm volatile(#NAME " %2, %0\n\tstmxcsr %1" : "+x"(d), "=m"(mxcsr) : "x"(s));                               \
        }                                                                                                              \
    };
CONVERT(cvtss2sd, std::uint32_t, {})
CONVERT(cvtsd2ss, std::uint64_t, kOneSingle)
CONVERT(cvtps2pd, std::uint64_t, {})
CONVERT(cvtpd2ps, Xmm, kTwoSingles)
CONVERT(cvtdq2ps, Xmm, {})
CONVERT(cvtps2dq, Xmm, {})
CONVERT(cvttps2dq, Xmm, {})
CONVERT(cvtdq2pd, std::uint64_t, {})
CONVERT(cvtpd2dq, Xmm, {})
CONVERT(cvttpd2dq, Xmm, {})
#undef CONVERT

// --- general register or memory to a scalar
#define FROM_INTEGER(NAME, INSTRUCTION, MODIFIER)                                                                      \
    struct NAME {                                                                                                      \
        static constexpr Shape kShape{};                                                                               \
        static void run(V &d, const V &s, std::uint32_t &mxcsr) {                                                      \
            asm volatile(INSTRUCTION " %" MODIFIER "2, %0\n\tstmxcsr %1" : "+x"(d), "=m"(mxcsr) : "r"(low(s)));        \
        }                                                                                                              \
    };
FROM_INTEGER(long_to_ss, "cvtsi2ssl", "k")
FROM_INTEGER(quad_to_ss, "cvtsi2ssq", "q")
FROM_INTEGER(long_to_sd, "cvtsi2sdl", "k")
FROM_INTEGER(quad_to_sd, "cvtsi2sdq", "q")
#undef FROM_INTEGER

template <class F, class T, bool kMemory> const Op *from_integer(Core &c, const Op *op) {
    T s;
    V result;
    if (!ready(c) || !read_operand<T, kMemory>(c, op, op->src, s) || !compute<F>(c, xmm(c, op->dst), low(s), result))
        return c.fault_at(op);
    set_xmm(c, op->dst, result);
    return op + 1;
}
template <class Long, class Quad> Exec lower_from_integer(const Insn &insn, Op &op) {
    if (insn.bytes(1) == 8)
        return op.mem ? from_integer<Quad, std::uint64_t, true> : from_integer<Quad, std::uint64_t, false>;
    return op.mem ? from_integer<Long, std::uint32_t, true> : from_integer<Long, std::uint32_t, false>;
}

// --- a scalar to a general register
#define TO_INTEGER(NAME, INSTRUCTION, SOURCE, MODIFIER)                                                                \
    struct NAME {                                                                                                      \
        using Source = SOURCE;                                                                                         \
        static constexpr Shape kShape{};                                                                               \
        static void run(V &d, const V &s, std::uint32_t &mxcsr) {                                                      \
            std::uint64_t x;                                                                                           \
            asm volatile(INSTRUCTION " %2, %" MODIFIER "0\n\tstmxcsr %1" : "=r"(x), "=m"(mxcsr) : "x"(s));             \
            d = low(x);                                                                                                \
        }                                                                                                              \
    };
#define BOTH_SIZES(NAME, SOURCE) TO_INTEGER(NAME##_l, #NAME, SOURCE, "k") TO_INTEGER(NAME##_q, #NAME, SOURCE, "q")
BOTH_SIZES(cvtss2si, std::uint32_t)
BOTH_SIZES(cvttss2si, std::uint32_t)
BOTH_SIZES(cvtsd2si, std::uint64_t)
BOTH_SIZES(cvttsd2si, std::uint64_t)
#undef BOTH_SIZES
#undef TO_INTEGER

template <class F, class T, bool kMemory> const Op *to_integer(Core &c, const Op *op) {
    V s, result;
    if (!ready(c) || !xmm_source<typename F::Source, kMemory>(c, op, s) || !compute<F>(c, s, s, result))
        return c.fault_at(op);
    set_reg<T>(c, op->dst, static_cast<T>(low(result)));
    return op + 1;
}
template <class Long, class Quad> Exec lower_to_integer(const Insn &insn, Op &op) {
    if (insn.bytes(0) == 8)
        return op.mem ? to_integer<Quad, std::uint64_t, true> : to_integer<Quad, std::uint64_t, false>;
    return op.mem ? to_integer<Long, std::uint32_t, true> : to_integer<Long, std::uint32_t, false>;
}

// --- MMX registers: the XMM conversion on the low half; zeros in the upper half raise nothing
struct cvtpi2ps {
    static constexpr Shape kShape{};
    static void run(V &d, const V &s, std::uint32_t &mxcsr) {
        V two = _mm_move_epi64(s);
        cvtdq2ps::run(two, two, mxcsr);
        d = _mm_unpacklo_epi64(two, _mm_unpackhi_epi64(d, d));
    }
};
template <class F> struct OnLowHalf {
    using Source = std::uint64_t;
    static constexpr Shape kShape{};
    static void run(V &d, const V &s, std::uint32_t &mxcsr) { F::run(d, _mm_move_epi64(s), mxcsr); }
};

/// From an MMX register, which enters MMX use, or from memory, which does not.
template <class F, bool kMemory> const Op *from_mmx(Core &c, const Op *op) {
    V s, result;
    if (!ready(c) || (!kMemory && !ready_mmx(c)) || !mmx_source<std::uint64_t, kMemory>(c, op, s))
        return c.fault_at(op);
    if constexpr (!kMemory)
        enter_mmx(c);
    if (!compute<F>(c, xmm(c, op->dst), s, result))
        return c.fault_at(op);
    set_xmm(c, op->dst, result);
    return op + 1;
}
template <class F> Exec lower_from_mmx(const Insn &, Op &op) { return op.mem ? from_mmx<F, true> : from_mmx<F, false>; }

template <class F, bool kMemory> const Op *to_mmx(Core &c, const Op *op) {
    V s, result;
    if (!ready(c) || !ready_mmx(c) || !xmm_source<typename F::Source, kMemory>(c, op, s))
        return c.fault_at(op);
    enter_mmx(c);
    if (!compute<F>(c, s, s, result))
        return c.fault_at(op);
    set_mmx(c, op->dst, low(result));
    return op + 1;
}
template <class F> Exec lower_to_mmx(const Insn &, Op &op) { return op.mem ? to_mmx<F, true> : to_mmx<F, false>; }

const Form kForms[] = {
    {ZYDIS_MNEMONIC_CVTSS2SD, lower_float<cvtss2sd>},
    {ZYDIS_MNEMONIC_CVTSD2SS, lower_float<cvtsd2ss>},
    {ZYDIS_MNEMONIC_CVTPS2PD, lower_float<cvtps2pd>},
    {ZYDIS_MNEMONIC_CVTPD2PS, lower_float<cvtpd2ps>},
    {ZYDIS_MNEMONIC_CVTDQ2PS, lower_float<cvtdq2ps>},
    {ZYDIS_MNEMONIC_CVTPS2DQ, lower_float<cvtps2dq>},
    {ZYDIS_MNEMONIC_CVTTPS2DQ, lower_float<cvttps2dq>},
    {ZYDIS_MNEMONIC_CVTDQ2PD, lower_float<cvtdq2pd>},
    {ZYDIS_MNEMONIC_CVTPD2DQ, lower_float<cvtpd2dq>},
    {ZYDIS_MNEMONIC_CVTTPD2DQ, lower_float<cvttpd2dq>},
    {ZYDIS_MNEMONIC_CVTSI2SS, lower_from_integer<long_to_ss, quad_to_ss>},
    {ZYDIS_MNEMONIC_CVTSI2SD, lower_from_integer<long_to_sd, quad_to_sd>},
    {ZYDIS_MNEMONIC_CVTSS2SI, lower_to_integer<cvtss2si_l, cvtss2si_q>},
    {ZYDIS_MNEMONIC_CVTTSS2SI, lower_to_integer<cvttss2si_l, cvttss2si_q>},
    {ZYDIS_MNEMONIC_CVTSD2SI, lower_to_integer<cvtsd2si_l, cvtsd2si_q>},
    {ZYDIS_MNEMONIC_CVTTSD2SI, lower_to_integer<cvttsd2si_l, cvttsd2si_q>},
    {ZYDIS_MNEMONIC_CVTPI2PS, lower_from_mmx<cvtpi2ps>},
    {ZYDIS_MNEMONIC_CVTPI2PD, lower_from_mmx<cvtdq2pd>},
    {ZYDIS_MNEMONIC_CVTPS2PI, lower_to_mmx<OnLowHalf<cvtps2dq>>},
    {ZYDIS_MNEMONIC_CVTTPS2PI, lower_to_mmx<OnLowHalf<cvttps2dq>>},
    {ZYDIS_MNEMONIC_CVTPD2PI, lower_to_mmx<cvtpd2dq>},
    {ZYDIS_MNEMONIC_CVTTPD2PI, lower_to_mmx<cvttpd2dq>},
};
const Group kGroup("sse conversions", kForms);

} // namespace

} // namespace moscope::x86
