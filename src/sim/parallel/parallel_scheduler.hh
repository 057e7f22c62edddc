// SPDX-License-Identifier: BSD-3-Clause
// Several event queues on several host threads, in step (conservative parallel simulation: Chandy and Misra, "Distributed
// simulation", IEEE TSE SE-5(5), 1979; windows as in Nicol, "The cost of conservative synchronization in parallel
// discrete event simulations", JACM 40(2), 1993). What a component of one queue does to one of another takes effect a
// `window` later at the earliest. So from the earliest moment at which anything is pending every queue can run for a window
// by itself; then all exchange their parcels. A thread that has run its own queues of a window takes what others have not begun
// yet, as windows are short and uneven. Which thread runs a queue, and how many threads there are, changes nothing: a queue
// opens its parcels between two windows, by sender and then in the order sent.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "sim/event_queue.hh"

namespace moscope {

class Lockstep {
  public:
    /// The queues join in this order; `threads` of them, at most one each, run them. on_thread(t) is called on each
    /// thread before it does anything.
    Lockstep(std::vector<EventQueue *> queues, Tick window, unsigned threads,
             std::function<void(unsigned thread)> on_thread = {});
    ~Lockstep();
    Lockstep(const Lockstep &) = delete;
    Lockstep &operator=(const Lockstep &) = delete;

    /// Who runs which unless another has time for it: dealt out in turn, as those with most to do tend to be next to each other (the
    /// first chips have the devices and what the kernel puts at its lowest addresses).
    static unsigned thread_of(unsigned queue, unsigned queues, unsigned threads) {
        return queue % std::min(threads, queues);
    }

    /// As EventQueue::run, of all of them; after stop() of one the others end the window. What a component throws is thrown
    /// on, of several the one of the first queue; nothing can be run after that.
    void run(Tick until);
    /// Earliest pending wake-up of any queue; between runs.
    Tick next() const;
    /// The latest moment of any queue; between runs.
    Tick now() const;
    std::uint64_t events() const;
    /// The last run ended because one of them was stopped.
    bool stopped() const;

    /// Called before a thread runs a queue that another has run last: what belongs to threads has to change hands.
    std::function<void(unsigned queue, unsigned thread)> on_take;

    /// Called on the thread of run() after each window in which ask() was called or something of the queue `aside` was due, all queues
    /// being at rest and all parcels opened; it runs that queue up to the end of the window.
    std::function<void(Tick end)> between;
    /// A queue that no thread runs by itself. What its components do to others takes effect a window later, too.
    EventQueue *aside = nullptr;
    /// From `between`: work in parts, which all threads do side by side before the next window; it must not change when anything is due.
    void share(unsigned parts, std::function<void(unsigned part)> work) {
        parts_ = parts;
        share_ = std::move(work);
    }
    /// From a component: there is something to do when this window has ended.
    void ask() { asked_.store(true, std::memory_order_relaxed); }
    /// The end of the window that runs, or has run.
    Tick window_end() const { return end_; }

  private:
    /// What the thread that has run a queue tells the others at the end of a window.
    struct alignas(64) Told {
        Tick next = kNever;
        bool stop = false;
        std::exception_ptr error;
    };
    struct alignas(64) Wish {
        Tick next_aside = kNever; ///< by the first thread
        bool asks = false;
    };
    /// Who runs a queue.
    struct alignas(64) Claim {
        std::atomic<std::uint64_t> window{0}; ///< the last one for which somebody has taken it
        unsigned thread = 0;                  ///< who that was
    };
    /// How fast it goes alone and with all threads. On a host that is busy otherwise those that wait for one another are slower
    /// than one alone, so now and then the other way is tried; what comes out is the same.
    class Pace {
      public:
        /// Whether the next run is for all threads.
        bool all();
        void took(double host_s, std::uint64_t events);

      private:
        /// Runs between two tries of the slower way. To stay alone by mistake costs more than to try all in vain.
        static constexpr unsigned kTryAlone = 64, kTryAll = 8;
        static constexpr std::uint64_t kCounts = 20'000; ///< events that tell something
        std::array<double, 2> cost_{};                   ///< host seconds for an event; alone, with all
        bool all_ = true;
        unsigned runs_ = 0;
        double host_s_ = 0;
        std::uint64_t events_ = 0;
    };

    void work(unsigned thread);
    void windows(unsigned thread);
    void window(unsigned thread, std::uint64_t number, Tick end);
    void run_queue(unsigned queue, unsigned side, Tick end);
    void receive(EventQueue &to, unsigned side);
    void at_rest(unsigned side, Tick end);
    void do_share(unsigned thread);
    void meet();
    /// Calls f; what it throws is kept for run() to throw, and ends the run.
    template <class F> void guarded(std::exception_ptr &error, F &&f) {
        try {
            f();
        } catch (...) {
            error = std::current_exception();
        }
    }

    std::vector<EventQueue *> queues_;
    const Tick window_;
    const unsigned threads_;
    unsigned active_; ///< of these, in this run
    Pace pace_;
    std::function<void(unsigned)> on_thread_;
    std::array<std::vector<Told>, 2> told_;   ///< by side, then by queue
    std::array<std::vector<Wish>, 2> wishes_; ///< by side, then by thread
    std::vector<Claim> claims_;               ///< by queue
    std::uint64_t windows_ = 0;               ///< all so far; between runs
    std::vector<std::exception_ptr> sharing_; ///< by thread: what shared work has thrown
    std::exception_ptr between_error_;
    unsigned parts_ = 0; ///< shared work, of this meeting
    std::function<void(unsigned)> share_;
    Tick until_ = 0, first_ = 0, end_ = 0;
    // The barrier: the last to come opens it.
    alignas(64) std::atomic<unsigned> waiting_{0};
    alignas(64) std::atomic<unsigned> round_{0};
    // Runs: threads beside the caller's sleep between them.
    alignas(64) std::atomic<unsigned> run_{0};
    std::atomic<bool> ending_{false}, asked_{false};
    std::vector<std::thread> others_;
};

} // namespace moscope
