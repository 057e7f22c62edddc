// SPDX-License-Identifier: BSD-3-Clause
// Loops that wait for another core (PAUSE): when two turns in a row have left a core exactly as it was, taken the same
// number of cycles and touched nothing but lines that hit, all further turns are the same until one of those lines is
// lost or an interrupt comes. Such a core need not be run: it sleeps, and what its turns would have counted is added
// when it wakes. The last turns before that moment are run again, so that nothing outside can tell the difference.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/types.hh"
#include "cpu/x86/state.hh"

namespace moscope::x86 {

class SpinLoop {
  public:
    /// What one turn counts.
    struct Turn {
        std::uint64_t retired = 0, pauses = 0, spun = 0, hits = 0;
        std::int64_t cycles = 0;
    };

    /// A core's charge that ends at this cycle.
    void charged(std::int64_t cycle, std::uint8_t what) {
        if (marks_ < kMarks)
            mark_[marks_] = {cycle, what};
        ++marks_;
    }

    /// After a PAUSE: counts since some beginning. True: the last two turns were alike, and changed nothing.
    /// `disturbances` counts whatever a turn must not do: misses, stores, fences, device
    /// accesses, lines that were lost meanwhile.
    bool turned(const State &s, const Turn &now, std::uint64_t disturbances) {
        const Turn turn{now.retired - last_.retired, now.pauses - last_.pauses, now.spun - last_.spun,
                        now.hits - last_.hits, now.cycles - last_.cycles};
        const bool alike = disturbances == disturbances_ && turn.retired == turn_.retired && turn.pauses == 1 &&
                           turn.spun == turn.retired && turn.hits == turn_.hits && turn.cycles == turn_.cycles &&
                           marks_ <= kMarks;
        charges_ = alike ? marks_ : 0;
        std::int64_t begun = last_.cycles;
        for (unsigned i = 0; i < charges_; ++i) {
            charge_[i] = {mark_[i].cycles - begun, mark_[i].what};
            begun = mark_[i].cycles;
        }
        marks_ = 0;
        last_ = now;
        turn_ = turn;
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
    const Turn &turn() const { return turn_; }
    /// Calls f(cycles, what) for the charges of a turn, in their order.
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
    bool known_ = false; ///< state_ is that after the last turn
    Turn last_, turn_;
    std::uint64_t disturbances_ = 0;
};

} // namespace moscope::x86
