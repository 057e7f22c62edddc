// SPDX-License-Identifier: BSD-3-Clause
// Floating-point operations of SSE on the host's own unit, under the guest's MXCSR (AMD 26568; 24592 section 4.8). The
// host rounds, treats denormals, sets the sticky exception flags and chooses among NaNs by the order of operands.
//
// An operation runs under the host's current MXCSR and stores it afterwards. In the common case the stored value has
// the guest's controls and no flag that the guest's MXCSR lacks; then the result holds. Otherwise the operation runs
// again with the guest's MXCSR in place. Operations are inline assembly, because the compiler neither knows MXCSR nor
// keeps the order of operands.
#pragma once

#include "cpu/x86/exec/simd/simd.hh"

namespace moscope::x86::simd {

constexpr std::uint32_t kMxcsrFlags = 0x3f, kMxcsrDefault = 0x1f80, kMxcsrValid = 0x2ffff;

/// Format of the results and kind of arithmetic, by which unmasked underflow and overflow are examined.
enum class Lanes : std::uint8_t { other, f32x1, f32x2, f32x4, f64x1, f64x2 };
enum class Arithmetic : std::uint8_t { none, add, sub, mul, div, narrow, add_sub, horizontal_add, horizontal_sub };
struct Shape {
    Lanes lanes = Lanes::other;
    Arithmetic arithmetic = Arithmetic::none;
};

/// d = f(d, s), and MXCSR after it.
using FloatOp = void (*)(V &d, const V &s, std::uint32_t &mxcsr);

/// Runs the operation with the guest's MXCSR in place. False: an unmasked exception; #XF (or #UD) is in Core::fault.
bool compute_exactly(Core &, FloatOp, Shape, V d, const V &s, V &result);

template <class F> inline bool compute(Core &c, const V &d, const V &s, V &result) {
    std::uint32_t after;
    result = d;
    F::run(result, s, after);
    if (__builtin_expect(((after ^ c.mxcsr) & (~kMxcsrFlags | after)) == 0, 1))
        return true;
    return compute_exactly(c, F::run, F::kShape, d, s, result);
}

/// Shape "XMM = f(XMM, XMM or memory)"; F::Source is what is read of memory.
template <class F, bool kMemory> const Op *float_op(Core &c, const Op *op) {
    V s, result;
    if (!ready(c) || !xmm_source<typename F::Source, kMemory>(c, op, s) || !compute<F>(c, xmm(c, op->dst), s, result))
        return c.fault_at(op);
    set_xmm(c, op->dst, result);
    return op + 1;
}
template <class F> Exec lower_float(const Insn &, Op &op) { return op.mem ? float_op<F, true> : float_op<F, false>; }

} // namespace moscope::x86::simd
