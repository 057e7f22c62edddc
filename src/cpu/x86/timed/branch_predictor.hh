// SPDX-License-Identifier: BSD-3-Clause
// The branch predictor of family 10h as the overlapping model needs it: 16 K two-bit counters indexed by the outcomes
// of the last branches and by the address, 512 targets of indirect jumps and calls, and 24 return addresses (sizes: AMD
// 40546; assumed: indices are an exclusive or with 12 outcomes of history). Fixed targets are always predicted
// correctly.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.hh"

namespace moscope::x86 {

class BranchPredictor {
  public:
    /// The outcomes of the last branches, the latest in bit 0. A look ahead keeps its own.
    using History = std::uint32_t;

    bool taken(Addr pc, History h) const {
        const unsigned i = counter(pc, h);
        return counters_[i / kInByte] >> (shift(i) + 1) & 1;
    }
    Addr target(Addr pc, History h) const { return targets_[index(pc, h) % kTargets]; }
    static History after(History h, bool taken) { return (h << 1 | (taken ? 1u : 0u)) & kHistory; }
    History history() const { return history_; }

    /// Trains the predictor with the outcome of a conditional branch. Returns whether the prediction was right.
    bool went(Addr pc, bool taken_now) {
        const unsigned i = counter(pc, history_), at = shift(i);
        std::uint8_t &byte = counters_[i / kInByte];
        const unsigned c = byte >> at & 3;
        const unsigned full = taken_now ? 3 : 0;
        if (c != full) { // seldom: what it costs is the host's access to the counter
            byte = static_cast<std::uint8_t>(taken_now ? byte + (1u << at) : byte - (1u << at));
            ++changes_;
        }
        history_ = after(history_, taken_now);
        return (c >= 2) == taken_now;
    }
    /// The same for a jump or call to a computed target.
    bool went_to(Addr pc, Addr to) {
        Addr &t = targets_[index(pc, history_) % kTargets];
        const bool foreseen = t == to;
        changes_ += !foreseen;
        t = to;
        return foreseen;
    }
    void called(Addr return_to) {
        top_ = (top_ + 1) % kReturns;
        returns_[top_] = return_to;
    }
    bool returned(Addr to) {
        const bool foreseen = returns_[top_] == to;
        top_ = (top_ + kReturns - 1) % kReturns;
        changes_ += !foreseen;
        return foreseen;
    }
    /// Increases whenever a prediction may have changed for a reason other than the history.
    std::uint64_t changes() const { return changes_; }

  private:
    static constexpr unsigned kCounters = 1 << 14, kTargets = 512, kReturns = 24;
    static constexpr unsigned kInByte = 4; ///< counters; few bytes, because the host's caches hold those of all cores
    static constexpr History kHistory = (1 << 12) - 1;

    static unsigned index(Addr pc, History h) { return static_cast<unsigned>(pc ^ pc >> 14) ^ h << 2; }
    static unsigned shift(unsigned counter) { return counter % kInByte * 2; }
    static unsigned counter(Addr pc, History h) { return index(pc, h) % kCounters; }

    std::array<std::uint8_t, kCounters / kInByte> counters_{};
    std::array<Addr, kTargets> targets_{};
    std::array<Addr, kReturns> returns_{};
    unsigned top_ = 0;
    History history_ = 0;
    std::uint64_t changes_ = 0;
};

} // namespace moscope::x86
