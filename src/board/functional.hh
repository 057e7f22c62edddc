// SPDX-License-Identifier: BSD-3-Clause
// Functional mode: cores take turns in slices of simulated time, one instruction per core cycle, without caches. A
// slice of one of n running cores is 1/n as long as what it executes, so n cores together advance the clock as
// if they ran side by side, and still the clock that any of them reads never goes back: the order in which
// instructions run is the order of time. A core that waits (PAUSE, HLT) gives up its slice; when all wait, the
// clock jumps to the next event. Devices' events happen between slices, and a slice ends where the next is due.
#pragma once

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

    enum class Outcome { running, arrived, stopped, hang, shutdown, unmodelled };

    /// Runs until `host_done` (asked every few thousand slices) says so, the clock has come to `until` (to less than a
    /// round of slices beyond), or something ends the run. The core that ended it is `culprit`.
    template <class F> Outcome run(F &&host_done, Tick until = kNever) {
        for (unsigned n = 0;; ++n) {
            if (now_ >= until)
                return Outcome::arrived;
            const Outcome o = round(until);
            if (o != Outcome::running)
                return o;
            if ((n & 63) == 0 && host_done())
                return Outcome::running;
        }
    }

    /// The clock: within a slice it is the running core's.
    Tick now() const;
    /// The clock in cycles of the cores.
    std::uint64_t cycles() const {
        return static_cast<std::uint64_t>(static_cast<__int128>(now()) * clock_.den / clock_.num);
    }
    /// Ends the run after the instruction that is running.
    void stop() { stop_ = true; }
    /// Ends the run between two rounds of slices, where it may go on later as if it had never stopped.
    void stop_between_rounds() { stop_soon_ = true; }
    void clear_stop() { stop_ = stop_soon_ = false; }
    /// The clock after a time in detailed mode.
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
    std::vector<x86::Core *> turn_;
    Tick now_ = 0;
    // Of the slice that runs:
    const x86::Core *running_ = nullptr;
    std::uint64_t begun_ = 0; ///< cycles that the core had used when it began
    std::int64_t sharers_ = 1;
    mutable Tick seen_ = 0; ///< latest time that anybody was told
    x86::Core *culprit_ = nullptr;
    std::uint64_t slices_ = 0;
    bool stop_ = false, stop_soon_ = false;
};

} // namespace moscope
