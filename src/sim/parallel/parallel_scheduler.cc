// SPDX-License-Identifier: BSD-3-Clause
#include "sim/parallel/parallel_scheduler.hh"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.hh"

namespace moscope {

namespace {

/// Turns in which a thread looks for the others before it lets somebody else have its processor.
constexpr unsigned kTurns = 4000;

} // namespace

Lockstep::Lockstep(std::vector<EventQueue *> queues, Tick window, unsigned threads,
                   std::function<void(unsigned)> on_thread)
    : queues_(std::move(queues)),
      window_(window),
      threads_(std::clamp(threads, 1u, static_cast<unsigned>(queues_.size()))),
      active_(threads_),
      on_thread_(std::move(on_thread)),
      claims_(queues_.size()) {
    MOSCOPE_CHECK(window_ > 0);
    for (auto &side : told_)
        side.resize(queues_.size());
    for (auto &side : wishes_)
        side.resize(threads_);
    sharing_.resize(threads_);
    const auto n = static_cast<unsigned>(queues_.size());
    for (unsigned d = 0; d < n; ++d) {
        queues_[d]->join(d, n);
        claims_[d].thread = thread_of(d, n, threads_);
    }
    for (unsigned t = 1; t < threads_; ++t)
        others_.emplace_back([this, t] { work(t); });
}

Lockstep::~Lockstep() {
    ending_ = true;
    ++run_;
    run_.notify_all();
    for (std::thread &t : others_)
        t.join();
}

void Lockstep::work(unsigned thread) {
    if (on_thread_)
        on_thread_(thread);
    for (unsigned last = 0;;) {
        for (unsigned turns = 0; turns < kTurns && run_.load(std::memory_order_acquire) == last; ++turns)
            __builtin_ia32_pause();
        run_.wait(last);
        last = run_;
        if (ending_)
            return;
        windows(thread);
    }
}

void Lockstep::run(Tick until) {
    for (EventQueue *q : queues_)
        q->clear_stop();
    if (aside) {
        aside->clear_stop();
        aside->set_others_run(true);
    }
    until_ = until;
    first_ = next();
    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    const std::uint64_t before = events();
    active_ = pace_.all() ? threads_ : 1;
    if (active_ > 1) {
        ++run_;
        run_.notify_all();
    }
    windows(0);
    for (EventQueue *q : queues_) // what the last window has sent
        guarded(between_error_, [&] { receive(*q, windows_ & 1); });
    if (aside)
        aside->set_others_run(false);
    pace_.took(std::chrono::duration<double>(Clock::now() - begun).count(), events() - before);
    for (auto &side : told_)
        for (Told &t : side)
            if (t.error)
                std::rethrow_exception(std::exchange(t.error, {}));
    for (std::exception_ptr &e : sharing_)
        if (e)
            std::rethrow_exception(std::exchange(e, {}));
    if (between_error_)
        std::rethrow_exception(std::exchange(between_error_, {}));
}

bool Lockstep::Pace::all() {
    if (events_ >= kCounts) {
        const double now = host_s_ / static_cast<double>(events_);
        cost_[all_] = cost_[all_] == 0 ? now : (cost_[all_] + now) / 2;
        events_ = 0, host_s_ = 0;
        const bool quicker = cost_[1] <= cost_[0] || cost_[0] == 0;
        all_ = ++runs_ % (quicker ? kTryAlone : kTryAll) == 0 || cost_[!all_] == 0 ? !all_ : quicker;
    }
    return all_;
}

void Lockstep::Pace::took(double host_s, std::uint64_t events) {
    host_s_ += host_s;
    events_ += events;
}

/// All windows of a run, as each thread sees them. There is one meeting for each, after which every thread comes to the same
/// conclusions from what all have told. Sides take turns, so that what was sent in one window is read while the next one is
/// being written.
void Lockstep::windows(unsigned thread) {
    Tick first = first_;
    for (std::uint64_t number = windows_ + 1;; ++number) {
        const unsigned side = number & 1;
        const Tick end = first >= until_ ? until_ : std::min(until_, first + window_);
        if (thread == 0)
            end_ = end;
        window(thread, number, end);
        meet();
        first = kNever;
        bool over = false, failed = false, asked = false;
        for (const Told &t : told_[side]) {
            first = std::min(first, t.next);
            over |= t.stop;
            failed |= t.error != nullptr;
        }
        for (unsigned other = 0; other < active_; ++other)
            asked |= wishes_[side][other].asks;
        const Tick aside_first = wishes_[side][0].next_aside;
        if ((asked || aside_first < end) && between && !failed) {
            meet();
            if (thread == 0) {
                guarded(between_error_, [&] { at_rest(side, end); });
                first_ = next();
            }
            meet();
            do_share(thread);
            for (const std::exception_ptr &e : sharing_)
                failed |= e != nullptr;
            // Where a window ends must not depend on whether anybody asked: what was told of it still holds, but for what has been run aside.
            first = std::min(first, first_);
            failed |= between_error_ != nullptr;
            over |= aside && aside->stopped();
        } else {
            first = std::min(first, aside_first);
        }
        if (over || failed || first >= until_) {
            meet(); // whoever reads what all have left behind comes after this
            if (thread == 0)
                windows_ = number;
            return;
        }
    }
}

/// A thread's own queues, then whatever others have not begun yet, their last first.
void Lockstep::window(unsigned thread, std::uint64_t number, Tick end) {
    const auto n = static_cast<unsigned>(queues_.size());
    const unsigned side = number & 1;
    const auto take = [&](unsigned d) {
        Claim &claim = claims_[d];
        if (claim.window.load(std::memory_order_relaxed) == number ||
            claim.window.exchange(number, std::memory_order_relaxed) == number)
            return;
        if (std::exchange(claim.thread, thread) != thread && on_take)
            on_take(d, thread);
        run_queue(d, side, end);
    };
    for (unsigned d = 0; d < n; ++d)
        if (thread_of(d, n, active_) == thread)
            take(d);
    if (active_ > 1)
        for (unsigned d = n; d-- > 0;)
            take(d);
    Wish wish;
    if (aside && thread == 0)
        wish.next_aside = aside->next();
    // Whoever asked has not met the others yet, so that nobody takes its question for one of the next window.
    wish.asks = asked_.exchange(false, std::memory_order_relaxed);
    wishes_[side][thread] = wish;
}

void Lockstep::run_queue(unsigned queue, unsigned side, Tick end) {
    EventQueue &q = *queues_[queue];
    Told told;
    q.send_on(side);
    guarded(told.error, [&] {
        receive(q, side ^ 1);
        q.run_window(end, until_);
    });
    told.stop = q.stopped();
    told.next = std::min(q.next(), q.take_earliest_sent());
    told_[side][queue] = told;
}

void Lockstep::at_rest(unsigned side, Tick end) {
    for (EventQueue *q : queues_)
        receive(*q, side);
    if (aside) {
        aside->set_others_run(false);
        aside->do_deferred();
    }
    between(end);
    if (aside)
        aside->set_others_run(true);
}

void Lockstep::do_share(unsigned thread) {
    if (!parts_)
        return;
    for (unsigned part = thread; part < parts_; part += active_)
        guarded(sharing_[thread], [&] { share_(part); });
    meet();
    if (thread == 0)
        parts_ = 0; // the others look again after the next meeting
}

/// Opens what was sent to a queue in the window of a side, which has ended.
void Lockstep::receive(EventQueue &to, unsigned side) {
    for (EventQueue *from : queues_) {
        std::vector<Parcel> &parcels = from->sent(side, to.domain());
        for (const Parcel &p : parcels)
            p.open(p);
        parcels.clear();
    }
}

void Lockstep::meet() {
    const unsigned active = active_; // the next run may change it as soon as this thread has come
    if (active == 1)
        return;
    const unsigned round = round_.load(std::memory_order_acquire);
    if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == active) {
        waiting_.store(0, std::memory_order_relaxed);
        round_.store(round + 1, std::memory_order_release);
        return;
    }
    for (unsigned turns = 0; round_.load(std::memory_order_acquire) == round;)
        if (++turns < kTurns)
            __builtin_ia32_pause();
        else
            std::this_thread::yield();
}

Tick Lockstep::next() const {
    Tick t = kNever;
    for (const EventQueue *q : queues_)
        t = std::min(t, q->next());
    return aside ? std::min(t, aside->next()) : t;
}

Tick Lockstep::now() const {
    Tick t = 0;
    for (const EventQueue *q : queues_)
        t = std::max(t, q->now());
    return aside ? std::max(t, aside->now()) : t;
}

bool Lockstep::stopped() const {
    return (aside && aside->stopped()) ||
           std::any_of(queues_.begin(), queues_.end(), [](const EventQueue *q) { return q->stopped(); });
}

std::uint64_t Lockstep::events() const {
    std::uint64_t n = 0;
    for (const EventQueue *q : queues_)
        n += q->events();
    return aside ? n + aside->events() : n;
}

} // namespace moscope
