// SPDX-License-Identifier: BSD-3-Clause
// Shifts of lanes and of whole registers, shuffles by an immediate, extraction and insertion of words and bit
// fields, byte masks: SSE, SSE2, MMX and SSE4a (AMD 26568, 26569). An immediate that steers a shuffle is data
// here, so it picks a control vector for the host's byte shuffle from a table.
#include <algorithm>
#include <array>
#include <smmintrin.h>

#include "cpu/x86/exec/simd/simd.hh"

namespace moscope::x86 {

using namespace simd;

namespace {

struct alignas(16) Control {
    std::uint8_t byte[16];
};
using Controls = std::array<Control, 256>;

/// Lanes of `kLane` bytes from lane `kFirst` on are picked by two bits of the immediate each, from these four.
template <unsigned kLane, unsigned kFirst> constexpr Controls make_controls() {
    Controls all{};
    for (unsigned i = 0; i < 256; ++i)
        for (unsigned b = 0; b < 16; ++b) {
            const unsigned lane = b / kLane;
            const bool picked = lane >= kFirst && lane < kFirst + 4;
            const unsigned from = picked ? kFirst + (i >> 2 * (lane - kFirst) & 3) : lane;
            all[i].byte[b] = static_cast<std::uint8_t>(from * kLane + b % kLane);
        }
    return all;
}
constexpr Controls kDwords = make_controls<4, 0>(), kLowWords = make_controls<2, 0>(),
                   kHighWords = make_controls<2, 4>();

V control(const Controls &all, unsigned i) { return _mm_load_si128(reinterpret_cast<const V *>(all[i].byte)); }
V shuffle(V v, const Controls &all, unsigned i) { return _mm_shuffle_epi8(v, control(all, i)); }

/// A window over 16 zeros, the identity and 16 zeros (a byte index with its top bit set reads as zero).
alignas(16) constexpr std::uint8_t kWindow[48] = {128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
                                                  128, 128, 128, 128, 0,   1,   2,   3,   4,   5,   6,   7,
                                                  8,   9,   10,  11,  12,  13,  14,  15,  128, 128, 128, 128,
                                                  128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128};

V shift_left(V v, unsigned bytes) {
    return _mm_shuffle_epi8(v, _mm_loadu_si128(reinterpret_cast<const V *>(kWindow + 16 - std::min(bytes, 16u))));
}
V shift_right(V v, unsigned bytes) {
    return _mm_shuffle_epi8(v, _mm_loadu_si128(reinterpret_cast<const V *>(kWindow + 16 + std::min(bytes, 16u))));
}

// --- shifts of lanes: the count is a register's or memory's low 64 bits, or an immediate
template <auto F, bool kMmx> const Op *shift_immediate(Core &c, const Op *op) {
    const V count = low(op->imm & 0xff);
    if (kMmx ? !ready_mmx(c) : !ready(c))
        return c.fault_at(op);
    if constexpr (kMmx)
        set_mmx(c, op->dst, low(F(low(mmx(c, op->dst)), count)));
    else
        set_xmm(c, op->dst, F(xmm(c, op->dst), count));
    return op + 1;
}

template <auto F> Exec lower_shift(const Insn &insn, Op &op) {
    if (insn.is_imm(1))
        return is_mmx(insn, 0) ? shift_immediate<F, true> : shift_immediate<F, false>;
    return lower_both<F>(insn, op);
}

// --- words to and from general registers
template <bool kMmx> const Op *extract_word(Core &c, const Op *op) {
    if (kMmx ? !ready_mmx(c) : !ready(c))
        return c.fault_at(op);
    if constexpr (kMmx) {
        set_reg<std::uint32_t>(c, op->dst, mmx(c, op->src) >> 16 * (op->imm & 3) & 0xffff);
        enter_mmx(c);
    } else
        set_reg<std::uint32_t>(c, op->dst, c.xmm[op->src / 16].u16[op->imm & 7]);
    return op + 1;
}

template <bool kMmx, bool kMemory> const Op *insert_word(Core &c, const Op *op) {
    if (kMmx ? !ready_mmx(c) : !ready(c))
        return c.fault_at(op);
    std::uint16_t word;
    if constexpr (kMemory) {
        Addr a;
        if (!address(c, op, 2, false, a) || !load(c, a, word))
            return c.fault_at(op);
    } else
        word = reg<std::uint16_t>(c, op->src);
    if constexpr (kMmx) {
        const unsigned at = 16 * (op->imm & 3);
        set_mmx(c, op->dst, (mmx(c, op->dst) & ~(std::uint64_t{0xffff} << at)) | std::uint64_t{word} << at);
    } else
        c.xmm[op->dst / 16].u16[op->imm & 7] = word;
    return op + 1;
}

Exec lower_pextrw(const Insn &insn, Op &) {
    if (!insn.is_reg(0) || insn.z.meta.isa_ext == ZYDIS_ISA_EXT_SSE4)
        return nullptr;
    return is_mmx(insn, 1) ? extract_word<true> : extract_word<false>;
}
Exec lower_pinsrw(const Insn &insn, Op &op) {
    if (is_mmx(insn, 0))
        return op.mem ? insert_word<true, true> : insert_word<true, false>;
    return op.mem ? insert_word<false, true> : insert_word<false, false>;
}

// --- sign bits to a general register
template <int (*F)(V)> const Op *mask_xmm(Core &c, const Op *op) {
    if (!ready(c))
        return c.fault_at(op);
    set_reg<std::uint32_t>(c, op->dst, static_cast<std::uint32_t>(F(xmm(c, op->src))));
    return op + 1;
}
int bytes(V v) { return _mm_movemask_epi8(v); }
int floats(V v) { return _mm_movemask_ps(_mm_castsi128_ps(v)); }
int doubles(V v) { return _mm_movemask_pd(_mm_castsi128_pd(v)); }

const Op *mask_mmx(Core &c, const Op *op) {
    if (!ready_mmx(c))
        return c.fault_at(op);
    set_reg<std::uint32_t>(c, op->dst, static_cast<std::uint32_t>(bytes(low(mmx(c, op->src)))) & 0xff);
    enter_mmx(c);
    return op + 1;
}
template <int (*F)(V)> Exec lower_mask(const Insn &insn, Op &) { return is_mmx(insn, 1) ? mask_mmx : mask_xmm<F>; }

// --- SSE4a bit fields: a length of 0 means 64; upper halves are undefined and kept
std::uint64_t field(unsigned length) { return length ? (std::uint64_t{1} << length) - 1 : ~std::uint64_t{0}; }

template <bool kImmediate> const Op *extrq(Core &c, const Op *op) {
    if (!ready(c))
        return c.fault_at(op);
    Xmm &d = c.xmm[op->dst / 16];
    const std::uint64_t control = kImmediate ? (op->imm & 0x3f) | (op->disp & 0x3f) << 8 : c.xmm[op->src / 16].u64[0];
    d.u64[0] = d.u64[0] >> (control >> 8 & 0x3f) & field(control & 0x3f);
    return op + 1;
}

template <bool kImmediate> const Op *insertq(Core &c, const Op *op) {
    if (!ready(c))
        return c.fault_at(op);
    const Xmm s = c.xmm[op->src / 16];
    Xmm &d = c.xmm[op->dst / 16];
    const std::uint64_t control = kImmediate ? (op->imm & 0x3f) | (op->disp & 0x3f) << 8 : s.u64[1];
    const unsigned at = control >> 8 & 0x3f;
    const std::uint64_t mask = field(control & 0x3f) << at;
    d.u64[0] = (d.u64[0] & ~mask) | (s.u64[0] << at & mask);
    return op + 1;
}

Exec lower_extrq(const Insn &insn, Op &) { return insn.is_imm(1) ? extrq<true> : extrq<false>; }
Exec lower_insertq(const Insn &insn, Op &) { return insn.is_imm(2) ? insertq<true> : insertq<false>; }

#define SHIFT(NAME, CALL)                                                                                              \
    {                                                                                                                  \
        ZYDIS_MNEMONIC_##NAME, lower_shift<[](V d, V s) -> V { return CALL(d, s); }>                                   \
    }

const Form kForms[] = {
    SHIFT(PSLLW, _mm_sll_epi16),
    SHIFT(PSLLD, _mm_sll_epi32),
    SHIFT(PSLLQ, _mm_sll_epi64),
    SHIFT(PSRLW, _mm_srl_epi16),
    SHIFT(PSRLD, _mm_srl_epi32),
    SHIFT(PSRLQ, _mm_srl_epi64),
    SHIFT(PSRAW, _mm_sra_epi16),
    SHIFT(PSRAD, _mm_sra_epi32),
    {ZYDIS_MNEMONIC_PSLLDQ, lower_xmm<[](V d, V, unsigned i) -> V { return shift_left(d, i); }>},
    {ZYDIS_MNEMONIC_PSRLDQ, lower_xmm<[](V d, V, unsigned i) -> V { return shift_right(d, i); }>},
    {ZYDIS_MNEMONIC_PSHUFD, lower_xmm<[](V, V s, unsigned i) -> V { return shuffle(s, kDwords, i); }>},
    {ZYDIS_MNEMONIC_PSHUFLW, lower_xmm<[](V, V s, unsigned i) -> V { return shuffle(s, kLowWords, i); }>},
    {ZYDIS_MNEMONIC_PSHUFHW, lower_xmm<[](V, V s, unsigned i) -> V { return shuffle(s, kHighWords, i); }>},
    {ZYDIS_MNEMONIC_PSHUFW, lower_mmx<[](V, V s, unsigned i) -> V { return shuffle(s, kLowWords, i); }>},
    {ZYDIS_MNEMONIC_SHUFPS, lower_xmm<[](V d, V s, unsigned i) -> V {
         const V from_d = shuffle(d, kDwords, i), from_s = shuffle(s, kDwords, i);
         return _mm_blend_epi16(from_d, from_s, 0xf0);
     }>},
    {ZYDIS_MNEMONIC_SHUFPD, lower_xmm<[](V d, V s, unsigned i) -> V {
         return _mm_unpacklo_epi64((i & 1) ? _mm_unpackhi_epi64(d, d) : d, (i & 2) ? _mm_unpackhi_epi64(s, s) : s);
     }>},
    {ZYDIS_MNEMONIC_PEXTRW, lower_pextrw},
    {ZYDIS_MNEMONIC_PINSRW, lower_pinsrw},
    {ZYDIS_MNEMONIC_PMOVMSKB, lower_mask<bytes>},
    {ZYDIS_MNEMONIC_MOVMSKPS, lower_mask<floats>},
    {ZYDIS_MNEMONIC_MOVMSKPD, lower_mask<doubles>},
    {ZYDIS_MNEMONIC_EXTRQ, lower_extrq},
    {ZYDIS_MNEMONIC_INSERTQ, lower_insertq},
};
const Group kGroup("simd shuffle", kForms);

#undef SHIFT

} // namespace

} // namespace moscope::x86
