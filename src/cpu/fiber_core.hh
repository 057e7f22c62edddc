// SPDX-License-Identifier: BSD-3-Clause
// A core that runs on its own fiber: straight code that calls load, store and rmw, and goes on when they are
// done. Time is the core's own: it may run ahead of the event queue up to its port's horizon, within which
// nothing can change what it holds; there, hits need no switch. Models of instruction sets and the traffic
// generators of tests and benchmarks derive from it.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "base/types.hh"
#include "mem/port.hh"
#include "sim/clock.hh"
#include "sim/event_queue.hh"
#include "sim/fiber.hh"

namespace moscope {

class FiberCore : public Component {
  public:
    FiberCore(EventQueue &queue, std::string name, Port &port)
        : Component(queue, std::move(name), wake_entry),
          port_(port),
          clock_(port.core_clock_),
          hit_step_(clock_.step(port.hit_cycles_)),
          one_cycle_(clock_.step(1)),
          fiber_([this] { body(); }) {}

    /// Begins running at tick t.
    void start(Tick t) { schedule(t); }
    bool finished() const { return fiber_.finished(); }
    Tick local_time() const { return clock_.tick(); }
    /// From outside: goes on after wait_aside().
    void resume_aside() { fiber_.resume(); }

  protected:
    /// What the core does; runs on the fiber.
    virtual void body() = 0;

    Tick now() const { return clock_.tick(); }

    /// Inline hit at the current time: the line's bytes, with time moved past the hit; null: not a hit.
    std::byte *try_hit(AccessKind kind, PhysAddr a) {
        if (__builtin_expect(now() >= horizon_, 0))
            catch_up();
        const Addr line = line_of(a.value);
        const Tick done = clock_.after(hit_step_);
        std::byte *b;
        if (kind == AccessKind::fetch)
            b = port_.fetch_hit(line, done);
        else
            b = port_.hit(line, kind == AccessKind::load ? Port::right_load : Port::right_store, done);
        if (__builtin_expect(!b, 0))
            b = port_.probe(kind, line, done);
        if (!b)
            return nullptr;
        clock_.advance(hit_step_);
        return b + line_offset(a.value);
    }

    void load(PhysAddr a, void *to, unsigned size) {
        if (const std::byte *b = try_hit(AccessKind::load, a))
            std::memcpy(to, b, size);
        else
            blocking(AccessKind::load, a, to, size);
    }
    void store(PhysAddr a, const void *from, unsigned size) {
        if (std::byte *b = try_hit(AccessKind::store, a))
            std::memcpy(b, from, size);
        else
            blocking(AccessKind::store, a, const_cast<void *>(from), size);
    }
    /// f(bytes) runs once, on the bytes at a, under write permission.
    template <class F> void rmw(PhysAddr a, unsigned size, F &&f) {
        if (std::byte *b = try_hit(AccessKind::rmw, a)) {
            f(static_cast<void *>(b));
            return;
        }
        Access x;
        x.addr = a;
        x.size = static_cast<std::uint16_t>(size);
        x.kind = AccessKind::rmw;
        x.rmw = [](void *c, void *bytes) { (*static_cast<std::remove_reference_t<F> *>(c))(bytes); };
        x.rmw_context = &f;
        start_access(x);
        wait_for(x);
    }

    /// Starts an access at the current time without waiting; x lives until it is done.
    void start_access(Access &x) {
        if (now() >= horizon_)
            catch_up();
        x.owner = this;
        x.on_done = done_entry;
        port_.issue(x, now());
        horizon_ = horizon();
    }
    /// Until x is done; time moves to its completion.
    void wait_for(Access &x) {
        while (x.done == kNever)
            suspend();
        move_to(x.done);
    }
    /// Lets simulated time pass.
    void delay(std::int64_t cycles) { clock_.advance(cycles); }
    void blocking(AccessKind kind, PhysAddr a, void *data, unsigned size) {
        Access x;
        x.addr = a;
        x.size = static_cast<std::uint16_t>(size);
        x.kind = kind;
        x.data = data;
        start_access(x);
        wait_for(x);
        completed(x);
    }
    /// Told of each blocking access that left the inline path.
    virtual void completed(const Access &) {}

    /// Waits until the queue has reached this core's time.
    void catch_up() {
        schedule(now());
        fiber_.yield();
        horizon_ = horizon();
    }

    /// Waits until something schedules this core; time moves there.
    void suspend() {
        fiber_.yield();
        move_to(queue().now());
        horizon_ = horizon();
    }
    /// Waits for resume_aside(), its clock standing still; nothing else may wake it meanwhile.
    void wait_aside() {
        fiber_.yield();
        horizon_ = horizon();
    }
    /// Waits, its clock standing still, until something schedules or resumes this core; it then is to act up to the moment
    /// returned as it would have without the wait, its horizon being that moment.
    Tick doze() {
        fiber_.yield();
        return horizon_ = std::max(horizon_of_doze_, queue().now());
    }
    /// From outside: a dozing core runs up to tick t, before which everything has happened.
    void resume_dozing(Tick t) {
        horizon_of_doze_ = t;
        fiber_.resume();
    }
    /// After something else than an access may have brought this core's horizon nearer.
    void horizon_changed() { horizon_ = horizon(); }
    /// The same if all that can have done so is the companion's next wake-up.
    void companion_changed() {
        if (companion_->next_wake() < horizon_)
            horizon_changed();
    }
    /// Whether everything up to the present moment is settled (else catch_up() before a look at the outside).
    bool ahead() const { return now() >= horizon_; }
    void advance_cycles(std::int64_t n) { n == 1 ? clock_.advance(one_cycle_) : clock_.advance(n); }
    /// When a hit that begins now is done.
    Tick hit_done() const { return clock_.after(hit_step_); }
    const ClockCursor &cursor() const { return clock_; }
    void move_to(Tick t) {
        if (t > now())
            clock_.advance_to(t);
    }

    Port &port_;
    /// What else issues to this core's port by itself (a store buffer); null: nothing does.
    const Component *companion_ = nullptr;

  private:
    static void wake_entry(Component &c, Tick) { static_cast<FiberCore &>(c).fiber_.resume(); }
    static void done_entry(Access &x) { static_cast<FiberCore *>(x.owner)->schedule_no_later_than(x.done); }
    Tick horizon() const {
        Tick h = port_.horizon(queue());
        if (companion_ && companion_->next_wake() < h)
            h = companion_->next_wake();
        // At its own moment a core may always act: everything before it has happened. A core that has moved on
        // from the queue's moment (to its next clock edge, past a device's answer) has to catch up first.
        return h > now() || queue().now() < now() ? h : now() + 1;
    }

    ClockCursor clock_;
    ClockCursor::Step hit_step_, one_cycle_;
    Tick horizon_ = 0, horizon_of_doze_ = 0;
    Fiber fiber_;
};

} // namespace moscope
