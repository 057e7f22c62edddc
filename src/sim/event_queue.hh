// SPDX-License-Identifier: BSD-3-Clause
// The event queue. Everything that acts in simulated time is a Component, and a component has at most one
// pending wake-up: the earliest moment at which it has something to do. The queue is therefore a tournament
// tree over components, not a heap of events: no allocation, no duplicates, an update is log2(components)
// compares, and the order (tick, component number) is total by construction, so runs do not depend on the
// order in which wake-ups were asked for. On waking, a component does all that is due at that tick and sets
// its next wake-up itself (`schedule`, or `schedule_no_later_than` from a producer).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.hh"
#include "base/types.hh"

namespace moscope {

class EventQueue;

class Component {
  public:
    using WakeFn = void (*)(Component &, Tick now);

    Component(EventQueue &queue, std::string name, WakeFn wake);
    virtual ~Component() = default;
    Component(const Component &) = delete;
    Component &operator=(const Component &) = delete;

    const std::string &name() const { return name_; }
    EventQueue &queue() const { return queue_; }
    unsigned number() const { return number_; }

    /// Sets the pending wake-up to t exactly (kNever: none). t is not before the queue's current tick.
    inline void schedule(Tick t);
    /// Makes sure that the component wakes at t or earlier.
    inline void schedule_no_later_than(Tick t);
    inline Tick next_wake() const;

  private:
    friend class EventQueue;
    EventQueue &queue_;
    std::string name_;
    WakeFn wake_;
    unsigned number_;
};

class EventQueue {
  public:
    EventQueue() { grow(64); }

    /// Simulated time: the tick of the wake-up being run, or of the last one.
    Tick now() const { return now_; }
    /// Earliest pending wake-up of any component; kNever when idle.
    Tick next() const {
        settle();
        return tick_[winner_[1]];
    }
    std::uint64_t events() const { return events_; }

    /// Runs until no wake-up is pending before `until`, or stop() was called. Wake-ups at `until` stay pending.
    void run(Tick until = kNever) {
        stop_ = false;
        limit_ = until;
        settle();
        while (!stop_) {
            const unsigned i = winner_[1];
            const Tick t = tick_[i];
            if (t >= until)
                break;
            now_ = t;
            tick_[i] = kNever;
            running_ = i;
            ++events_;
            Component *c = components_[i];
            c->wake_(*c, t);
            settle();
        }
    }

    /// Where the current run() ends: no component may run ahead past it.
    Tick limit() const { return limit_; }
    /// Ends run() after the wake-up that is running.
    void stop() { stop_ = true; }
    bool stopped() const { return stop_; }

    const std::vector<Component *> &components() const { return components_; }

  private:
    friend class Component;

    unsigned add(Component *c) {
        const unsigned i = static_cast<unsigned>(components_.size());
        components_.push_back(c);
        if (i >= leaves_)
            grow(leaves_ * 2);
        return i;
    }

    void grow(unsigned leaves) {
        leaves_ = leaves;
        tick_.resize(leaves, kNever);
        winner_.assign(2 * leaves, 0);
        for (unsigned i = 0; i < leaves; ++i)
            winner_[leaves + i] = i;
        for (unsigned n = leaves - 1; n >= 1; --n)
            winner_[n] = better(winner_[2 * n], winner_[2 * n + 1]);
    }

    // The left subtree holds the lower numbers, so <= makes the lower number win a tie.
    unsigned better(unsigned a, unsigned b) const { return tick_[a] <= tick_[b] ? a : b; }

    void update(unsigned i, Tick t) {
        tick_[i] = t;
        if (i != running_)
            play(i);
    }

    // The component that runs has its place in the tree brought up to date once, after it has set its next
    // wake-up; until then the matches on its path are stale, which only next() could see.
    void settle() const {
        if (running_ != kNobody) {
            const unsigned i = running_;
            running_ = kNobody;
            play(i);
        }
    }

    void play(unsigned i) const {
        const Tick *ticks = tick_.data();
        std::uint32_t *w = winner_.data();
        for (unsigned n = (leaves_ + i) >> 1; n; n >>= 1) {
            const std::uint32_t a = w[2 * n], b = w[2 * n + 1];
            w[n] = ticks[a] <= ticks[b] ? a : b;
        }
    }

    std::vector<Component *> components_;
    std::vector<Tick> tick_;
    mutable std::vector<std::uint32_t> winner_;
    static constexpr unsigned kNobody = ~0u;
    mutable unsigned running_ = kNobody;
    unsigned leaves_ = 0;
    Tick now_ = 0;
    Tick limit_ = kNever;
    std::uint64_t events_ = 0;
    bool stop_ = false;
};

inline Component::Component(EventQueue &queue, std::string name, WakeFn wake)
    : queue_(queue), name_(std::move(name)), wake_(wake), number_(queue.add(this)) {}

inline void Component::schedule(Tick t) { queue_.update(number_, t); }

inline void Component::schedule_no_later_than(Tick t) {
    if (t < queue_.tick_[number_])
        queue_.update(number_, t);
}

inline Tick Component::next_wake() const { return queue_.tick_[number_]; }

} // namespace moscope
