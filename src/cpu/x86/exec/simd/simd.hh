// SPDX-License-Identifier: BSD-3-Clause
// Shared code of the MMX, SSE, SSE2, SSE3 and SSE4a instructions (AMD 24593 chapter 11, 26568, 26569): availability of
// the units, access to XMM and MMX registers and to 128-bit operands in memory, and the common shape "destination =
// f(destination, source)" for both register files. The host computes lanes: f works on a host vector, the MMX form on
// the low half of one.
#pragma once

#include <cstddef>
#include <emmintrin.h>
#include <tmmintrin.h>

#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/mmu/memory.hh"

namespace moscope::x86::simd {

using V = __m128i;

// --- availability
bool refuse(Core &);     ///< raises the one of #UD and #NM that an SSE instruction gets; returns false
bool refuse_mmx(Core &); ///< the same for #UD, #NM and #MF, and an MMX instruction

/// CR0.EM, CR0.TS and CR4.OSFXSR allow SSE instructions; false: fault.
inline bool ready(Core &c) {
    if (__builtin_expect(!(c.cr0 & (cr0::em | cr0::ts)) && (c.cr4 & cr4::osfxsr), 1))
        return true;
    return refuse(c);
}
/// The same for MMX instructions, which wait for pending x87 exceptions too.
inline bool ready_mmx(Core &c) {
    if (__builtin_expect(!(c.cr0 & (cr0::em | cr0::ts)) && !(c.fpu.status & X87::kSummary), 1))
        return true;
    return refuse_mmx(c);
}

// --- registers: XMM by Op's byte offset, MMX by number
inline V xmm(const Core &c, unsigned offset) {
    return _mm_load_si128(reinterpret_cast<const V *>(reinterpret_cast<const std::byte *>(c.xmm) + offset));
}
inline void set_xmm(Core &c, unsigned offset, V v) {
    _mm_store_si128(reinterpret_cast<V *>(reinterpret_cast<std::byte *>(c.xmm) + offset), v);
}
inline V from(const Xmm &x) { return _mm_load_si128(reinterpret_cast<const V *>(&x)); }
inline Xmm to(V v) {
    Xmm x;
    _mm_store_si128(reinterpret_cast<V *>(&x), v);
    return x;
}
inline V low(std::uint64_t x) { return _mm_cvtsi64_si128(static_cast<long long>(x)); }
inline std::uint64_t low(V v) { return static_cast<std::uint64_t>(_mm_cvtsi128_si64(v)); }
inline std::uint64_t high(V v) { return low(_mm_unpackhi_epi64(v, v)); }

inline std::uint64_t mmx(const Core &c, unsigned i) { return c.fpu.st[i].significand; }
/// What every MMX instruction does to the x87 state: TOP is 0, all registers are in use.
inline void enter_mmx(Core &c) {
    c.fpu.valid = 0xff;
    c.fpu.set_top(0);
}
inline void set_mmx(Core &c, unsigned i, std::uint64_t x) {
    enter_mmx(c);
    c.fpu.st[i] = {x, 0xffff};
}

// --- memory operands
constexpr std::uint32_t kMisalignedMask = 1u << 17; ///< MXCSR.MM: packed operands may be misaligned

/// Address of 16 bytes, which must be aligned unless MXCSR.MM is set; with `strict` (moves that are aligned by name),
/// they must be aligned in any case. A misaligned operand beyond the limit of the stack's segment raises #GP, as on
/// hosts.
inline bool address16(Core &c, const Op *op, bool write, Addr &a, bool strict = false) {
    const bool within = address(c, op, 16, write, a);
    if (__builtin_expect(!within, 0))
        a = c.seg[op->seg].base + effective_offset(c, op);
    if (__builtin_expect((a & 15) != 0, 0) && (strict || !(c.mxcsr & kMisalignedMask)))
        return c.raise(exc_gp, 0);
    return within;
}
inline bool load16(Core &c, const Op *op, V &out, bool strict = false) {
    Addr a;
    Xmm x;
    if (!address16(c, op, false, a, strict) || !load(c, a, x))
        return false;
    out = from(x);
    return true;
}
/// A scalar, zero-extended to the register.
template <class T> inline bool load_scalar(Core &c, const Op *op, V &out) {
    Addr a;
    T x;
    if (!address(c, op, sizeof(T), false, a) || !load<T>(c, a, x))
        return false;
    if constexpr (sizeof(T) == 16)
        out = from(x);
    else
        out = low(x);
    return true;
}

/// The source operand: an XMM register, or T in memory (16 bytes of it aligned as address16 says).
template <class T, bool kMemory> inline bool xmm_source(Core &c, const Op *op, V &s) {
    if constexpr (!kMemory) {
        s = xmm(c, op->src);
        return true;
    } else if constexpr (sizeof(T) == 16)
        return load16(c, op, s);
    else
        return load_scalar<T>(c, op, s);
}
/// The source operand: an MMX register, or T in memory.
template <class T, bool kMemory> inline bool mmx_source(Core &c, const Op *op, V &s) {
    if constexpr (kMemory)
        return load_scalar<T>(c, op, s);
    s = low(mmx(c, op->src));
    return true;
}

// --- operand classes
inline bool is_xmm(const Insn &i, unsigned n) {
    return i.is_reg(n) && ZydisRegisterGetClass(i.reg(n)) == ZYDIS_REGCLASS_XMM;
}
inline bool is_mmx(const Insn &i, unsigned n) {
    return i.is_reg(n) && ZydisRegisterGetClass(i.reg(n)) == ZYDIS_REGCLASS_MMX;
}
/// Gives `op` the memory operand that the instruction only implies: DS:rDI, or with the segment of a prefix.
void implied_memory(const Insn &, Op &, unsigned base);

// --- destination = f(destination, source [, immediate])
template <auto F> inline V apply(V d, V s, const Op *op) {
    if constexpr (requires { F(d, s, 0u); })
        return F(d, s, static_cast<unsigned>(op->imm & 0xff));
    else
        return F(d, s);
}

template <auto F, bool kMemory> const Op *xmm_op(Core &c, const Op *op) {
    V s;
    if (!ready(c) || !xmm_source<Xmm, kMemory>(c, op, s))
        return c.fault_at(op);
    set_xmm(c, op->dst, apply<F>(xmm(c, op->dst), s, op));
    return op + 1;
}

/// T: what is read of a source in memory.
template <auto F, class T, bool kMemory> const Op *mmx_op(Core &c, const Op *op) {
    V s;
    if (!ready_mmx(c) || !mmx_source<T, kMemory>(c, op, s))
        return c.fault_at(op);
    set_mmx(c, op->dst, low(apply<F>(low(mmx(c, op->dst)), s, op)));
    return op + 1;
}

/// XMM form alone.
template <auto F> Exec lower_xmm(const Insn &, Op &op) { return op.mem ? xmm_op<F, true> : xmm_op<F, false>; }
/// XMM form F and MMX form G, of whose result the low half counts.
template <auto F, auto G = F, class T = std::uint64_t> Exec lower_both(const Insn &insn, Op &op) {
    if (is_mmx(insn, 0))
        return op.mem ? mmx_op<G, T, true> : mmx_op<G, T, false>;
    return op.mem ? xmm_op<F, true> : xmm_op<F, false>;
}
template <auto G> Exec lower_mmx(const Insn &, Op &op) {
    return op.mem ? mmx_op<G, std::uint64_t, true> : mmx_op<G, std::uint64_t, false>;
}

} // namespace moscope::x86::simd
