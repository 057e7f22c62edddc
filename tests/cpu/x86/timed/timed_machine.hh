// SPDX-License-Identifier: BSD-3-Clause
// A core in detailed mode on a memory system that has every line except those that a test takes away: for tests of the
// core alone, without a protocol.
#pragma once

#include <functional>
#include <map>

#include "cpu/x86/system_machine.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope::x86::test {

/// Every line hits until lose(); a lost line comes back after kMiss, or after the delay given to lose(), once it is requested.
class AmplePort : public Port, private Component {
  public:
    static constexpr Tick kMiss = 50 * kTicksPerNs;

    AmplePort(EventQueue &queue, std::byte *bytes)
        : Component(queue, "port", [](Component &c, Tick t) { static_cast<AmplePort &>(c).finish(t); }), bytes_(bytes) {
        memory_ = this;
        hit_cycles_ = 3;
        probe_ = [](void *self, Port &p, AccessKind kind, Addr at, Tick) -> std::byte * {
            const Addr line = line_of(at);
            auto &port = *static_cast<AmplePort *>(self);
            if (port.lost_.contains(line))
                return nullptr;
            p.fill(kind == AccessKind::fetch, line, right_load | right_store, &port.touched_, port.bytes_ + line);
            return port.bytes_ + line;
        };
        issue_ = [](void *self, Access &a) {
            auto &port = *static_cast<AmplePort *>(self);
            ++port.asked;
            const auto of_line = port.lost_.find(line_of(a.addr.value));
            const Tick done = a.issued + (of_line != port.lost_.end() ? of_line->second : kMiss);
            port.accesses_.emplace(done, &a);
            port.schedule_no_later_than(done);
        };
        hit_done_ = [](void *, Tick now) { return now + kTicksPerNs; };
    }
    /// Takes the line from the core, as a protocol does.
    void lose(Addr line, Tick comes_back_after = kMiss) {
        before_change(line);
        lost_[line] = comes_back_after;
        forget(line);
    }
    unsigned asked = 0; ///< accesses so far

  private:
    void finish(Tick now) {
        while (!accesses_.empty() && accesses_.begin()->first <= now) {
            Access &a = *accesses_.begin()->second;
            accesses_.erase(accesses_.begin());
            finish(a, now);
        }
        if (!accesses_.empty())
            schedule_no_later_than(accesses_.begin()->first);
    }
    void finish(Access &a, Tick now) {
        lost_.erase(line_of(a.addr.value));
        if (a.kind == AccessKind::rmw)
            a.rmw(a.rmw_context, bytes_ + a.addr.value);
        else if (a.data && (a.kind == AccessKind::store || a.kind == AccessKind::nt_store))
            std::memcpy(bytes_ + a.addr.value, a.data, a.size);
        else if (a.data)
            std::memcpy(a.data, bytes_ + a.addr.value, a.size);
        a.done = now;
        a.on_done(a);
    }
    std::byte *bytes_;
    std::map<Addr, Tick> lost_;              ///< and how long each takes to come back
    std::multimap<Tick, Access *> accesses_; ///< under way, by their end
    Tick touched_ = 0;
};

/// The model that waits for each load.
inline TimedParams blocking() {
    TimedParams p;
    p.core.model = "blocking";
    return p;
}

/// A core that begins at tick 0 with the code that the test writes; at() makes something happen at a moment.
struct TimedMachine {
    explicit TimedMachine(const TimedParams &params = blocking()) : core(queue, port, m.core, params) { m.kernel64(); }
    void begin() { core.take_over(0); }
    void at(Tick t, std::function<void()> f) {
        happens.emplace(t, std::move(f));
        agenda.schedule(happens.begin()->first);
    }

    SystemMachine m;
    FakeApic apic{m.core};
    EventQueue queue;
    AmplePort port{queue, m.memory.data()};
    TimedCore core;
    struct Agenda : Component {
        explicit Agenda(TimedMachine &t) : Component(t.queue, "agenda", wake), machine(t) {}
        static void wake(Component &c, Tick now) {
            TimedMachine &t = static_cast<Agenda &>(c).machine;
            while (!t.happens.empty() && t.happens.begin()->first <= now) {
                t.happens.begin()->second();
                t.happens.erase(t.happens.begin());
            }
            c.schedule(t.happens.empty() ? kNever : t.happens.begin()->first);
        }
        TimedMachine &machine;
    } agenda{*this};
    std::multimap<Tick, std::function<void()>> happens;
};

} // namespace moscope::x86::test
