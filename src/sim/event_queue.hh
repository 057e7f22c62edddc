// SPDX-License-Identifier: BSD-3-Clause
// The event queue. Everything that acts in simulated time is a Component, and a component has at most one
// pending wake-up: the earliest moment at which it has something to do. The queue is therefore a wheel of
// components, not a heap of events: no allocation, no duplicates. The wheel's buckets are short stretches of
// the near future, each an ordered list. Wake-ups beyond them wait in a set, which is searched when its
// earliest member is due. The order (tick, component number) is total by construction, so runs do not depend on
// the order in which wake-ups were requested. On waking, a component does all that is due at that tick and sets
// its next wake-up itself (`schedule`, or `schedule_no_later_than` from a producer).
//
// Several queues can be logical processes that host threads run in parallel (sim/parallel/parallel_scheduler.hh).
// Components of different queues then affect each other only by messages between processes, which are delivered between
// two epochs.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hh"
#include "base/types.hh"

namespace moscope {

class EventQueue;

/// A message from a component to one of another queue. `open` is called before the receiving queue runs anything of
/// tick `due`, on the thread that runs that queue.
struct ProcessMessage {
    void (*open)(const ProcessMessage &) = nullptr;
    Tick due = 0;
    void *to = nullptr, *what = nullptr;
    std::uint64_t number[3] = {};
};

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
    Tick next_wake() const { return tick_; }

  private:
    friend class EventQueue;
    EventQueue &queue_;
    WakeFn wake_;
    Tick tick_ = kNever;
    Component *later_ = nullptr; ///< next in its bucket of the queue
    std::uint32_t bucket_;       ///< its bucket of the queue; kIdle or kFar: it is in none
    unsigned number_;
    std::string name_;
};

class EventQueue {
  public:
    /// Simulated time: the tick of the wake-up being run, or of the last one.
    Tick now() const { return now_; }
    /// Earliest pending wake-up of any component; kNever when idle.
    Tick next() const {
        settle();
        Tick number = turn_;
        const Component *c = first(number);
        const Tick near = c ? c->tick_ : kNever;
        return near < far_min_ ? near : std::min(near, far_next());
    }
    std::uint64_t events() const { return events_; }

    /// Runs until no wake-up is pending before `until`, or stop() was called. Wake-ups at `until` stay pending.
    void run(Tick until = kNever) {
        stop_ = false;
        limit_ = until;
        outside_ = kNever;
        run_before(until);
    }
    /// Runs one epoch, up to `before`, of a run that goes to `until`. Other queues may run at the same time; nothing
    /// that they send in this epoch is due before `before`.
    void run_window(Tick before, Tick until) {
        limit_ = until;
        outside_ = before;
        run_before(before);
    }

    /// Whether a wake-up of c at tick t would have happened by now.
    inline bool passed(const Component &c, Tick t) const;

    /// Where the current run() ends: no component may run ahead past it.
    Tick limit() const { return limit_; }
    /// Nothing that another queue sends is due before this tick.
    Tick outside() const { return outside_; }

    // ---- one of several (sim/parallel/parallel_scheduler.hh)
    /// Makes this queue number `domain` of `domains` queues.
    void join(unsigned domain, unsigned domains) {
        domain_ = domain;
        outside_ = 0;
        for (auto &side : sent_)
            side.resize(domains);
    }
    unsigned domain() const { return domain_; }
    /// Sends a message to a component of `to`, another queue.
    void post(const EventQueue &to, const ProcessMessage &p) {
        sent_[side_][to.domain_].push_back(p);
        earliest_sent_ = std::min(earliest_sent_, p.due);
    }
    /// From here on, post() stores messages on this side, 0 or 1.
    void send_on(unsigned side) { side_ = side; }
    std::vector<ProcessMessage> &sent(unsigned side, unsigned domain) { return sent_[side][domain]; }
    /// The earliest tick at which a message sent since the last call is due; kNever: none was sent.
    Tick take_earliest_sent() { return std::exchange(earliest_sent_, kNever); }
    void clear_stop() { stop_ = false; }

    // ---- run while the others are at rest (ParallelScheduler::serial_queue)
    /// Whether the others run. Their threads must then call defer() instead of scheduling a component of this queue.
    bool others_run() const { return others_run_; }
    void set_others_run(bool yes) { others_run_ = yes; }
    /// Schedules c at t once the others are at rest. From any thread, but always from the same one for one component.
    void defer(Component &c, Tick t) {
        const std::lock_guard lock(defer_mutex_);
        deferred_.emplace_back(&c, t);
        if (on_defer)
            on_defer();
    }
    inline void do_deferred();
    std::function<void()> on_defer;

