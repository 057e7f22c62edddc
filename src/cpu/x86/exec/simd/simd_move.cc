// SPDX-License-Identifier: BSD-3-Clause
// Moves among XMM, MMX and general registers and memory: aligned, unaligned, by halves, scalar, non-temporal and
// byte-masked (AMD 26568, 26569). An unaligned operand of an aligned move is #GP whatever MXCSR.MM says.
#include "cpu/x86/exec/simd/simd.hh"

namespace moscope::x86 {

using namespace simd;

namespace {

// --- 128 bits
const Op *move_register(Core &c, const Op *op) {
    if (!ready(c))
        return c.fault_at(op);
    set_xmm(c, op->dst, xmm(c, op->src));
    return op + 1;
}
template <bool kAligned> const Op *move_load(Core &c, const Op *op) {
    V v;
    if (!ready(c) || !(kAligned ? load16(c, op, v, true) : load_scalar<Xmm>(c, op, v)))
        return c.fault_at(op);
    set_xmm(c, op->dst, v);
    return op + 1;
}
template <bool kAligned> const Op *move_store(Core &c, const Op *op) {
    Addr a;
    if (!ready(c) || !(kAligned ? address16(c, op, true, a, true) : address(c, op, 16, true, a)) ||
        !store(c, a, c.xmm[op->src / 16]))
        return c.fault_at(op);
    return op + 1;
}
template <bool kAligned> Exec lower_move(const Insn &insn, Op &) {
    return insn.is_mem(0) ? move_store<kAligned> : insn.is_mem(1) ? move_load<kAligned> : move_register;
}

// --- scalars: a register merges into the low lane, memory clears the rest
template <class T> const Op *scalar_register(Core &c, const Op *op) {
    if (!ready(c))
        return c.fault_at(op);
    const T x = static_cast<T>(c.xmm[op->src / 16].u64[0]);
    std::memcpy(&c.xmm[op->dst / 16], &x, sizeof(T));
    return op + 1;
}
template <class T> const Op *scalar_load(Core &c, const Op *op) {
    V v;
    if (!ready(c) || !load_scalar<T>(c, op, v))
        return c.fault_at(op);
    set_xmm(c, op->dst, v);
    return op + 1;
}
template <class T> const Op *scalar_store(Core &c, const Op *op) {
    Addr a;
    if (!ready(c) || !address(c, op, sizeof(T), true, a) || !store<T>(c, a, static_cast<T>(c.xmm[op->src / 16].u64[0])))
        return c.fault_at(op);
    return op + 1;
}
/// MOVSS and MOVSD; MOVSD is a string instruction's name too.
template <class T> Exec lower_scalar(const Insn &insn, Op &) {
    if (is_xmm(insn, 0))
        return insn.is_mem(1) ? scalar_load<T> : scalar_register<T>;
    return is_xmm(insn, 1) ? scalar_store<T> : nullptr;
}

// --- halves
template <unsigned kHalf> const Op *half_load(Core &c, const Op *op) {
    Addr a;
    std::uint64_t x;
    if (!ready(c) || !address(c, op, 8, false, a) || !load(c, a, x))
        return c.fault_at(op);
    c.xmm[op->dst / 16].u64[kHalf] = x;
    return op + 1;
}
template <unsigned kHalf> const Op *half_store(Core &c, const Op *op) {
    Addr a;
    if (!ready(c) || !address(c, op, 8, true, a) || !store(c, a, c.xmm[op->src / 16].u64[kHalf]))
        return c.fault_at(op);
    return op + 1;
}
template <unsigned kHalf> Exec lower_half(const Insn &insn, Op &) {
    return insn.is_mem(0) ? half_store<kHalf> : half_load<kHalf>;
}
template <unsigned kTo, unsigned kFrom> const Op *half_register(Core &c, const Op *op) {
    if (!ready(c))
        return c.fault_at(op);
    c.xmm[op->dst / 16].u64[kTo] = c.xmm[op->src / 16].u64[kFrom];
    return op + 1;
}
template <unsigned kTo, unsigned kFrom> Exec lower_half_register(const Insn &, Op &) {
    return half_register<kTo, kFrom>;
}
template <bool kMemory> const Op *movddup(Core &c, const Op *op) {
    V v;
    if (!ready(c) || !xmm_source<std::uint64_t, kMemory>(c, op, v))
        return c.fault_at(op);
    set_xmm(c, op->dst, _mm_unpacklo_epi64(v, v));
    return op + 1;
}
Exec lower_movddup(const Insn &, Op &op) { return op.mem ? movddup<true> : movddup<false>; }

// --- MOVD and MOVQ, between any two places
enum class Place { general, mmx, xmm, memory };
Place place(const Insn &i, unsigned n) {
    return i.is_mem(n) ? Place::memory : is_xmm(i, n) ? Place::xmm : is_mmx(i, n) ? Place::mmx : Place::general;
}

template <class T, Place kTo, Place kFrom> const Op *move_low(Core &c, const Op *op) {
    constexpr bool kMmx = kTo == Place::mmx || kFrom == Place::mmx, kXmm = kTo == Place::xmm || kFrom == Place::xmm;
    if ((kXmm && !ready(c)) || (kMmx && !ready_mmx(c)))
        return c.fault_at(op);
    T x;
    Addr a;
    if constexpr (kFrom == Place::memory) {
        if (!address(c, op, sizeof(T), false, a) || !load<T>(c, a, x))
            return c.fault_at(op);
    } else if constexpr (kFrom == Place::general)
        x = reg<T>(c, op->src);
    else if constexpr (kFrom == Place::mmx)
        x = static_cast<T>(mmx(c, op->src));
    else
        x = static_cast<T>(c.xmm[op->src / 16].u64[0]);

    if constexpr (kTo == Place::memory) {
        if constexpr (kMmx)
            c.fpu.set_top(0); // even if the store faults, as processors do
        if (!address(c, op, sizeof(T), true, a) || !store<T>(c, a, x))
            return c.fault_at(op);
    } else if constexpr (kTo == Place::general)
        set_reg<T>(c, op->dst, x);
    else if constexpr (kTo == Place::mmx)
        set_mmx(c, op->dst, x);
    else
        set_xmm(c, op->dst, low(x));
    if constexpr (kMmx && kTo != Place::mmx)
        enter_mmx(c);
    return op + 1;
}

template <class T, Place kTo> Exec from_place(Place from) {
    switch (from) {
    case Place::general: return move_low<T, kTo, Place::general>;
    case Place::mmx: return move_low<T, kTo, Place::mmx>;
    case Place::xmm: return move_low<T, kTo, Place::xmm>;
    case Place::memory: return move_low<T, kTo, Place::memory>;
    }
    return nullptr;
}
template <class T> Exec lower_low(const Insn &insn, Op &) {
    const Place from = place(insn, 1);
    switch (place(insn, 0)) {
    case Place::general: return from_place<T, Place::general>(from);
    case Place::mmx: return from_place<T, Place::mmx>(from);
    case Place::xmm: return from_place<T, Place::xmm>(from);
    case Place::memory: return from_place<T, Place::memory>(from);
    }
    return nullptr;
}

// --- non-temporal
const Op *stream_mmx(Core &c, const Op *op) {
    Addr a;
    if (!ready_mmx(c) || !address(c, op, 8, true, a))
        return c.fault_at(op);
    c.fpu.set_top(0);
    if (!store(c, a, mmx(c, op->src)))
        return c.fault_at(op);
    enter_mmx(c);
    return op + 1;
}
template <Exec kExec> Exec lower_stream(const Insn &, Op &op) {
    op.non_temporal = 1;
    return kExec;
}

// --- bytes of a register whose sign bit in another is set, to DS:rDI
bool store_masked(Core &c, const Op *op, const std::uint8_t *bytes, const std::uint8_t *mask, unsigned n) {
    Addr a;
    if (!address(c, op, n, true, a))
        return false;
    if ((a & 0xfff) + n > 0x1000) // two pages: neither is written if one may not be
        for (unsigned i = 0; i < n; ++i)
            if ((mask[i] & 0x80) && !modify<std::uint8_t>(c, a + i, false, [](std::uint8_t x) { return x; }))
                return false;
    for (unsigned i = 0; i < n; ++i)
        if ((mask[i] & 0x80) && !store(c, a + i, bytes[i]))
            return false;
    return true;
}
const Op *maskmovdqu(Core &c, const Op *op) {
    if (!ready(c) || !store_masked(c, op, c.xmm[op->dst / 16].u8, c.xmm[op->src / 16].u8, 16))
        return c.fault_at(op);
    return op + 1;
}
const Op *maskmovq(Core &c, const Op *op) {
    if (!ready_mmx(c))
        return c.fault_at(op);
    const Xmm bytes = to(low(mmx(c, op->dst))), mask = to(low(mmx(c, op->src)));
    if (!store_masked(c, op, bytes.u8, mask.u8, 8))
        return c.fault_at(op);
    enter_mmx(c);
    return op + 1;
}
template <Exec kExec> Exec lower_masked(const Insn &insn, Op &op) {
    implied_memory(insn, op, rdi);
    op.non_temporal = 1;
    return kExec;
}

const Form kForms[] = {
    {{ZYDIS_MNEMONIC_MOVAPS, ZYDIS_MNEMONIC_MOVAPD, ZYDIS_MNEMONIC_MOVDQA}, lower_move<true>},
    {{ZYDIS_MNEMONIC_MOVUPS, ZYDIS_MNEMONIC_MOVUPD, ZYDIS_MNEMONIC_MOVDQU, ZYDIS_MNEMONIC_LDDQU}, lower_move<false>},
    {ZYDIS_MNEMONIC_MOVSS, lower_scalar<std::uint32_t>},
    {ZYDIS_MNEMONIC_MOVSD, lower_scalar<std::uint64_t>},
    {{ZYDIS_MNEMONIC_MOVLPS, ZYDIS_MNEMONIC_MOVLPD}, lower_half<0>},
    {{ZYDIS_MNEMONIC_MOVHPS, ZYDIS_MNEMONIC_MOVHPD}, lower_half<1>},
    {ZYDIS_MNEMONIC_MOVHLPS, lower_half_register<0, 1>},
    {ZYDIS_MNEMONIC_MOVLHPS, lower_half_register<1, 0>},
    {ZYDIS_MNEMONIC_MOVDDUP, lower_movddup},
    {ZYDIS_MNEMONIC_MOVD, lower_low<std::uint32_t>},
    {{ZYDIS_MNEMONIC_MOVQ, ZYDIS_MNEMONIC_MOVQ2DQ, ZYDIS_MNEMONIC_MOVDQ2Q}, lower_low<std::uint64_t>},
    {{ZYDIS_MNEMONIC_MOVNTPS, ZYDIS_MNEMONIC_MOVNTPD, ZYDIS_MNEMONIC_MOVNTDQ}, lower_stream<move_store<true>>},
    {ZYDIS_MNEMONIC_MOVNTQ, lower_stream<stream_mmx>},
    {ZYDIS_MNEMONIC_MOVNTSS, lower_stream<scalar_store<std::uint32_t>>},
    {ZYDIS_MNEMONIC_MOVNTSD, lower_stream<scalar_store<std::uint64_t>>},
    {ZYDIS_MNEMONIC_MASKMOVDQU, lower_masked<maskmovdqu>},
    {ZYDIS_MNEMONIC_MASKMOVQ, lower_masked<maskmovq>},
};
const Group kGroup("simd moves", kForms);

} // namespace

} // namespace moscope::x86
