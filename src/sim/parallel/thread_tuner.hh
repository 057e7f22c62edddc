// SPDX-License-Identifier: BSD-3-Clause
// Chooses between one host thread and all of them. On a busy host, threads that wait for each other can be slower than one
// thread. The tuner measures host time per event both ways, uses the faster way, and tries the slower way from time to time.
// The choice does not change results.
#pragma once

#include <array>
#include <cstdint>

namespace moscope {

class ThreadTuner {
  public:
    /// Whether the next run uses all threads.
    bool use_all_threads() {
        if (events_ >= kEnoughEvents) {
            const double now = host_s_ / static_cast<double>(events_);
            cost_[all_] = cost_[all_] == 0 ? now : (cost_[all_] + now) / 2;
            events_ = 0, host_s_ = 0;
            const bool all_is_faster = cost_[1] <= cost_[0] || cost_[0] == 0;
            const bool try_slower = ++runs_ % (all_is_faster ? kTryOne : kTryAll) == 0 || cost_[!all_] == 0;
            all_ = try_slower ? !all_ : all_is_faster;
        }
        return all_;
    }
    /// What the last run took.
    void measured(double host_s, std::uint64_t events) {
        host_s_ += host_s;
        events_ += events;
    }

  private:
    /// Runs between two trials of the slower way. To use one thread by mistake costs more than a useless trial of all.
    static constexpr unsigned kTryOne = 64, kTryAll = 8;
    static constexpr std::uint64_t kEnoughEvents = 20'000; ///< for a measurement
    std::array<double, 2> cost_{};                         ///< host seconds per event; with one thread, with all
    bool all_ = true;
    unsigned runs_ = 0;
    double host_s_ = 0;
    std::uint64_t events_ = 0;
};

} // namespace moscope