    /// Ends run() after the wake-up that is running.
    void stop() { stop_ = true; }
    bool stopped() const { return stop_; }

    const std::vector<Component *> &components() const { return components_; }

  private:
    friend class Component;

    void run_before(Tick end) {
        settle();
        all_before_ = 0;
        end_ = end;
        bound_ = std::min(end, far_min_);
        while (!stop_) {
            Tick number = turn_; // of the bucket
            Component *const c = first(number);
            if (__builtin_expect(!c || c->tick_ >= bound_, 0)) {
                if (reach_far(c, end))
                    continue;
                all_before_ = end;
                break;
            }
            const Tick t = c->tick_;
            now_ = t;
            turn_ = number;
            c->tick_ = kNever;
            take_first(number, c->later_);
            running_ = c;
            last_ = c;
            ++events_;
            c->wake_(*c, t);
            settle();
        }
        end_ = kNever;
    }
    /// Called if the wheel is empty or its first component is not due before bound_. False: nothing is due before
    /// `end`.
    [[gnu::noinline]] bool reach_far(const Component *c, Tick end) {
        const Tick far = far_next();
        if (far < end && (!c || far <= c->tick_))
            turn_to(far);
        else if (!c || c->tick_ >= end)
            return false;
        return true; // another component is first now, or bound_ was too early
    }

    // 256 buckets of 2^18 fs: 67 ns, beyond what most messages and DRAM accesses take.
    static constexpr unsigned kBucketBits = 18, kBuckets = 256, kWords = kBuckets / 64;
    static constexpr std::uint32_t kIdle = ~0u, kFar = ~1u; ///< instead of a bucket's number

    unsigned add(Component *c) {
        const unsigned i = static_cast<unsigned>(components_.size());
        components_.push_back(c);
        if (i / 64 >= far_.size())
            far_.push_back(0);
        return i;
    }

    void update(Component *c, Tick t) {
        if (c != running_) {
            if (c->bucket_ != kIdle)
                take_out(c);
            c->tick_ = t;
            if (t != kNever)
                put_in(c);
        } else {
            c->tick_ = t;
        }
    }

    // The component that runs is put back into the wheel once, after it has set its next wake-up; until then it
    // is in no list, which only next() could see.
    [[gnu::always_inline]] void settle() const {
        if (Component *c = running_) {
            running_ = nullptr;
            if (c->tick_ != kNever)
                put_in_inline(c);
            else
                c->bucket_ = kIdle;
        }
    }

    void put_in(Component *c) const { put_in_inline(c); }
    [[gnu::always_inline]] void put_in_inline(Component *c) const {
        const Tick t = c->tick_;
        Tick number = t >> kBucketBits;
        if (__builtin_expect(static_cast<std::uint64_t>(number) - static_cast<std::uint64_t>(turn_) >= kBuckets, 0)) {
            if (number > turn_) {
                put_far(c);
                return;
            }
            number = turn_; // the wheel never turns back
        }
        const auto b = static_cast<unsigned>(number) % kBuckets;
        c->bucket_ = b;
        busy_[b / 64] |= std::uint64_t{1} << (b & 63);
        Component **at = &bucket_[b]; // seldom more than one or two are there
        Component *next = *at;
        while (next && (next->tick_ < t || (next->tick_ == t && next->number_ < c->number_))) {
            at = &next->later_;
            next = *at;
        }
        c->later_ = next;
        *at = c;
    }

    void take_out(Component *c) const {
        const std::uint32_t b = c->bucket_;
        c->bucket_ = kIdle;
        if (__builtin_expect(b == kFar, 0)) {
            far_[c->number_ / 64] &= ~(std::uint64_t{1} << (c->number_ & 63));
            return; // far_min_ may now be too early; far_next() corrects it
        }
        Component **at = &bucket_[b];
        while (*at != c)
            at = &(*at)->later_;
        *at = c->later_;
        if (!bucket_[b])
            busy_[b / 64] &= std::rotl(~std::uint64_t{1}, static_cast<int>(b));
    }

    /// Removes the first component of bucket `number`; `later` is the next one.
    void take_first(Tick number, Component *later) const {
        const auto b = static_cast<unsigned>(number) % kBuckets;
        bucket_[b] = later;
        if (!later)
            busy_[b / 64] &= std::rotl(~std::uint64_t{1}, static_cast<int>(b));
    }

