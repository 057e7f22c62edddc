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
        return node_[1].tick;
    }
    std::uint64_t events() const { return events_; }

    /// Runs until no wake-up is pending before `until`, or stop() was called. Wake-ups at `until` stay pending.
    void run(Tick until = kNever) {
        stop_ = false;
        limit_ = until;
        settle();
        while (!stop_) {
            const Tick t = node_[1].tick;
            const unsigned i = node_[1].who;
            if (t >= until)
                break;
            now_ = t;
            node_[leaves_ + i].tick = kNever;
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

    /// A match: its winner, and when that wants to wake. Leaves are the components themselves.
    struct Node {
        Tick tick;
        std::uint32_t who;
    };

    void grow(unsigned leaves) {
        settle();
        std::vector<Node> bigger(2 * std::size_t{leaves}, Node{kNever, 0});
        for (unsigned i = 0; i < leaves; ++i)
            bigger[leaves + i] = {i < leaves_ ? node_[leaves_ + i].tick : kNever, i};
        for (unsigned n = leaves - 1; n >= 1; --n)
            bigger[n] = bigger[2 * n].tick <= bigger[2 * n + 1].tick ? bigger[2 * n] : bigger[2 * n + 1];
        node_.swap(bigger);
        leaves_ = leaves;
    }

    Tick tick_of(unsigned i) const { return node_[leaves_ + i].tick; }

    void update(unsigned i, Tick t) {
        node_[leaves_ + i].tick = t;
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

    // The left subtree holds the lower numbers and wins ties: against a right one, equal is not enough, hence the
    // bit that is taken off. Above a match whose outcome did not change nothing changes.
    void play(unsigned i) const {
        Node *nodes = node_.data();
        unsigned n = leaves_ + i;
        Node best = nodes[n];
        while (n > 1) {
            const Node other = nodes[n ^ 1];
            const bool lost = other.tick - static_cast<Tick>(n & 1) < best.tick;
            best.tick = lost ? other.tick : best.tick;
            best.who = lost ? other.who : best.who;
            n >>= 1;
            if (nodes[n].tick == best.tick && nodes[n].who == best.who)
                return;
            nodes[n] = best;
        }
    }

    std::vector<Component *> components_;
    mutable std::vector<Node> node_;
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
    if (t < queue_.tick_of(number_))
        queue_.update(number_, t);
}

inline Tick Component::next_wake() const { return queue_.tick_of(number_); }

} // namespace moscope
