// SPDX-License-Identifier: BSD-3-Clause
// The logical processes of a simulation: their event queues, which of them a component belongs to, and how all of them run. With
// one process, everything is one queue on the caller's thread. With several, host threads run them (parallel_scheduler.hh). Users
// do not see the difference. State that all processes share is touched in two ways:
// - A component that has to wait for nothing but time belongs to serial_queue(), which runs while all processes are at rest.
// - A fiber of a process calls wait_for_serial_phase(), and continues when all processes are at rest and all events before its
//   tick have happened.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sim/event_queue.hh"
#include "sim/parallel/parallel_scheduler.hh"

namespace moscope {

class Fiber;

class LogicalProcesses {
  public:
    LogicalProcesses() : queues_{&first_} {}
    /// A single process, for components whose queue is not part of a machine.
    static LogicalProcesses &one();

    /// Divides the simulation into this many processes. To be called once, before the first component exists.
    void divide(unsigned processes);
    /// Starts the host threads if there are several processes. An event of one process affects another at least one
    /// lookahead later. Each thread but the caller's calls on_thread(its number) before anything else.
    void start_threads(Tick lookahead, unsigned threads, std::function<void(unsigned thread)> on_thread);
    void end_threads() { scheduler_.reset(); }

    unsigned size() const { return static_cast<unsigned>(queues_.size()); }
    /// The queue of a process; with one process always the same.
    EventQueue &queue(unsigned process) { return *queues_[process % queues_.size()]; }
    const std::vector<EventQueue *> &queues() const { return queues_; }
    /// The queue of components that act while all processes are at rest.
    EventQueue &serial_queue() { return size() > 1 ? serial_ : first_; }
    /// The thread that owns a process, where `threads` threads run them.
    static unsigned thread_of(unsigned process, unsigned processes, unsigned threads) {
        return ParallelScheduler::thread_of(process, processes, threads);
    }

    void run(Tick until) { scheduler_ ? scheduler_->run(until) : first_.run(until); }
    /// Earliest pending event; tick of the latest event; number of events. Between runs.
    Tick next() const { return scheduler_ ? scheduler_->next() : first_.next(); }
    Tick now() const { return scheduler_ ? scheduler_->now() : first_.now(); }
    std::uint64_t events() const { return scheduler_ ? scheduler_->events() : first_.events(); }
    /// The last run ended because a process was stopped.
    bool stopped() const { return scheduler_ ? scheduler_->stopped() : first_.stopped(); }

    /// Called on `fiber` by a component of `queue`, at the queue's present tick. Returns true when all processes are at
    /// rest and all their events before that tick have happened. `number` orders the fibers of one tick. With one
    /// process, returns false at once.
    bool wait_for_serial_phase(const EventQueue &queue, unsigned number, Fiber &fiber);
    /// Earliest tick at which a component of this queue may act after its wait: the end of the epoch.
    Tick resume_tick(const EventQueue &queue) const { return scheduler_ ? queue.outside() : 0; }
    /// Earliest tick, not before t, at which the serial process can act on a component of this queue.
    Tick earliest_on(const EventQueue &queue, Tick t) const { return scheduler_ ? std::max(t, queue.outside()) : t; }
    /// Whether a serial phase runs.
    bool in_serial_phase() const { return in_serial_phase_; }
    /// The present tick of the serial process, to which this queue belongs; also right for a fiber in a serial phase.
    Tick serial_now(const EventQueue &serial_queue) const { return std::max(serial_queue.now(), serial_tick_); }

    /// From a component: a serial phase is needed at the end of this epoch. One process has none.
    void request_serial_phase() {
        if (scheduler_)
            scheduler_->request_serial_phase();
    }
    /// `f` is called at the end of each serial phase.
    void on_serial_phase(std::function<void()> f) { on_serial_phase_ = std::move(f); }
    /// From `f`: work in parts, which all threads do before the next epoch. It must not change any wake-up.
    void share_work(unsigned parts, std::function<void(unsigned part)> work) {
        scheduler_->share_work(parts, std::move(work));
    }
    /// From now on, records the processor time of each epoch, on one thread; false: there is one process, which has no epochs.
    bool record_epochs() {
        if (scheduler_)
            scheduler_->record_epochs();
        return scheduler_ != nullptr;
    }
    const EpochRecord *epoch_record() const { return scheduler_ ? scheduler_->epoch_record() : nullptr; }

    /// `f` is called before a thread runs a process that another thread ran last.
    void on_migrate(std::function<void(unsigned process, unsigned thread)> f) {
        if (scheduler_)
            scheduler_->on_migrate = std::move(f);
    }

  private:
    /// A fiber that waits for a serial phase.
    struct Waiting {
        Tick tick;
        unsigned number; ///< order among fibers of one tick
        Fiber *fiber;
    };
    void serial_phase(Tick end);
    void run_serial_queue(Tick until);

    EventQueue first_, serial_;
    std::vector<std::unique_ptr<EventQueue>> others_;
    std::vector<EventQueue *> queues_;
    std::vector<std::vector<Waiting>> waiting_; ///< by process
    bool in_serial_phase_ = false;
    Tick serial_tick_ = 0; ///< of the fiber that ran last in a serial phase
    std::function<void()> on_serial_phase_ = [] {};
    std::unique_ptr<ParallelScheduler> scheduler_; ///< null: there is one process
};

} // namespace moscope
