// SPDX-License-Identifier: BSD-3-Clause
// What the timing models know of a decoded instruction: the registers that it reads and writes, how many cycles after
// its issue a result can be used, and what else the overlapping model needs. Latencies are those of the family (AMD
// 40546, Software Optimization Guide for family 10h, appendix C), by class. A timing is derived from the instruction's
// bytes when a block first runs in detailed mode.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "cpu/x86/state.hh"
#include "cpu/x86/timed/op_pipes.hh"

namespace moscope::x86 {

/// How the overlapping model handles an instruction (overlap.hh).
enum class OpKind : std::uint8_t {
    other, ///< a look ahead ends here
    plain, ///< all its effects are on general and XMM registers, the arithmetic flags, DF and memory, and requests
    stack, ///< the same, for a push or pop
    conditional, ///< a near branch to a fixed target or to the next instruction
    jump,        ///< to a fixed target
    call,
    ret,
    indirect,      ///< a jump to a computed target
    indirect_call, ///< a call of a computed target
};

inline bool is_plain(OpKind k) { return k == OpKind::plain || k == OpKind::stack; }

/// What an instruction blocks for a time in the overlapping model: a divider, dispatch, or all of the core.
enum class OpUnit : std::uint8_t { none, integer_divider, float_divider, dispatch, all };

/// In OpTiming::touches: the blocking model has something to do before the operation besides waiting for its sources.
/// No register has this bit.
inline constexpr RegMask kApart = RegMask{1} << 63;

struct alignas(32) OpTiming {
    RegMask reads = 0; ///< and `writes`: without the arithmetic flags, which the blocking model does not wait for
    RegMask writes = 0;
    RegMask touches = 0;       ///< both, and kApart
    std::uint16_t address = 0; ///< general registers that form the addresses of its memory operands
    std::uint8_t latency = 1;  ///< issue to use, in cycles, without the access to its memory operand
    std::uint8_t occupies =
        0; ///< cycles during which nothing else issues (divisions, microcoded and serializing instructions)
    OpKind kind = OpKind::other;
    OpUnit unit = OpUnit::none;
    static constexpr std::uint8_t kSeveral = 0xff;
    std::uint8_t result = kSeveral; ///< the register that it writes; kSeveral: none, or more than one
    bool lasts = false; ///< its result cannot be used in the next cycle yet, or it blocks issue for some cycles

    /// Fills in what follows from the rest.
    void complete() {
        touches = reads | writes | (latency || occupies ? 0 : kApart); // of a block's end
        result = std::has_single_bit(writes) ? static_cast<std::uint8_t>(std::countr_zero(writes)) : kSeveral;
        lasts = latency != 1 || occupies;
    }
    bool operator==(const OpTiming &) const = default;
};
static_assert(sizeof(OpTiming) == 32);

/// All that the models know of an instruction.
struct TimedOp {
    OpTiming timing;
    OpPipes pipes;
    bool operator==(const TimedOp &) const = default;
};

/// The different timings of all instructions seen so far: a few thousand, because most instructions look like many
/// others. Operations refer to them by number (Op::timing). Number 0 is the end of a block, which takes no time and has
/// kApart.
class TimingTable {
  public:
    TimingTable();
    /// Completes this timing and returns its number.
    std::uint32_t number(TimedOp);
    /// The number for the instruction that consists of these bytes, of which the last `values` are its displacement and
    /// immediates. No timing depends on those, so most instructions look like one that was decoded before. kUnknown:
    /// use timing_of(), for the whole block.
    std::uint32_t number_of(std::span<const std::uint8_t> bytes, unsigned values, Mode);
    static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
    /// The number of the same timing with kApart.
    std::uint32_t apart(std::uint32_t number);
    /// By number. The arrays never move.
    const OpTiming *all() const { return all_.data(); }
    const OpPipes *pipes() const { return pipes_.data(); }

  private:
    std::uint32_t enter(const TimedOp &);
    struct Hash {
        std::size_t operator()(const TimedOp &) const;
    };
    /// The key by which number_of() distinguishes instructions: the bytes before the values, then length and mode.
    struct Head {
        static constexpr unsigned kBytes = 15;
        std::uint8_t byte[kBytes + 1] = {};
        bool operator==(const Head &) const = default;
    };
    struct HashOfHead {
        std::size_t operator()(const Head &h) const {
            const auto word = std::bit_cast<std::array<std::uint64_t, 2>>(h);
            return (word[0] * 0x9e3779b97f4a7c15 ^ word[1]) * 0xff51afd7ed558ccd;
        }
    };
    std::unordered_map<Head, std::uint32_t, HashOfHead> heads_;
    std::vector<OpTiming> all_; ///< with room for as many as can be numbered
    std::vector<OpPipes> pipes_;
    std::unordered_map<TimedOp, std::uint32_t, Hash> numbers_;
};

/// The timings of the `count` instructions in `bytes`, which begin with the block's first one, and a last entry for the
/// block's end.
std::vector<TimedOp> timing_of(std::span<const std::uint8_t> bytes, Mode mode, unsigned count);

} // namespace moscope::x86
