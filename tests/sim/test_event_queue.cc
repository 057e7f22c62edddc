// SPDX-License-Identifier: BSD-3-Clause
// The event queue runs wake-ups in the order (tick, component number), whatever the order of asking, and keeps
// one pending wake-up per component.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/rng.hh"
#include "sim/event_queue.hh"

using namespace moscope;

namespace {

using Log = std::vector<std::pair<Tick, unsigned>>;

struct Probe : Component {
    Probe(EventQueue &q, Log &log) : Component(q, "probe", wake), log_(log) {}
    static void wake(Component &c, Tick t) {
        auto &p = static_cast<Probe &>(c);
        p.log_.push_back({t, p.number()});
        if (p.repeat) {
            p.schedule(t + p.repeat);
        }
    }
    Tick repeat = 0;
    Log &log_;
};

TEST(EventQueue, WakesComponentsInOrderOfTimeAndThenOfNumber) {
    EventQueue q;
    Log log;
    std::vector<std::unique_ptr<Probe>> p;
    for (int i = 0; i < 300; ++i) // more than the tree has leaves at first
        p.push_back(std::make_unique<Probe>(q, log));
    Rng rng(3);
    for (int i = 299; i >= 0; --i)
        p[static_cast<std::size_t>(i)]->schedule(static_cast<Tick>(rng.below(20)));
    q.run();
    ASSERT_EQ(log.size(), 300u);
    for (std::size_t i = 1; i < log.size(); ++i)
        EXPECT_LT(log[i - 1], log[i]);
}

TEST(EventQueue, AskingForAnEarlierWakeUpMovesItAndALaterOneDoesNot) {
    EventQueue q;
    Log log;
    Probe a(q, log);
    a.schedule(50);
    a.schedule_no_later_than(70);
    EXPECT_EQ(a.next_wake(), 50);
    a.schedule_no_later_than(30);
    EXPECT_EQ(q.next(), 30);
    q.run();
    EXPECT_EQ(log, (Log{{30, a.number()}}));
}

TEST(EventQueue, RunStopsBeforeItsLimitAndGoesOnFromThere) {
    EventQueue q;
    Log log;
    Probe a(q, log);
    a.repeat = 10;
    a.schedule(10);
    q.run(30);
    EXPECT_EQ(log, (Log{{10, 0}, {20, 0}}));
    q.run(31);
    EXPECT_EQ(log.size(), 3u);
}

TEST(EventQueue, StopEndsTheRunAfterTheCurrentWakeUp) {
    EventQueue q;
    Log log;
    struct Stopper : Component {
        explicit Stopper(EventQueue &queue)
            : Component(queue, "stopper", [](Component &c, Tick) { c.queue().stop(); }) {}
    } s(q);
    Probe a(q, log);
    s.schedule(5);
    a.schedule(5);
    q.run();
    EXPECT_TRUE(log.empty());
    q.run();
    EXPECT_EQ(log.size(), 1u);
}

} // namespace
