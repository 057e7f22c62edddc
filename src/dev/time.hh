// SPDX-License-Identifier: BSD-3-Clause
// How devices tell the time. Cores run between events, so a register access happens at the accessing core's own
// moment and not at that of the event queue: devices ask a TimeSource. An Alarm is a device's wake-up. The clocks
// of the platform (HPET, PM timer, PIT) all derive from one crystal of 14.318180 MHz, in this file only.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "sim/clock.hh"
#include "sim/event_queue.hh"

namespace moscope::dev {

/// The machine-wide monotone simulated time, as whoever accesses a device sees it.
class TimeSource {
  public:
    virtual ~TimeSource() = default;
    virtual Tick now() const = 0;
};

/// Time of the event queue, for machines without cores that run ahead, and for tests.
class QueueTime final : public TimeSource {
  public:
    explicit QueueTime(const EventQueue &queue) : queue_(queue) {}
    Tick now() const override { return queue_.now(); }

  private:
    const EventQueue &queue_;
};

/// Calls back at a moment that its owner sets. The owner's state decides the moment, so a checkpoint holds only
/// that state, and an owner that was restored sets its alarm again.
class Alarm final : public Component {
  public:
    Alarm(EventQueue &queue, std::string name, std::function<void(Tick)> ring)
        : Component(queue, std::move(name), wake), ring_(std::move(ring)) {}

    /// Rings at t and at no other moment (kNever: not at all); a moment that has passed means at once.
    void set(Tick t) {
        if (queue().others_run())
            queue().defer(*this, t);
        else
            schedule(std::max(t, queue().now()));
    }

  private:
    static void wake(Component &c, Tick now) { static_cast<Alarm &>(c).ring_(now); }
    std::function<void(Tick)> ring_;
};

inline constexpr Tick kTicksPerSecond = 1'000'000'000'000'000;

/// The crystal of the chip set, 14.318180 MHz; n of its periods as one clock.
constexpr Clock crystal(std::int64_t divider) { return {kTicksPerSecond / 20 * divider, 14'318'180 / 20}; }
inline constexpr Clock kHpetClock = crystal(1);
inline constexpr Clock kPmTimerClock = crystal(4); ///< 3.579545 MHz
inline constexpr Clock kPitClock = crystal(12);    ///< 1.193182 MHz

/// Number of the last edge of `c` at or before t: what a counter that started at 0 shows.
inline std::int64_t edges_until(const Clock &c, Tick t) { return c.edge_at_or_after(t + 1) - 1; }

/// Tick of edge n, kNever if that is beyond the end of time.
inline Tick edge_or_never(const Clock &c, __int128 n) {
    const __int128 limit = static_cast<__int128>(kNever) * c.den / c.num;
    return n >= limit ? kNever : c.edge(static_cast<std::int64_t>(n));
}

} // namespace moscope::dev
