// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/exec/simd/sse_float.hh"

#include <bit>

namespace moscope::x86::simd {

namespace {

constexpr std::uint32_t kBefore = 7, kOverflow = 8, kUnderflow = 0x10, kInexact = 0x20, kDenormalsAreZeros = 0x40,
                        kFlushToZero = 0x8000, kHostHas = 0xffff;
const std::uint32_t kHostMxcsr = kMxcsrDefault;

void load_mxcsr(std::uint32_t x) { asm volatile("ldmxcsr %0" : : "m"(x)); }

bool denormal32(std::uint32_t x) { return !(x & 0x7f800000) && (x & 0x7fffff); }
bool denormal64(std::uint64_t x) { return !(x & 0x7ff0000000000000) && (x & 0xfffffffffffff); }

unsigned singles(Lanes l) { return l == Lanes::f32x1 ? 1 : l == Lanes::f32x2 ? 2 : l == Lanes::f32x4 ? 4 : 0; }
unsigned doubles(Lanes l) { return l == Lanes::f64x1 ? 1 : l == Lanes::f64x2 ? 2 : 0; }

bool any_tiny(V v, Lanes lanes) {
    const Xmm x = to(v);
    bool any = false;
    for (unsigned i = 0; i < singles(lanes); ++i)
        any |= denormal32(x.u32[i]);
    for (unsigned i = 0; i < doubles(lanes); ++i)
        any |= denormal64(x.u64[i]);
    return any;
}

/// One lane's operation; operands of either format, exactly.
struct Lane {
    Arithmetic op;
    bool single; ///< format of the result
    double a, b;
};

// The flags of the lane's operation with everything masked.
#define UNDER(INSTRUCTION, TYPE)                                                                                       \
    {                                                                                                                  \
        TYPE x = static_cast<TYPE>(l.a), y = static_cast<TYPE>(l.b);                                                   \
        asm volatile("ldmxcsr %2\n\t" INSTRUCTION " %3, %0\n\tstmxcsr %1\n\tldmxcsr %4"                                \
                     : "+x"(x), "=m"(after)                                                                            \
                     : "m"(control), "x"(y), "m"(kHostMxcsr));                                                         \
        break;                                                                                                         \
    }
std::uint32_t masked_flags(const Lane &l, std::uint32_t control) {
    std::uint32_t after = 0;
    if (l.single)
        switch (l.op) {
        case Arithmetic::add: UNDER("addss", float)
        case Arithmetic::sub: UNDER("subss", float)
        case Arithmetic::mul: UNDER("mulss", float)
        case Arithmetic::div: UNDER("divss", float)
        default: UNDER("cvtsd2ss", double)
        }
    else
        switch (l.op) {
        case Arithmetic::add: UNDER("addsd", double)
        case Arithmetic::sub: UNDER("subsd", double)
        case Arithmetic::mul: UNDER("mulsd", double)
        default: UNDER("divsd", double)
        }
    return after & kMxcsrFlags;
}
#undef UNDER

/// Whether the result would be inexact if exponents had no bounds: an x87 rounds to the same precision with
/// exponents that are wide enough.
bool inexact_unbounded(const Lane &l, std::uint32_t control) {
    const auto cw = static_cast<std::uint16_t>(0x3f | (l.single ? 0 : 0x200) | (control >> 13 & 3) << 10);
    const std::uint16_t usual = 0x37f;
    const double b = l.op == Arithmetic::narrow ? 1 : l.b;
    std::uint16_t status;
#define X87(INSTRUCTION)                                                                                               \
    asm volatile("fnclex\n\tfldcw %1\n\tfldl %2\n\t" INSTRUCTION                                                       \
                 " %3\n\tfnstsw %0\n\tfstp %%st(0)\n\tfnclex\n\tfldcw %4"                                              \
                 : "=a"(status)                                                                                        \
                 : "m"(cw), "m"(l.a), "m"(b), "m"(usual))
    switch (l.op) {
    case Arithmetic::add: X87("faddl"); break;
    case Arithmetic::sub: X87("fsubl"); break;
    case Arithmetic::div: X87("fdivl"); break;
    default: X87("fmull"); break;
    }
#undef X87
    return status & kInexact;
}

/// Operand `i` of `x`, of the format that the operation reads.
double operand(const Xmm &x, unsigned i, bool single, std::uint32_t control) {
    const bool zeros = control & kDenormalsAreZeros;
    if (single)
        return std::bit_cast<float>(zeros && denormal32(x.u32[i]) ? x.u32[i] & 0x80000000 : x.u32[i]);
    return std::bit_cast<double>(zeros && denormal64(x.u64[i]) ? x.u64[i] & 0x8000000000000000 : x.u64[i]);
}

Lane lane(Shape shape, const Xmm &d, const Xmm &s, unsigned i, std::uint32_t control) {
    const bool single = singles(shape.lanes) != 0;
    const unsigned count = single ? singles(shape.lanes) : doubles(shape.lanes);
    const auto get = [&](const Xmm &x, unsigned n) { return operand(x, n, single, control); };
    switch (shape.arithmetic) {
    case Arithmetic::narrow: {
        const double x = operand(s, i, false, control);
        return {Arithmetic::narrow, true, x, x};
    }
    case Arithmetic::add_sub: return {i & 1 ? Arithmetic::add : Arithmetic::sub, single, get(d, i), get(s, i)};
    case Arithmetic::horizontal_add:
    case Arithmetic::horizontal_sub: {
        const Xmm &x = i < count / 2 ? d : s;
        const unsigned first = 2 * (i % (count / 2));
        return {shape.arithmetic == Arithmetic::horizontal_add ? Arithmetic::add : Arithmetic::sub, single,
                get(x, first), get(x, first + 1)};
    }
    default: return {shape.arithmetic, single, get(d, i), get(s, i)};
    }
}

/// If overflow or underflow traps, the flag for an inexact result refers to a result with unbounded exponent, in the
/// lanes that trap.
[[gnu::noinline]] bool inexact(Shape shape, V d, V s, std::uint32_t control, std::uint32_t masks) {
    bool any = false;
    for (unsigned i = 0; i < singles(shape.lanes) + doubles(shape.lanes); ++i) {
        const Lane l = lane(shape, to(d), to(s), i, control);
        const std::uint32_t flags = masked_flags(l, control);
        const bool traps = flags & ~masks & (kOverflow | kUnderflow);
        any |= traps ? inexact_unbounded(l, control) : (flags & kInexact) != 0;
    }
    return any;
}

} // namespace

bool compute_exactly(Core &c, FloatOp f, Shape shape, V d, const V &s, V &result) {
    const std::uint32_t masks = c.mxcsr >> 7 & kMxcsrFlags;
    std::uint32_t control = (c.mxcsr & kHostHas & ~kMxcsrFlags) | kMxcsrDefault, raised;
    if (!(masks & kUnderflow))
        control &= ~kFlushToZero; // which an unmasked underflow turns off
    load_mxcsr(control);
    result = d;
    f(result, s, raised);
    load_mxcsr(kMxcsrDefault); // the default of the host
    raised &= kMxcsrFlags;
    if (!(masks & kUnderflow) && shape.arithmetic != Arithmetic::none && any_tiny(result, shape.lanes))
        raised |= kUnderflow;
    const std::uint32_t unmasked = raised & ~masks;
    if (unmasked & kBefore)
        raised &= kBefore; // no result, so no exception of its rounding
    else if ((unmasked & (kOverflow | kUnderflow)) && (raised & kInexact) && shape.arithmetic != Arithmetic::none &&
             !inexact(shape, d, s, control, masks))
        raised &= ~kInexact;
    c.mxcsr |= raised;
    // With the guest's flags in place, the next operation succeeds at its first try.
    if ((c.mxcsr & ~kMxcsrFlags) == kMxcsrDefault)
        load_mxcsr(c.mxcsr);
    return !unmasked || c.raise((c.cr4 & cr4::osxmmexcpt) ? exc_xf : exc_ud);
}

} // namespace moscope::x86::simd