    /// The earliest component of the wheel, or null. `number` is turn_ on entry; it becomes the number of the
    /// component's bucket, or kNever.
    Component *first(Tick &number) const {
        const auto b = static_cast<unsigned>(number) % kBuckets;
        if (const std::uint64_t busy = busy_[b / 64] >> (b & 63); __builtin_expect(busy != 0, 1)) {
            number += std::countr_zero(busy);
            Component *const c = bucket_[static_cast<unsigned>(number) % kBuckets];
            if (!c)
                __builtin_unreachable();
            return c;
        }
        number = later_bucket(number);
        return number != kNever ? bucket_[static_cast<unsigned>(number) % kBuckets] : nullptr;
    }
    /// The first bucket that is not empty, if none from bucket `number` to the end of its word is; kNever: all are
    /// empty.
    [[gnu::noinline]] Tick later_bucket(Tick number) const {
        const auto b = static_cast<unsigned>(number) % kBuckets;
        unsigned w = b / 64;
        for (unsigned k = 0; k < kWords; ++k) {
            w = (w + 1) % kWords; // ends with the first word again: its buckets before b are the latest
            if (const std::uint64_t busy = busy_[w]) {
                const unsigned found = w * 64 + static_cast<unsigned>(std::countr_zero(busy));
                return number + (found - b) % kBuckets;
            }
        }
        return kNever;
    }

    [[gnu::noinline]] void put_far(Component *c) const {
        c->bucket_ = kFar;
        far_[c->number_ / 64] |= std::uint64_t{1} << (c->number_ & 63);
        far_min_ = std::min(far_min_, c->tick_);
        bound_ = std::min(bound_, c->tick_);
    }
    template <class F> void for_each_far(F &&f) const {
        for (unsigned w = 0; w < far_.size(); ++w)
            for (std::uint64_t bits = far_[w]; bits; bits &= bits - 1)
                f(components_[w * 64 + static_cast<unsigned>(std::countr_zero(bits))]);
    }
    /// Earliest wake-up beyond the wheel.
    Tick far_next() const {
        far_min_ = kNever;
        for_each_far([this](const Component *c) { far_min_ = std::min(far_min_, c->tick_); });
        bound_ = std::min(end_, far_min_);
        return far_min_;
    }
    /// Turns the wheel to tick t, before which nothing is pending, and takes in what it now covers.
    void turn_to(Tick t) {
        turn_ = t >> kBucketBits;
        for_each_far([this](Component *c) {
            if ((c->tick_ >> kBucketBits) - turn_ < Tick{kBuckets}) {
                take_out(c);
                put_in(c);
            }
        });
        far_next();
    }

    std::vector<Component *> components_;
    mutable Component *running_ = nullptr;
    const Component *last_ = nullptr; ///< the component that woke last
    Tick all_before_ = 0;             ///< all wake-ups before this tick have happened
    Tick turn_ = 0;                   ///< number, since tick zero, of the bucket at which the wheel stands
    Tick now_ = 0;
    mutable Tick far_min_ = kNever;                      ///< not later than the earliest beyond the wheel
    Tick end_ = kNever;                                  ///< of the run
    mutable Tick bound_ = kNever;                        ///< the earlier of far_min_ and end_
    mutable std::array<std::uint64_t, kWords> busy_{};   ///< buckets that are not empty
    mutable std::array<Component *, kBuckets> bucket_{}; ///< in order of time, then of number
    mutable std::vector<std::uint64_t> far_;             ///< components beyond the wheel
    Tick limit_ = kNever, outside_ = kNever;
    std::uint64_t events_ = 0;
    bool stop_ = false;
    unsigned domain_ = 0, side_ = 0;
    bool others_run_ = false;
    std::mutex defer_mutex_;
    std::vector<std::pair<Component *, Tick>> deferred_;
    Tick earliest_sent_ = kNever;
    std::array<std::vector<std::vector<ProcessMessage>>, 2> sent_; ///< by side, then by domain
};

inline Component::Component(EventQueue &queue, std::string name, WakeFn wake)
    : queue_(queue), wake_(wake), bucket_(EventQueue::kIdle), number_(queue.add(this)), name_(std::move(name)) {}

inline void Component::schedule(Tick t) { queue_.update(this, t); }

inline bool EventQueue::passed(const Component &c, Tick t) const {
    return t < now_ || t < all_before_ || (t == now_ && last_ && c.number_ < last_->number_);
}

inline void EventQueue::do_deferred() {
    for (const auto &[c, t] : std::exchange(deferred_, {}))
        c->schedule(std::max(t, now_));
}

inline void Component::schedule_no_later_than(Tick t) {
    if (t < tick_)
        queue_.update(this, t);
}

} // namespace moscope
