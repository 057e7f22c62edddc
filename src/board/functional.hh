// SPDX-License-Identifier: BSD-3-Clause
// Functional mode: cores run in slices of simulated time, one instruction per core cycle, without caches. A slice of one of n running
// cores lasts 1/n of its cycles, so n cores together advance the clock as if they ran in parallel, and the clock that any core reads
// never goes back: instructions run in the order of time. A core that waits (PAUSE, HLT) gives up its slice. If all cores wait, the
// clock jumps to the next event. Device events happen between slices; a slice ends where the next event is due.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/x86/core.hh"
#include "sim/clock.hh"
#include "sim/event_queue.hh"

namespace moscope {

class FunctionalScheduler {
  public:
    FunctionalScheduler(EventQueue &queue, Clock core_clock) : queue_(queue), clock_(core_clock) {}

    void add_core(x86::Core &c) { cores_.push_back(&c); }

    /// Simulated time ends here, after 2.5 hours: a Tick also holds what timers and slices add to this.
    static constexpr Tick kEndOfTime = 9'000'000'000'000'000'000;

    enum class Outcome { running, arrived, stopped, hang, shutdown, unmodelled, end_of_time };

    /// Runs until `host_done` (asked every 64 rounds of slices) returns true, until the clock has reached `until` (or
    /// less than a round beyond), or until something ends the run. `culprit` is the core that ended it.
    template <class F> Outcome run(F &&host_done, Tick until = kNever) {
        const Tick end = std::min(until, kEndOfTime);
        for (unsigned n = 0;; ++n) {
            if (now_ >= end)
                return now_ >= until ? Outcome::arrived : Outcome::end_of_time;
            const Outcome o = round(end);
            if (o != Outcome::running)
                return o;
            if ((n & 63) == 0 && host_done())
                return Outcome::running;
        }
    }

    /// The clock; within a slice, that of the running core.
    Tick now() const;
    /// The clock in cycles of the cores.
    std::uint64_t cycles() const {
        return static_cast<std::uint64_t>(static_cast<__int128>(now()) * clock_.den / clock_.num);
    }
    /// Ends the run after the instruction that is running.
    void stop() { stop_ = true; }
    /// Ends the run between two rounds of slices. A later run continues as if it had not stopped.
    void stop_between_rounds() { stop_soon_ = true; }
    void clear_stop() { stop_ = stop_soon_ = false; }
    /// Sets the clock, after a time in detailed mode.
    void set_now(Tick t) { now_ = seen_ = t; }
    x86::Core *culprit() const { return culprit_; }
    std::uint64_t slices() const { return slices_; }

    void archive(Archive &a);

  private:
    static constexpr std::int64_t kQuantum = 2000;  ///< cycles of a slice
    static constexpr std::size_t kGarbage = 10'000; ///< blocks of overwritten code that may wait to be freed

    Outcome round(Tick until);
    Outcome slice(x86::Core &c, std::int64_t sharers);
    bool runnable(x86::Core &c) const;
    Tick span(std::uint64_t cycles, std::int64_t sharers) const {
        return static_cast<Tick>(static_cast<__int128>(cycles) * clock_.num / (clock_.den * sharers));
    }
    void advance_to(Tick t);

    EventQueue &queue_;
    Clock clock_;
    std::vector<x86::Core *> cores_;
    std::vector<x86::Core *> runnable_; ///< of this round
    Tick now_ = 0;
    // The slice that runs:
    const x86::Core *running_ = nullptr;
    std::uint64_t begun_ = 0; ///< cycles that the core had used when it began
    std::int64_t sharers_ = 1;
    mutable Tick seen_ = 0; ///< latest time that was read
    x86::Core *culprit_ = nullptr;
    std::uint64_t slices_ = 0;
    bool stop_ = false, stop_soon_ = false;
};

} // namespace moscope
