// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/sse_float.hh"

namespace moscope::x86::simd {

namespace {

constexpr std::uint32_t kBefore = 7, kUnderflow = 0x10, kFlushToZero = 0x8000, kHostHas = 0xffff;

void load_mxcsr(std::uint32_t x) { asm volatile("ldmxcsr %0" : : "m"(x)); }

bool tiny32(std::uint32_t x) { return !(x & 0x7f800000) && (x & 0x7fffff); }
bool tiny64(std::uint64_t x) { return !(x & 0x7ff0000000000000) && (x & 0xfffffffffffff); }

bool any_tiny(V v, Result kind) {
    const Xmm x = to(v);
    const unsigned singles = kind == Result::f32x1 ? 1 : kind == Result::f32x2 ? 2 : kind == Result::f32x4 ? 4 : 0;
    const unsigned doubles = kind == Result::f64x1 ? 1 : kind == Result::f64x2 ? 2 : 0;
    bool any = false;
    for (unsigned i = 0; i < singles; ++i)
        any |= tiny32(x.u32[i]);
    for (unsigned i = 0; i < doubles; ++i)
        any |= tiny64(x.u64[i]);
    return any;
}

} // namespace

bool compute_exactly(Core &c, FloatOp f, Result kind, V d, const V &s, V &result) {
    const std::uint32_t masks = c.mxcsr >> 7 & kMxcsrFlags;
    std::uint32_t control = (c.mxcsr & kHostHas & ~kMxcsrFlags) | kMxcsrDefault, raised;
    if (!(masks & kUnderflow))
        control &= ~kFlushToZero; // which an unmasked underflow turns off
    load_mxcsr(control);
    result = d;
    f(result, s, raised);
    raised &= kMxcsrFlags;
    if (!(masks & kUnderflow) && any_tiny(result, kind))
        raised |= kUnderflow;
    const std::uint32_t unmasked = raised & ~masks;
    if (unmasked & kBefore)
        raised &= kBefore; // no result, so nothing that rounding it would tell
    c.mxcsr |= raised;
    // The host rounds as it is used to; flags that the guest has make the next operation's first try the last.
    load_mxcsr((c.mxcsr & ~kMxcsrFlags) == kMxcsrDefault ? c.mxcsr : kMxcsrDefault);
    return !unmasked || c.raise((c.cr4 & cr4::osxmmexcpt) ? exc_xf : exc_ud);
}

} // namespace moscope::x86::simd
