// SPDX-License-Identifier: BSD-3-Clause
// Conservative parallel simulation (Chandy and Misra, "Distributed simulation", IEEE TSE SE-5(5), 1979; synchronous epochs
// as in Nicol, "The cost of conservative synchronization in parallel discrete event simulations", JACM 40(2), 1993).
//
// A logical process is a set of components with an event queue of its own. An event of one process affects another process at
// least one lookahead later. From the earliest pending event on, each process can therefore run one epoch, as long as the
// lookahead, without the others. A barrier ends the epoch. At the beginning of the next epoch each process delivers the messages
// sent to it, by sender and then in the order sent. Host threads run the processes. A thread that has run its own processes takes
// those that no thread has begun, because epochs are short and uneven. The results do not depend on the number of threads or on
// which thread runs a process.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "sim/event_queue.hh"
#include "sim/parallel/epoch_record.hh"
#include "sim/parallel/thread_tuner.hh"

namespace moscope {

class ParallelScheduler {
  public:
    /// The queues become logical processes, numbered in this order. `threads` host threads run them, at most one for each process.
    /// Each thread but the caller's calls on_thread(its number) before anything else.
    ParallelScheduler(std::vector<EventQueue *> queues, Tick lookahead, unsigned threads,
                      std::function<void(unsigned thread)> on_thread = {});
    ~ParallelScheduler();
    ParallelScheduler(const ParallelScheduler &) = delete;
    ParallelScheduler &operator=(const ParallelScheduler &) = delete;

    /// The thread that owns a process. Ownership goes round robin, because neighbouring processes tend to have similar load (the
    /// first chips have the devices and what the kernel puts at its lowest addresses).
    static unsigned thread_of(unsigned process, unsigned processes, unsigned threads) {
        return process % std::min(threads, processes);
    }

    /// Runs all processes as EventQueue::run runs one. If one is stopped, the others complete the epoch. Exceptions of components
    /// are rethrown here; of several, that of the first process. The scheduler cannot run after an exception.
    void run(Tick until);
    /// Earliest pending event of any process; between runs.
    Tick next() const;
    /// Tick of the latest event of any process; between runs.
    Tick now() const;
    std::uint64_t events() const;
    /// The last run ended because a process was stopped.
    bool stopped() const;

    /// Called before a thread runs a process that another thread ran last: state that belongs to the thread must be handed over.
    std::function<void(unsigned process, unsigned thread)> on_migrate;

    /// The serial phase: called after each epoch in which request_serial_phase() was called or in which an event of
    /// `serial_queue` was due. It runs on the thread of run(). All processes are at rest and all messages are delivered. It has to
    /// run `serial_queue` up to the end of the epoch.
    std::function<void(Tick end)> serial_phase;
    /// Queue of the serial process, which no thread runs by itself. Its effects on others also take one lookahead.
    EventQueue *serial_queue = nullptr;
    /// From the serial phase: all threads do `work` in parts before the next epoch. The work must not change any wake-up.
    void share_work(unsigned parts, std::function<void(unsigned part)> work) {
        parts_ = parts;
        shared_work_ = std::move(work);
    }
    /// From a component: this epoch needs a serial phase.
    void request_serial_phase() { serial_requested_.store(true, std::memory_order_relaxed); }
    /// End of the epoch that runs, or that ran last.
    Tick epoch_end() const { return end_; }

    /// From now on, records the processor time of each epoch. Between runs, with one thread.
    void record_epochs() {
        MOSCOPE_CHECK(threads_ == 1);
        record_ = std::make_unique<EpochRecord>(static_cast<unsigned>(queues_.size()));
    }
    /// Null: none is kept.
    const EpochRecord *epoch_record() const { return record_.get(); }

  private:
    /// What the thread that ran a process publishes at the end of an epoch.
    struct alignas(64) ProcessStatus {
        Tick next = kNever;
        bool stop = false;
        std::exception_ptr error;
    };
    struct alignas(64) ThreadStatus {
        Tick next_serial = kNever; ///< next event of the serial process; of the first thread
        bool requests_serial_phase = false;
    };
    /// Which thread runs a process.
    struct alignas(64) Claim {
        std::atomic<std::uint64_t> epoch{0}; ///< the last one for which a thread has taken the process
        unsigned thread = 0;                 ///< that thread
    };

    void work(unsigned thread);
    void run_epochs(unsigned thread);
    void run_epoch(unsigned thread, std::uint64_t number, Tick end);
    void run_process(unsigned process, unsigned parity, Tick end);
    void deliver_messages(EventQueue &to, unsigned parity);
    void run_serial_phase(unsigned parity, Tick end);
    void do_shared_work(unsigned thread);
    void barrier();
    void rethrow_errors();
    /// Calls f and keeps what it throws, which ends the run.
    template <class F> void guarded(std::exception_ptr &error, F &&f) {
        try {
            f();
        } catch (...) {
            error = std::current_exception();
        }
    }

    std::vector<EventQueue *> queues_;
    const Tick lookahead_;
    const unsigned threads_;
    unsigned active_; ///< threads of this run
    ThreadTuner tuner_;
    std::function<void(unsigned)> on_thread_;
    std::array<std::vector<ProcessStatus>, 2> process_status_; ///< by parity of the epoch, then by process
    std::array<std::vector<ThreadStatus>, 2> thread_status_;   ///< by parity of the epoch, then by thread
    std::vector<Claim> claims_;                                ///< by process
    std::uint64_t epochs_ = 0;                                 ///< number of the last epoch; between runs
    std::vector<std::exception_ptr> shared_work_errors_;       ///< by thread
    std::exception_ptr serial_error_;
    unsigned parts_ = 0; ///< of the shared work of this serial phase
    std::function<void(unsigned)> shared_work_;
    Tick until_ = 0, first_ = 0, end_ = 0;
    std::unique_ptr<EpochRecord> record_;
    // The barrier: the last thread to arrive opens it.
    alignas(64) std::atomic<unsigned> waiting_{0};
    alignas(64) std::atomic<unsigned> round_{0};
    // Threads other than the caller's sleep between runs.
    alignas(64) std::atomic<unsigned> run_{0};
    std::atomic<bool> ending_{false}, serial_requested_{false};
    std::vector<std::thread> others_;
};

} // namespace moscope
