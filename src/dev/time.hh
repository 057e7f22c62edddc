// SPDX-License-Identifier: BSD-3-Clause
// The time that devices see. Cores run between events, so a register access happens at the accessing core's time, which
// may be later than the event queue's; devices read a TimeSource. An Alarm is a device's wake-up. The clocks of the
// platform (HPET, PM timer, PIT) all derive from one crystal of 14.318180 MHz.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "sim/clock.hh"
#include "sim/event_queue.hh"

namespace moscope::dev {

/// The machine-wide monotone simulated time, as the core or device that accesses a register sees it.
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

/// Calls back at a tick that its owner sets. The tick follows from the owner's state: a checkpoint holds that state
/// only, and a restored owner sets its alarm again.
class Alarm final : public Component {
  public:
    Alarm(EventQueue &queue, std::string name, std::function<void(Tick)> ring)
        : Component(queue, std::move(name), wake), ring_(std::move(ring)) {}

    /// Replaces the pending call by one at t; kNever: no call; a tick in the past: as soon as possible.
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

/// Number of the last edge of `c` at or before t, which is the value of a counter that started at 0.
inline std::int64_t edges_until(const Clock &c, Tick t) { return c.edge_at_or_after(t + 1) - 1; }

/// Tick of edge n; kNever if it does not fit in a Tick.
inline Tick edge_or_never(const Clock &c, __int128 n) {
    const __int128 limit = static_cast<__int128>(kNever) * c.den / c.num;
    return n >= limit ? kNever : c.edge(static_cast<std::int64_t>(n));
}

} // namespace moscope::dev
