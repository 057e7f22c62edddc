// SPDX-License-Identifier: BSD-3-Clause
// Skipped iterations of spin loops (PAUSE). If two iterations in a row have left the core's state unchanged, have taken
// the same number of cycles and have touched only lines that hit, all further iterations are the same until one of
// those lines is lost or an interrupt comes. Such a core sleeps. When it wakes, the counts of the skipped iterations
// are added, and the last iteration is run, so that skipping has no visible effect.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/types.hh"
#include "cpu/x86/state.hh"

namespace moscope::x86 {

class SpinLoop {
  public:
    /// Counts of one iteration.
    struct Iteration {
        std::uint64_t retired = 0, pauses = 0, spun = 0, hits = 0;
        std::int64_t cycles = 0;
    };

    /// The core has made a charge of kind `what`, which ends at this cycle.
    void charged(std::int64_t cycle, std::uint8_t what) {
        if (marks_ > kMarks) // nearly always: too many charges since the last PAUSE
            return;
        if (marks_ < kMarks)
            mark_[marks_] = {cycle, what};
        ++marks_;
    }

    /// To be called after a PAUSE; `now` has running totals. True: the last two iterations were alike and changed
    /// nothing. `disturbances` counts the events that an iteration must not contain: misses, stores, fences, device
    /// accesses, lost lines.
    bool iterated(const State &s, const Iteration &now, std::uint64_t disturbances) {
        const Iteration last{now.retired - last_.retired, now.pauses - last_.pauses, now.spun - last_.spun,
                             now.hits - last_.hits, now.cycles - last_.cycles};
        const bool alike = disturbances == disturbances_ && last.retired == iteration_.retired && last.pauses == 1 &&
                           last.spun == last.retired && last.hits == iteration_.hits &&
                           last.cycles == iteration_.cycles && marks_ <= kMarks;
        charges_ = alike ? marks_ : 0;
        std::int64_t begun = last_.cycles;
        for (unsigned i = 0; i < charges_; ++i) {
            charge_[i] = {mark_[i].cycles - begun, mark_[i].what};
            begun = mark_[i].cycles;
        }
        marks_ = 0;
        last_ = now;
        iteration_ = last;
        disturbances_ = disturbances;
        if (!alike) {
            known_ = false;
            return false;
        }
        if (known_ && std::memcmp(state_, static_cast<const void *>(&s), sizeof s) == 0)
            return true;
        std::memcpy(state_, static_cast<const void *>(&s), sizeof s);
        known_ = true;
        return false;
    }
    const Iteration &iteration() const { return iteration_; }
    /// Calls f(cycles, what) for the charges of an iteration, in their order.
    template <class F> void for_each_charge(F &&f) const {
        for (unsigned i = 0; i < charges_; ++i)
            f(charge_[i].cycles, charge_[i].what);
    }

  private:
    static constexpr unsigned kMarks = 16;
    struct Mark {
        std::int64_t cycles;
        std::uint8_t what;
    };
    Mark mark_[kMarks], charge_[kMarks];
    unsigned marks_ = 0, charges_ = 0;
    alignas(State) unsigned char state_[sizeof(State)];
    bool known_ = false; ///< state_ is the state after the last iteration
    Iteration last_, iteration_;
    std::uint64_t disturbances_ = 0;
};

} // namespace moscope::x86
