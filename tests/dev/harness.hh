// SPDX-License-Identifier: BSD-3-Clause
// What the device tests share: a time that the test sets and that runs what is due on the way, and a wire that
// remembers.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "dev/irq.hh"
#include "dev/time.hh"

namespace moscope::dev {

/// Time as a core sees it: ahead of the queue's last event where nothing is due.
class TestTime final : public TimeSource {
  public:
    explicit TestTime(EventQueue &queue) : queue_(queue) {}
    Tick now() const override { return std::max(now_, queue_.now()); }
    /// Runs all that is due at or before t; then it is t.
    void to(Tick t) {
        queue_.run(t + 1);
        now_ = t;
    }
    void by(Tick d) { to(now() + d); }
    /// As `to`, but leaves the events pending: a core that ran ahead of the queue.
    void ahead_to(Tick t) { now_ = t; }

  private:
    EventQueue &queue_;
    Tick now_ = 0;
};

struct Wires final : IrqLine {
    void set_irq(unsigned input, bool level) override {
        if (level && !now[input])
            ++rises[input];
        now[input] = level;
    }
    std::map<unsigned, bool> now;
    std::map<unsigned, int> rises;
};

template <class D> std::vector<std::uint8_t> saved(D &device) {
    Archive a;
    device.archive(a);
    return a.bytes();
}
template <class D> void restore(D &device, const std::vector<std::uint8_t> &bytes) {
    Archive a(bytes);
    device.archive(a);
}

} // namespace moscope::dev
