// SPDX-License-Identifier: BSD-3-Clause
// Integer arithmetic, comparison, logic, packing and unpacking in lanes: SSE2 and MMX forms, and the logic and
// unpacking instructions that are named after floating point but only move bits (AMD 26568, 26569).
#include "cpu/x86/exec/simd/simd.hh"

namespace moscope::x86 {

using namespace simd;

namespace {

/// Both sources of an MMX pack in one 128-bit register.
V join(V d, V s) { return _mm_unpacklo_epi64(d, s); }
V upper_half(V v) { return _mm_srli_si128(v, 8); }

#define LANES(NAME, CALL)                                                                                              \
    {                                                                                                                  \
        ZYDIS_MNEMONIC_##NAME, lower_both<[](V d, V s) -> V { return CALL(d, s); }>                                    \
    }
#define PACK(NAME, CALL)                                                                                               \
    {                                                                                                                  \
        ZYDIS_MNEMONIC_##NAME, lower_both<[](V d, V s) -> V { return CALL(d, s); },                                    \
                                          [](V d, V s) -> V { return CALL(join(d, s), join(d, s)); }>                  \
    }
#define UNPACK_LOW(NAME, CALL)                                                                                         \
    {                                                                                                                  \
        ZYDIS_MNEMONIC_##NAME, lower_both<[](V d, V s) -> V { return CALL(d, s); },                                    \
                                          [](V d, V s) -> V { return CALL(d, s); }, std::uint32_t>                     \
    }
// The low half of an MMX register interleaved with the other fills a vector, whose upper half is the high unpack.
#define UNPACK_HIGH(NAME, CALL, LOW)                                                                                   \
    {                                                                                                                  \
        ZYDIS_MNEMONIC_##NAME,                                                                                         \
            lower_both<[](V d, V s) -> V { return CALL(d, s); }, [](V d, V s) -> V { return upper_half(LOW(d, s)); }>  \
    }
#define BITS(NAME, CALL)                                                                                               \
    {                                                                                                                  \
        ZYDIS_MNEMONIC_##NAME, lower_xmm<[](V d, V s) -> V { return CALL; }>                                           \
    }

const Form kForms[] = {
    LANES(PADDB, _mm_add_epi8),
    LANES(PADDW, _mm_add_epi16),
    LANES(PADDD, _mm_add_epi32),
    LANES(PADDQ, _mm_add_epi64),
    LANES(PSUBB, _mm_sub_epi8),
    LANES(PSUBW, _mm_sub_epi16),
    LANES(PSUBD, _mm_sub_epi32),
    LANES(PSUBQ, _mm_sub_epi64),
    LANES(PADDSB, _mm_adds_epi8),
    LANES(PADDSW, _mm_adds_epi16),
    LANES(PADDUSB, _mm_adds_epu8),
    LANES(PADDUSW, _mm_adds_epu16),
    LANES(PSUBSB, _mm_subs_epi8),
    LANES(PSUBSW, _mm_subs_epi16),
    LANES(PSUBUSB, _mm_subs_epu8),
    LANES(PSUBUSW, _mm_subs_epu16),
    LANES(PMULLW, _mm_mullo_epi16),
    LANES(PMULHW, _mm_mulhi_epi16),
    LANES(PMULHUW, _mm_mulhi_epu16),
    LANES(PMULUDQ, _mm_mul_epu32),
    LANES(PMADDWD, _mm_madd_epi16),
    LANES(PSADBW, _mm_sad_epu8),
    LANES(PAVGB, _mm_avg_epu8),
    LANES(PAVGW, _mm_avg_epu16),
    LANES(PMINUB, _mm_min_epu8),
    LANES(PMAXUB, _mm_max_epu8),
    LANES(PMINSW, _mm_min_epi16),
    LANES(PMAXSW, _mm_max_epi16),
    LANES(PCMPEQB, _mm_cmpeq_epi8),
    LANES(PCMPEQW, _mm_cmpeq_epi16),
    LANES(PCMPEQD, _mm_cmpeq_epi32),
    LANES(PCMPGTB, _mm_cmpgt_epi8),
    LANES(PCMPGTW, _mm_cmpgt_epi16),
    LANES(PCMPGTD, _mm_cmpgt_epi32),
    LANES(PAND, _mm_and_si128),
    LANES(PANDN, _mm_andnot_si128),
    LANES(POR, _mm_or_si128),
    LANES(PXOR, _mm_xor_si128),
    PACK(PACKSSWB, _mm_packs_epi16),
    PACK(PACKSSDW, _mm_packs_epi32),
    PACK(PACKUSWB, _mm_packus_epi16),
    UNPACK_LOW(PUNPCKLBW, _mm_unpacklo_epi8),
    UNPACK_LOW(PUNPCKLWD, _mm_unpacklo_epi16),
    UNPACK_LOW(PUNPCKLDQ, _mm_unpacklo_epi32),
    UNPACK_HIGH(PUNPCKHBW, _mm_unpackhi_epi8, _mm_unpacklo_epi8),
    UNPACK_HIGH(PUNPCKHWD, _mm_unpackhi_epi16, _mm_unpacklo_epi16),
    UNPACK_HIGH(PUNPCKHDQ, _mm_unpackhi_epi32, _mm_unpacklo_epi32),
    BITS(PUNPCKLQDQ, _mm_unpacklo_epi64(d, s)),
    BITS(PUNPCKHQDQ, _mm_unpackhi_epi64(d, s)),
    BITS(ANDPS, _mm_and_si128(d, s)),
    BITS(ANDPD, _mm_and_si128(d, s)),
    BITS(ANDNPS, _mm_andnot_si128(d, s)),
    BITS(ANDNPD, _mm_andnot_si128(d, s)),
    BITS(ORPS, _mm_or_si128(d, s)),
    BITS(ORPD, _mm_or_si128(d, s)),
    BITS(XORPS, _mm_xor_si128(d, s)),
    BITS(XORPD, _mm_xor_si128(d, s)),
    BITS(UNPCKLPS, _mm_unpacklo_epi32(d, s)),
    BITS(UNPCKHPS, _mm_unpackhi_epi32(d, s)),
    BITS(UNPCKLPD, _mm_unpacklo_epi64(d, s)),
    BITS(UNPCKHPD, _mm_unpackhi_epi64(d, s)),
    {ZYDIS_MNEMONIC_MOVSHDUP, lower_xmm<[](V, V s) -> V { return _mm_shuffle_epi32(s, 0xf5); }>},
    {ZYDIS_MNEMONIC_MOVSLDUP, lower_xmm<[](V, V s) -> V { return _mm_shuffle_epi32(s, 0xa0); }>},
};
const Group kGroup("simd integer", kForms);

#undef LANES
#undef PACK
#undef UNPACK_LOW
#undef UNPACK_HIGH
#undef BITS

} // namespace

} // namespace moscope::x86
