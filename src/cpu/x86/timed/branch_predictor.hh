// SPDX-License-Identifier: BSD-3-Clause
// The branch predictor of family 10h as the overlapping model needs it: 16 K two-bit counters indexed by the outcomes of
// the last branches and by the address, 512 targets of indirect jumps and calls, and 24 return addresses (sizes: AMD
// 40546; assumed: indices are an exclusive or with 12 outcomes of history). Fixed targets are always foreseen.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/types.hh"

namespace moscope::x86 {

class BranchPredictor {
  public:
    /// The outcomes of the last branches, the latest in bit 0. A look ahead keeps its own.
    using History = std::uint32_t;

    bool taken(Addr pc, History h) const { return counters_[counter(pc, h)] & 2; }
    Addr target(Addr pc, History h) const { return targets_[index(pc, h) % kTargets]; }
    static History after(History h, bool taken) { return (h << 1 | (taken ? 1u : 0u)) & kHistory; }
    History history() const { return history_; }

    /// A conditional branch has gone that way. Returns whether this was foreseen.
    bool went(Addr pc, bool taken_now) {
        std::uint8_t &c = counters_[counter(pc, history_)];
        const bool foreseen = ((c & 2) != 0) == taken_now;
        const std::uint8_t to = static_cast<std::uint8_t>(taken_now ? std::min(c + 1, 3) : std::max(c - 1, 0));
        changes_ += to != c;
        c = to;
        history_ = after(history_, taken_now);
        return foreseen;
    }
    /// The same of a jump or call to a computed target.
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
    /// Goes up whenever what it foresees may have changed, the history apart.
    std::uint64_t changes() const { return changes_; }

  private:
    static constexpr unsigned kCounters = 1 << 14, kTargets = 512, kReturns = 24;
    static constexpr History kHistory = (1 << 12) - 1;

    static unsigned index(Addr pc, History h) { return static_cast<unsigned>(pc ^ pc >> 14) ^ h << 2; }
    static unsigned counter(Addr pc, History h) { return index(pc, h) % kCounters; }

    std::array<std::uint8_t, kCounters> counters_{};
    std::array<Addr, kTargets> targets_{};
    std::array<Addr, kReturns> returns_{};
    unsigned top_ = 0;
    History history_ = 0;
    std::uint64_t changes_ = 0;
};

} // namespace moscope::x86
