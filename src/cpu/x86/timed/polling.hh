// SPDX-License-Identifier: BSD-3-Clause
// Time in spin loops by the line that is polled. An iteration goes from one PAUSE to the same PAUSE again, as
// `Core::spun` counts them. Its time is its busy and core stall time (misses are charged to their lines as memory
// stall). Of the lines that an iteration reads, the time belongs to the one that the core loses and misses next: a
// write of that line is what the core waited for. If an interrupt or the end of a measurement window ends the loop
// instead, the time belongs to the line lost before that or, if none was lost, to the first line that an iteration
// reads. Iterations that read no line (a loop that backs off) go with the iterations before them. The result is the
// same whether iterations are run or skipped.
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

    /// Whether there is room to remember a further line of this iteration.
    bool attends() const { return iteration_.n < kLooks; }
    /// A load or locked operation of the core, page walks apart.
    void looked(const Look &look) {
        if (!iteration_.find(line_of(look.dram)))
            iteration_.look[iteration_.n++] = look;
    }
    /// Counts begin anew.
    void reset() {
        spent_ = counted_ = {};
        time_ = 0;
        iterations_ = 0;
    }
    /// At a PAUSE. again: the same PAUSE as the last one, which ends an iteration. `total`: all charges of the core
    /// since reset(). `report_to(look, time, iterations)` is called for a loop on other lines that has ended.
    template <class F> void paused(bool again, const Times &total, F &&report_to) {
        if (!again || (iteration_.n && !loop_.same(iteration_))) {
            report(report_to);
            loop_.n = 0;
            lost_ = ~Addr{0}; // of a loop that is over
        }
        if (again && iteration_.n)
            loop_ = iteration_;
        iteration_.n = 0;
        iterated(again, total);
    }
    /// Iterations like the last one were skipped.
    void skipped(std::uint64_t iterations, const Times &total) { iterated(iterations, total); }
    /// The core misses a line.
    template <class F> void missed(Addr line, F &&report_to) {
        if (loop_.n && loop_.find(line)) {
            lost_ = line;
            report(report_to);
        }
    }
    /// Reports the polls that are still unreported.
    template <class F> void report(F &&report_to) {
        if (iterations_) {
            const Look *lost = loop_.find(lost_);
            report_to(lost ? *lost : loop_.look[0], time_, iterations_);
        }
        time_ = 0;
        iterations_ = 0;
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

    void iterated(std::uint64_t iterations, const Times &total) {
        if (iterations && loop_.n) {
            for (unsigned charge = 0; charge < 2; ++charge)
                for (unsigned user = 0; user < 2; ++user) {
                    const Tick t = total[charge][user] - counted_[charge][user];
                    spent_[charge][user] += t;
                    time_ += t;
                }
            iterations_ += iterations;
        }
        counted_ = total;
    }

    Looks iteration_; ///< since the last PAUSE
    Looks loop_;      ///< of the last iteration that read a line; empty: no loop, or one that reads no line
    Addr lost_ = ~Addr{0};
    Times spent_{}, counted_{};
    Tick time_ = 0; ///< not reported yet
    std::uint64_t iterations_ = 0;
};

} // namespace moscope::x86
