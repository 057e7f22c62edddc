// SPDX-License-Identifier: BSD-3-Clause
// What the device tests share: a time that the test sets and that runs what is due on the way, and a wire that
// remembers.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "base/rng.hh"
#include "dev/irq.hh"
#include "dev/time.hh"

namespace moscope::dev {

/// Time as a core sees it: ahead of the queue's last event where nothing is due.
class TestTime final : public TimeSource {
  public:
    explicit TestTime(EventQueue &queue) : queue_(queue) {}
    Tick now() const override { return std::max(now_, queue_.now()); }
    /// Runs everything due at or before t; afterwards the time is t.
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

/// `state` becomes `after` exactly at t.
template <class F> void expect_change(TestTime &time, Tick t, bool after, F state) {
    time.to(t - 1);
    EXPECT_EQ(state(), !after) << "just before " << t << " fs";
    time.to(t);
    EXPECT_EQ(state(), after) << "at " << t << " fs";
}

/// Random register accesses: `draw` gives range, offset and value of each, `then` acts after it.
struct RandomAccess {
    unsigned range;
    Addr offset;
    std::uint64_t value;
};
template <class D, class F, class G>
void access_at_random(D &device, std::uint64_t seed, unsigned accesses, F draw, G then) {
    Rng rng(seed);
    for (unsigned i = 0; i < accesses; ++i) {
        const RandomAccess a = draw(rng);
        const unsigned size = 1u << rng.below(4);
        if (rng.below(3))
            device.write(0, a.range, a.offset, a.value, size);
        else
            device.read(0, a.range, a.offset, size);
        then(rng);
    }
}

template <class D> std::vector<std::uint8_t> saved(D &device) {
    Archive a;
    device.archive(a);
    return a.bytes();
}
template <class D> void restore(D &device, const std::vector<std::uint8_t> &bytes) {
    Archive a(bytes);
    device.archive(a);
}
/// Puts the state of `from` into `to`, and expects that `to` saves the same.
template <class D> void resume(D &to, D &from) {
    const auto bytes = saved(from);
    restore(to, bytes);
    EXPECT_EQ(saved(to), bytes);
}

} // namespace moscope::dev
