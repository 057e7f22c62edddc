// SPDX-License-Identifier: BSD-3-Clause
// A core that runs on its own fiber: straight-line code that calls load, store and rmw, and continues when they are
// done. The core has its own time, which may be ahead of the event queue by up to its lookahead (mem/port.hh). Until
// then nothing can change the lines that it holds, so hits need no fiber switch. Instruction set models and the traffic
// generators of tests and benchmarks derive from this class. Ticks are femtoseconds.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "base/types.hh"
#include "mem/port.hh"
#include "sim/clock.hh"
#include "sim/event_queue.hh"
#include "sim/fiber.hh"
#include "sim/parallel/logical_processes.hh"

namespace moscope {

class FiberCore : public Component {
  public:
    FiberCore(EventQueue &queue, std::string name, Port &port)
        : Component(queue, std::move(name), wake_entry),
          port_(port),
          clock_(port.core_clock_),
          hit_step_(clock_.step(port.hit_cycles_)),
          one_cycle_(clock_.step(1)),
          fiber_([this] { body(); }) {
        port_.core_lookahead_ = &lookahead_;
    }
    ~FiberCore() override {
        if (port_.core_lookahead_ == &lookahead_)
            port_.core_lookahead_ = nullptr;
    }

    /// Begins running at tick t.
    void start(Tick t) { schedule(t); }
    bool finished() const { return fiber_.finished(); }
    Tick local_time() const { return clock_.tick(); }

  protected:
    /// What the core does; runs on the fiber.
    virtual void body() = 0;

    Tick now() const { return clock_.tick(); }

    /// Tries an inline hit at the current time. On a hit, returns the bytes at `a` and advances the core's time by the
    /// hit latency. Null: not a hit.
    std::byte *try_hit(AccessKind kind, PhysAddr a) {
        if (__builtin_expect(now() >= lookahead_, 0))
            catch_up();
        const Addr line = line_of(a.value);
        const Tick done = clock_.after(hit_step_);
        std::byte *b;
        if (kind == AccessKind::fetch)
            b = port_.fetch_hit(line, done) ? port_.fetched(line) : nullptr;
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
        perform(x);
    }

    /// Starts an access at the current time without waiting; x lives until it is done.
    void start_access(Access &x) {
        issue(x);
        lookahead_ = lookahead();
    }
    /// Starts an access and waits until it is done.
    void perform(Access &x) {
        issue(x);
        if (x.done != kNever)
            lookahead_ = lookahead(); // otherwise suspend() computes it
        wait_for(x);
    }
    /// Waits until x is done; the core's time moves to its completion.
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
        perform(x);
        completed(x);
    }
    /// Called for each blocking access that left the inline path.
    virtual void completed(const Access &) {}

    /// Waits until the queue has reached this core's time.
    void catch_up() {
        schedule(now());
        fiber_.yield();
        lookahead_ = lookahead();
    }

    /// Waits until something schedules this core; time moves there.
    void suspend() {
        fiber_.yield();
        move_to(queue().now());
        lookahead_ = lookahead();
    }
    /// At the queue's tick: stops the core's clock and waits for a barrier of all logical processes, at which all
    /// earlier events have happened. Nothing else may wake the core meanwhile. `number` orders the cores of one tick.
    void wait_for_serial_phase(LogicalProcesses &processes, unsigned number) {
        if (processes.wait_for_serial_phase(queue(), number, fiber_))
            lookahead_ = lookahead();
    }
    /// Skips iterations of a spin loop: sleeps, with its clock stopped, until something schedules or resumes this core.
    /// The core then has to account for the time up to the tick returned, which is its lookahead.
    Tick sleep() {
        fiber_.yield();
        return lookahead_ = std::max(lookahead_of_sleep_, queue().now());
    }
    /// Called from outside: lets a sleeping core run up to tick t. All events before t have happened.
    void resume_sleeper(Tick t) {
        lookahead_of_sleep_ = t;
        fiber_.resume();
    }
    /// Call this when something other than an access may have shortened this core's lookahead.
    void lookahead_changed() { lookahead_ = lookahead(); }
    /// The same if only the companion's next wake-up can have changed.
    void companion_changed() {
        if (const Tick t = companion_->next_wake(); t < lookahead_)
            lookahead_ = no_earlier_than_now(t);
    }
    /// Whether the core's time has reached its lookahead. If so, some earlier events may not have happened yet: call
    /// catch_up() before reading outside state.
    bool ahead() const { return now() >= lookahead_; }
    /// The same for that many cycles later, if nothing changes the lookahead.
    bool ahead_after(std::int64_t cycles) const { return clock_.after(cycles) >= lookahead_; }
    void advance_cycles(std::int64_t n) { n == 1 ? clock_.advance(one_cycle_) : clock_.advance(n); }
    void advance_cycle() { clock_.advance(one_cycle_); }
    std::int64_t hit_cycles() const { return hit_step_.cycles; }
    /// The tick at which a hit that begins now is done.
    Tick hit_done() const { return clock_.after(hit_step_); }
    const ClockCursor &cursor() const { return clock_; }
    void move_to(Tick t) {
        if (t > now())
            clock_.advance_to(t);
    }

    Port &port_;
    /// The other issuer at this core's port (a store buffer); null: there is none.
    const Component *companion_ = nullptr;

  private:
    void issue(Access &x) {
        if (now() >= lookahead_)
            catch_up();
        x.owner = this;
        x.on_done = done_entry;
        port_.issue(x, now());
    }
    static void wake_entry(Component &c, Tick) { static_cast<FiberCore &>(c).fiber_.resume(); }
    static void done_entry(Access &x) { static_cast<FiberCore *>(x.owner)->schedule_no_later_than(x.done); }
    Tick lookahead() const {
        Tick h = port_.lookahead_end(queue());
        if (companion_ && companion_->next_wake() < h)
            h = companion_->next_wake();
        return no_earlier_than_now(h);
    }
    /// At the queue's tick a core may always act: all earlier events have happened. A core that is ahead of the queue
    /// (at its next clock edge, after a device access) has to catch up first.
    Tick no_earlier_than_now(Tick h) const { return h > now() || queue().now() < now() ? h : now() + 1; }

    ClockCursor clock_;
    ClockCursor::Step hit_step_, one_cycle_;
    Tick lookahead_ = 0, lookahead_of_sleep_ = 0;
    Fiber fiber_;
};

} // namespace moscope
