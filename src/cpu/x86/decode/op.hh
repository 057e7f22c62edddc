// SPDX-License-Identifier: BSD-3-Clause
// A decoded instruction, ready to run: the function that carries it out and its operands, in half a cache line.
// Registers are byte offsets into the register file (so AH needs no special case), which instruction functions add to
// the file's address.
#pragma once

#include <cstdint>

namespace moscope::x86 {

struct Core;
struct Op;

/// Carries out `op` and returns the next one of the block, or null: the block is left, State::rip is set
/// (a branch; or, with Core::exit set, a fault or another reason to return to the loop).
using Exec = const Op *(*)(Core &, const Op *);

struct alignas(32) Op {
    Exec exec = nullptr;
    std::uint64_t imm = 0;       ///< immediate, sign-extended to 64 bits; second immediate of ENTER etc. in `disp`
    std::int32_t disp = 0;       ///< displacement; for a RIP-relative operand, counted from the block's first byte
    std::uint16_t start = 0;     ///< first byte, counted from the block's first byte
    std::uint8_t width = 0;      ///< operand size in bytes where one function serves several
    std::uint8_t dst = 0;        ///< byte offset in State::r (general) or index * 16 (XMM), index * 1 (others)
    std::uint8_t src = 0;        ///< as dst
    std::uint8_t base = 0;       ///< byte offset in State::r
    std::uint8_t index = 0;      ///< byte offset in State::r
    std::uint8_t scale : 2 = 0;  ///< log2
    std::uint8_t seg : 3 = 0;    ///< Seg of the memory operand
    std::uint8_t legacy : 1 = 0; ///< address needs masking or segment checks: not the 64-bit fast form
    std::uint8_t lock : 1 = 0;
    std::uint8_t mem : 1 = 0;            ///< has a memory operand
    std::uint32_t length : 4 = 0;        ///< bytes
    std::uint32_t address_bytes : 4 = 8; ///< 2, 4 or 8: address size
    std::uint32_t rep : 2 = 0;           ///< 0 none, 1 REP/REPE, 2 REPNE
    std::uint32_t non_temporal : 1 = 0;  ///< its store is meant to bypass the caches (MOVNT..., MASKMOV...)
    std::uint32_t fetches : 1 = 0;       ///< detailed mode: fetches the line of its last byte
    std::uint32_t : 1;                   // `timing` has the uppermost bits: one shift finds it
    static constexpr unsigned kTimingBits = 19;
    /// Detailed mode: the number of its timing in the block cache's TimingTable. Before the block is timed: how many of
    /// the instruction's last bytes are its displacement and immediates.
    std::uint32_t timing : kTimingBits = 0;
};
static_assert(sizeof(Op) == 32);

} // namespace moscope::x86
