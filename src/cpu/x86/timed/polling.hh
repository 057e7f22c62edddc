// SPDX-License-Identifier: BSD-3-Clause
// Which line a core waits for while it turns in a loop around a PAUSE, and for how long. A turn goes from one PAUSE to the
// same again, as `Core::spun` counts them; its time is what of it is busy or core stall (misses are charged to their lines
// as memory stall). Of the lines that a turn looks at, the time belongs to the one that the core loses and misses next: a
// write of it is what was waited for. What no such loss ends (an interrupt, the end of a window) belongs to the line that
// was lost before or, if none was, to the first that a turn looks at. Turns that look at none (a loop that backs off) go with
// those before them. Whether the core was run through a turn or slept is all the same here.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/types.hh"

namespace moscope::x86 {

class Polling {
  public:
    struct Look {
        Addr dram, pc, va, address_space; ///< the last is CR3
        bool user;
    };
    /// Busy and core stall, each of kernel and user mode.
    using Times = std::array<std::array<Tick, 2>, 2>;

    /// Whether the turn has not looked at so many lines that further ones are not remembered.
    bool attends() const { return turn_.n < kLooks; }
    /// A load or locked operation of the core, page walks apart.
    void looked(const Look &look) {
        if (!turn_.find(line_of(look.dram)))
            turn_.look[turn_.n++] = look;
    }
    /// Counts begin anew.
    void reset() {
        spent_ = counted_ = {};
        time_ = 0;
        turns_ = 0;
    }
    /// At a PAUSE: `turn` of a loop, or the first one of another. `total`: all that the core has been charged since reset().
    /// `tell(look, time, turns)` is called for what other lines were waited for until now.
    template <class F> void paused(bool turn, const Times &total, F &&tell) {
        if (!turn || (turn_.n && !loop_.same(turn_))) {
            told(tell);
            loop_.n = 0;
        }
        if (turn && turn_.n)
            loop_ = turn_;
        turn_.n = 0;
        turned(turn, total);
    }
    /// After as many turns more as the last one.
    void slept(std::uint64_t turns, const Times &total) { turned(turns, total); }
    /// The core misses a line.
    template <class F> void missed(Addr line, F &&tell) {
        if (loop_.n && loop_.find(line)) {
            lost_ = line;
            told(tell);
        }
    }
    /// Tells what is not told yet.
    template <class F> void told(F &&tell) {
        if (turns_) {
            const Look *lost = loop_.find(lost_);
            tell(lost ? *lost : loop_.look[0], time_, turns_);
        }
        time_ = 0;
        turns_ = 0;
    }
    /// All time in such loops since reset().
    const Times &spent() const { return spent_; }

  private:
    static constexpr unsigned kLooks = 4;
    struct Looks {
        std::array<Look, kLooks> look;
        unsigned n = 0;

        const Look *find(Addr line) const {
            for (unsigned i = 0; i < n; ++i)
                if (line_of(look[i].dram) == line)
                    return &look[i];
            return nullptr;
        }
        bool same(const Looks &o) const {
            return n == o.n && std::all_of(o.look.begin(), o.look.begin() + n,
                                           [this](const Look &l) { return find(line_of(l.dram)); });
        }
    };

    void turned(std::uint64_t turns, const Times &total) {
        if (turns && loop_.n) {
            for (unsigned charge = 0; charge < 2; ++charge)
                for (unsigned user = 0; user < 2; ++user) {
                    const Tick t = total[charge][user] - counted_[charge][user];
                    spent_[charge][user] += t;
                    time_ += t;
                }
            turns_ += turns;
        }
        counted_ = total;
    }

    Looks turn_; ///< since the last PAUSE
    Looks loop_; ///< of the last turn that looked at any; none: no loop, or one that looks at none
    Addr lost_ = ~Addr{0};
    Times spent_{}, counted_{};
    Tick time_ = 0; ///< not told yet
    std::uint64_t turns_ = 0;
};

} // namespace moscope::x86
