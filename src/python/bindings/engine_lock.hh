// SPDX-License-Identifier: BSD-3-Clause
// One simulation of the process at a time: machines share the pools of messages and the event queues of the process
// (sim/parallel/logical_processes.hh), so calls from several Python threads wait for each other. A process that was forked
// while another thread simulated inherits a simulation that nothing continues, and cannot start one.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <nanobind/nanobind.h>
#include <thread>
#include <unistd.h>

#include "base/error.hh"

/// Taken without the interpreter's lock, which the simulation that is under way may need.
class EngineLock {
  public:
    EngineLock() {
        if (owner_ == std::this_thread::get_id())
            throw moscope::UserError("the simulation: one of its callbacks starts another one: expected the second one "
                                     "to start after the first ends");
        while (!mutex_.try_lock_for(std::chrono::milliseconds(100))) {
            if (owner_.load() != std::thread::id{} && process_ != getpid())
                throw moscope::UserError(
                    "the simulation: this process was forked from one that was simulating: expected a "
                    "fork before the simulation, or a new process (multiprocessing: spawn)");
            nanobind::gil_scoped_acquire held; // an interruption also ends the wait
            if (PyErr_CheckSignals() != 0)
                throw nanobind::python_error();
        }
        process_ = getpid();
        owner_ = std::this_thread::get_id();
    }
    ~EngineLock() {
        owner_ = std::thread::id{};
        mutex_.unlock();
    }
    EngineLock(const EngineLock &) = delete;
    EngineLock &operator=(const EngineLock &) = delete;

  private:
    static inline std::timed_mutex mutex_;
    static inline std::atomic<std::thread::id> owner_;
    static inline std::atomic<pid_t> process_ = 0; ///< that of the last owner
};

/// While it exists, its thread simulates: without the interpreter's lock, and with the engine's.
struct Simulating {
    nanobind::gil_scoped_release released;
    EngineLock one;
};
