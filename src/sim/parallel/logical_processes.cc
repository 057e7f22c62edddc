// SPDX-License-Identifier: BSD-3-Clause
#include "sim/parallel/logical_processes.hh"

#include <algorithm>
#include <utility>

#include "base/error.hh"
#include "sim/fiber.hh"

namespace moscope {

LogicalProcesses &LogicalProcesses::one() {
    static LogicalProcesses processes;
    return processes;
}

void LogicalProcesses::divide(unsigned processes) {
    MOSCOPE_CHECK(size() == 1 && first_.components().empty());
    for (unsigned p = 1; p < processes; ++p) {
        others_.push_back(std::make_unique<EventQueue>());
        queues_.push_back(others_.back().get());
    }
}

void LogicalProcesses::start_threads(Tick lookahead, unsigned threads, std::function<void(unsigned)> on_thread) {
    if (size() == 1)
        return;
    scheduler_ = std::make_unique<ParallelScheduler>(queues_, lookahead, threads, std::move(on_thread));
    scheduler_->serial_queue = &serial_;
    scheduler_->serial_phase = [this](Tick end) { serial_phase(end); };
    serial_.on_defer = [this] { request_serial_phase(); };
    waiting_.resize(size());
}

/// Runs the events of the serial process and the waiting fibers up to the end of an epoch, in the order of their ticks.
void LogicalProcesses::serial_phase(Tick end) {
    in_serial_phase_ = true;
    std::vector<Waiting> waiting;
    for (auto &of_process : waiting_) {
        waiting.insert(waiting.end(), of_process.begin(), of_process.end());
        of_process.clear();
    }
    std::sort(waiting.begin(), waiting.end(), [](const Waiting &a, const Waiting &b) {
        return std::pair(a.tick, a.number) < std::pair(b.tick, b.number);
    });
    for (const Waiting &w : waiting) {
        run_serial_queue(w.tick + 1);
        serial_tick_ = w.tick;
        w.fiber->resume();
    }
    run_serial_queue(end);
    on_serial_phase_();
    in_serial_phase_ = false;
}

/// stop() ends the run of all processes, but not the events of this phase.
void LogicalProcesses::run_serial_queue(Tick until) {
    bool stopped = serial_.stopped();
    while (serial_.next() < until) {
        serial_.run(until);
        stopped |= serial_.stopped();
    }
    if (stopped)
        serial_.stop();
}

bool LogicalProcesses::wait_for_serial_phase(const EventQueue &queue, unsigned number, Fiber &fiber) {
    if (!scheduler_)
        return false;
    waiting_[queue.domain()].push_back({queue.now(), number, &fiber});
    request_serial_phase();
    fiber.yield();
    return true;
}

} // namespace moscope
