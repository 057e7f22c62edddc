// SPDX-License-Identifier: BSD-3-Clause
// A machine, and the simulated time that an experiment has reached. The machine runs in slices. Between two slices, the
// experiment polls if enough host time has passed, finds out whether a step has ended, and reads the machine's state at
// the ticks requested.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hh"
#include "experiment/experiment.hh"
#include "mem/ruby/runtime/message_pool.hh"

namespace moscope {

class PacedMachine {
  public:
    static constexpr Tick kSlice = 1'000'000'000;   ///< 1 us of simulated time between two looks at the host's clock
    static constexpr Tick kStep = 10 * kTicksPerNs; ///< the end of a script's step is found to within this time
    static constexpr Tick kSettle =
        20'000 * kTicksPerNs; ///< what a protocol leaves in its buffers may take so long to go
    static constexpr Tick kLongest = 3'600'000'000'000'000; ///< 3.6 s of simulated time: then a phase counts as stuck

    PacedMachine(const std::string &description, const std::string &library, const MachineOptions &options,
                 const Poll &poll)
        : messages_at_rest_(ruby::the_message_pool.live()), machine(description, library, options), poll_(poll) {}

  private:
    std::int64_t messages_at_rest_; // before the machine is built

  public:
    Machine machine;
    Tick now = 0;

    std::vector<std::unique_ptr<Component>> kept; ///< of finished phases: the queue refers to components by number

    /// Ticks in ascending order. At each of them, `look` is called when all events up to and at the tick have happened.
    std::deque<Tick> looks;
    std::function<void(Tick)> look;

    /// The first edge of the cores' clock after all that has happened; becomes `now`.
    Tick start_time() {
        now = edge_after(std::max(now, machine.now()));
        return now;
    }
    /// First edge of the cores' clock after t.
    Tick edge_after(Tick t) {
        const Clock c = machine.port(0).core_clock_;
        return c.edge(c.edge_at_or_after(t + 1));
    }
    void run_until(Tick t) {
        while (now < t) {
            now = std::min(t, now + kSlice);
            advance(now);
        }
    }
    /// Runs in slices while not_done() holds. ProtocolError after kLongest.
    template <class Done> void run_while(Tick slice, Done &&not_done) {
        const Tick start = now;
        while (not_done()) {
            now += slice;
            advance(now);
            if (now - start > kLongest)
                throw ProtocolError("an experiment did not end within 3.6 s of simulated time");
        }
    }
    bool quiet() { return machine.in_flight() == 0 && machine.messages() == messages_at_rest_; }
    /// Runs until no access is in flight and no message under way. After kSettle, messages may remain: some protocols
    /// leave some in their buffers on purpose.
    void settle() {
        const Tick start = now;
        run_while(kStep, [&] { return machine.in_flight() > 0 || (!quiet() && now - start < kSettle); });
    }

  private:
    void advance(Tick t) {
        for (; !looks.empty() && looks.front() < t; looks.pop_front()) {
            machine.run(looks.front() + 1);
            look(looks.front());
        }
        machine.run(t);
        if (poll_ && std::chrono::duration<double>(std::chrono::steady_clock::now() - polled_).count() > 0.05) {
            poll_();
            polled_ = std::chrono::steady_clock::now();
        }
    }

    const Poll &poll_;
    std::chrono::steady_clock::time_point polled_ = std::chrono::steady_clock::now();
};

} // namespace moscope
