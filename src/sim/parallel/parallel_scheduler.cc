// SPDX-License-Identifier: BSD-3-Clause
#include "sim/parallel/parallel_scheduler.hh"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.hh"

namespace moscope {

namespace {

/// Polls of a barrier before a thread yields its host processor.
constexpr unsigned kPolls = 4000;

} // namespace

ParallelScheduler::ParallelScheduler(std::vector<EventQueue *> queues, Tick lookahead, unsigned threads,
                                     std::function<void(unsigned)> on_thread)
    : queues_(std::move(queues)),
      lookahead_(lookahead),
      threads_(std::clamp(threads, 1u, static_cast<unsigned>(queues_.size()))),
      active_(threads_),
      on_thread_(std::move(on_thread)),
      claims_(queues_.size()) {
    MOSCOPE_CHECK(lookahead_ > 0);
    for (auto &of_parity : process_status_)
        of_parity.resize(queues_.size());
    for (auto &of_parity : thread_status_)
        of_parity.resize(threads_);
    shared_work_errors_.resize(threads_);
    const auto n = static_cast<unsigned>(queues_.size());
    for (unsigned p = 0; p < n; ++p) {
        queues_[p]->join(p, n);
        claims_[p].thread = thread_of(p, n, threads_);
    }
    for (unsigned t = 1; t < threads_; ++t)
        others_.emplace_back([this, t] { work(t); });
}

ParallelScheduler::~ParallelScheduler() {
    ending_ = true;
    ++run_;
    run_.notify_all();
    for (std::thread &t : others_)
        t.join();
}

void ParallelScheduler::work(unsigned thread) {
    if (on_thread_)
        on_thread_(thread);
    for (unsigned last = 0;;) {
        for (unsigned polls = 0; polls < kPolls && run_.load(std::memory_order_acquire) == last; ++polls)
            __builtin_ia32_pause();
        run_.wait(last);
        last = run_;
        if (ending_)
            return;
        run_epochs(thread);
    }
}

void ParallelScheduler::run(Tick until) {
    for (EventQueue *q : queues_)
        q->clear_stop();
    if (serial_queue) {
        serial_queue->clear_stop();
        serial_queue->set_others_run(true);
    }
    until_ = until;
    first_ = next();
    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    const std::uint64_t before = events();
    active_ = tuner_.use_all_threads() ? threads_ : 1;
    if (active_ > 1) {
        ++run_;
        run_.notify_all();
    }
    run_epochs(0);
    for (EventQueue *q : queues_) // messages of the last epoch
        guarded(serial_error_, [&] { deliver_messages(*q, epochs_ & 1); });
    if (serial_queue)
        serial_queue->set_others_run(false);
    tuner_.measured(std::chrono::duration<double>(Clock::now() - begun).count(), events() - before);
    rethrow_errors();
}

void ParallelScheduler::rethrow_errors() {
    for (auto &of_parity : process_status_)
        for (ProcessStatus &s : of_parity)
            if (s.error)
                std::rethrow_exception(std::exchange(s.error, {}));
    for (std::exception_ptr &e : shared_work_errors_)
        if (e)
            std::rethrow_exception(std::exchange(e, {}));
    if (serial_error_)
        std::rethrow_exception(std::exchange(serial_error_, {}));
}

/// All epochs of a run, as each thread sees them. After the barrier of an epoch every thread draws the same conclusions from the
/// published statuses. Statuses and messages are kept by the parity of the epoch, so that those of one epoch are read while those
/// of the next are written.
void ParallelScheduler::run_epochs(unsigned thread) {
    Tick first = first_;
    for (std::uint64_t number = epochs_ + 1;; ++number) {
        const unsigned parity = number & 1;
        const Tick end = first >= until_ ? until_ : std::min(until_, first + lookahead_);
        if (thread == 0)
            end_ = end;
        run_epoch(thread, number, end);
        barrier();
        first = kNever;
        bool over = false, failed = false, requested = false;
        for (const ProcessStatus &s : process_status_[parity]) {
            first = std::min(first, s.next);
            over |= s.stop;
            failed |= s.error != nullptr;
        }
        for (unsigned other = 0; other < active_; ++other)
            requested |= thread_status_[parity][other].requests_serial_phase;
        const Tick next_serial = thread_status_[parity][0].next_serial;
        if ((requested || next_serial < end) && serial_phase && !failed) {
            barrier();
            if (thread == 0) {
                guarded(serial_error_, [&] { run_serial_phase(parity, end); });
                first_ = next();
            }
            barrier();
            do_shared_work(thread);
            for (const std::exception_ptr &e : shared_work_errors_)
                failed |= e != nullptr;
            // The end of an epoch must not depend on whether a serial phase was requested. The published statuses still hold,
            // except for what the serial process has done.
            first = std::min(first, first_);
            failed |= serial_error_ != nullptr;
            over |= serial_queue && serial_queue->stopped();
        } else {
            first = std::min(first, next_serial);
        }
        if (record_)
            record_->end_epoch();
        if (over || failed || first >= until_) {
            barrier(); // before any thread changes what the others read above
            if (thread == 0)
                epochs_ = number;
            return;
        }
    }
}

/// First the thread's own processes, then those that no thread has begun, last first.
void ParallelScheduler::run_epoch(unsigned thread, std::uint64_t number, Tick end) {
    const auto n = static_cast<unsigned>(queues_.size());
    const unsigned parity = number & 1;
    const auto take = [&](unsigned p) {
        Claim &claim = claims_[p];
        if (claim.epoch.load(std::memory_order_relaxed) == number ||
            claim.epoch.exchange(number, std::memory_order_relaxed) == number)
            return;
        if (std::exchange(claim.thread, thread) != thread && on_migrate)
            on_migrate(p, thread);
        run_process(p, parity, end);
    };
    for (unsigned p = 0; p < n; ++p)
        if (thread_of(p, n, active_) == thread)
            take(p);
    if (active_ > 1)
        for (unsigned p = n; p-- > 0;)
            take(p);
    ThreadStatus status;
    if (serial_queue && thread == 0)
        status.next_serial = serial_queue->next();
    // A thread that has made a request is still before the barrier, so no thread can take the request for one of the next epoch.
    status.requests_serial_phase = serial_requested_.exchange(false, std::memory_order_relaxed);
    thread_status_[parity][thread] = status;
}

void ParallelScheduler::run_process(unsigned process, unsigned parity, Tick end) {
    const EpochRecord::Part part(record_.get(), process);
    EventQueue &q = *queues_[process];
    ProcessStatus status;
    q.send_on(parity);
    guarded(status.error, [&] {
        deliver_messages(q, parity ^ 1);
        q.run_window(end, until_);
    });
    status.stop = q.stopped();
    status.next = std::min(q.next(), q.take_earliest_sent());
    process_status_[parity][process] = status;
}

void ParallelScheduler::run_serial_phase(unsigned parity, Tick end) {
    const EpochRecord::Part part(record_.get(), static_cast<unsigned>(queues_.size()));
    for (EventQueue *q : queues_)
        deliver_messages(*q, parity);
    if (serial_queue) {
        serial_queue->set_others_run(false);
        serial_queue->do_deferred();
    }
    serial_phase(end);
    if (serial_queue)
        serial_queue->set_others_run(true);
}

void ParallelScheduler::do_shared_work(unsigned thread) {
    if (!parts_)
        return;
    for (unsigned part = thread; part < parts_; part += active_) {
        const EpochRecord::Part timed(record_.get(), static_cast<unsigned>(queues_.size()) + 1);
        guarded(shared_work_errors_[thread], [&] { shared_work_(part); });
    }
    barrier();
    if (thread == 0)
        parts_ = 0; // the others read it again after the next barrier
}

/// Delivers what was sent to a process in the last epoch of this parity.
void ParallelScheduler::deliver_messages(EventQueue &to, unsigned parity) {
    for (EventQueue *from : queues_) {
        std::vector<ProcessMessage> &messages = from->sent(parity, to.domain());
        for (const ProcessMessage &m : messages)
            m.open(m);
        messages.clear();
    }
}

void ParallelScheduler::barrier() {
    const unsigned active = active_; // the next run may change it as soon as this thread has arrived
    if (active == 1)
        return;
    const unsigned round = round_.load(std::memory_order_acquire);
    if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == active) {
        waiting_.store(0, std::memory_order_relaxed);
        round_.store(round + 1, std::memory_order_release);
        return;
    }
    for (unsigned polls = 0; round_.load(std::memory_order_acquire) == round;)
        if (++polls < kPolls)
            __builtin_ia32_pause();
        else
            std::this_thread::yield();
}

Tick ParallelScheduler::next() const {
    Tick t = kNever;
    for (const EventQueue *q : queues_)
        t = std::min(t, q->next());
    return serial_queue ? std::min(t, serial_queue->next()) : t;
}

Tick ParallelScheduler::now() const {
    Tick t = 0;
    for (const EventQueue *q : queues_)
        t = std::max(t, q->now());
    return serial_queue ? std::max(t, serial_queue->now()) : t;
}

bool ParallelScheduler::stopped() const {
    return (serial_queue && serial_queue->stopped()) ||
           std::any_of(queues_.begin(), queues_.end(), [](const EventQueue *q) { return q->stopped(); });
}

std::uint64_t ParallelScheduler::events() const {
    std::uint64_t n = 0;
    for (const EventQueue *q : queues_)
        n += q->events();
    return serial_queue ? n + serial_queue->events() : n;
}

} // namespace moscope
