// SPDX-License-Identifier: BSD-3-Clause
// The event queue runs wake-ups in the order (tick, component number), whatever the order of asking, and keeps
// one pending wake-up per component.
#include <gtest/gtest.h>

#include <algorithm>
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
    for (int i = 0; i < 300; ++i) // many of them at the same tick
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

TEST(EventQueue, AWakeUpRequestedForThePastKeepsTheOrderOfThoseToCome) {
    EventQueue q;
    Log log;
    constexpr Tick kBucket = Tick{1} << 18, kStart = 1000 * kBucket;
    struct Asking : Probe {
        Asking(EventQueue &q_, Log &log_) : Probe(q_, log_), late(q_, log_), near(q_, log_), far(q_, log_) {}
        Probe late, near, far;
    } a(q, log);
    struct Start : Component {
        Start(EventQueue &q_, Asking &a_) : Component(q_, "start", wake), asking(a_) {}
        static void wake(Component &c, Tick t) {
            Asking &to = static_cast<Start &>(c).asking;
            to.late.schedule(t - 1); // as a component does that has not noticed how late it is
            to.near.schedule(t + 2 * kBucket);
            to.far.schedule(t + 255 * kBucket); // as far as the wheel reaches
        }
        Asking &asking;
    } start(q, a);
    start.schedule(kStart);
    q.run();
    EXPECT_EQ(log, (Log{{kStart - 1, a.late.number()},
                        {kStart + 2 * kBucket, a.near.number()},
                        {kStart + 255 * kBucket, a.far.number()}}));
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

// A plain list of pending ticks says what is right, for times from one tick to far beyond the wheel.
TEST(EventQueue, KeepsItsOrderOverAnyDistanceWhateverIsMovedOrTakenBack) {
    EventQueue q;
    constexpr unsigned kComponents = 70;
    std::vector<Tick> pending(kComponents, kNever);
    Rng rng(7);
    struct Mover : Component {
        Mover(EventQueue &queue, std::vector<Tick> &p, Rng &r, unsigned &l)
            : Component(queue, "mover", wake), pending(p), rng(r), left(l) {}
        Tick somewhere() { return queue().now() + static_cast<Tick>(rng.next() >> 1 >> (20 + rng.below(44))); }
        static void wake(Component &c, Tick t) {
            auto &self = static_cast<Mover &>(c);
            const auto earliest = std::min_element(self.pending.begin(), self.pending.end());
            ASSERT_EQ(*earliest, t);
            ASSERT_EQ(earliest - self.pending.begin(), self.number());
            self.pending[self.number()] = kNever;
            if (--self.left == 0) {
                self.queue().stop();
                return;
            }
            // Oneself, and one other: later, earlier or not at all.
            self.set(self.number(), self.somewhere());
            if (self.rng.below(4) == 0) {
                ASSERT_EQ(self.queue().next(), *std::min_element(self.pending.begin(), self.pending.end()));
            }
            const auto other = static_cast<unsigned>(self.rng.below(self.pending.size()));
            self.set(other, self.rng.below(8) ? self.somewhere() : kNever);
        }
        void set(unsigned i, Tick t) {
            queue().components()[i]->schedule(t);
            pending[i] = t;
        }
        std::vector<Tick> &pending;
        Rng &rng;
        unsigned &left;
    };
    unsigned left = 200'000;
    std::vector<std::unique_ptr<Mover>> movers;
    for (unsigned i = 0; i < kComponents; ++i)
        movers.push_back(std::make_unique<Mover>(q, pending, rng, left));
    movers[0]->set(0, 1);
    Tick until = 0;
    while (!q.stopped() && !testing::Test::HasFatalFailure()) {
        if (q.next() == kNever) { // all taken back
            const auto i = static_cast<unsigned>(rng.below(kComponents));
            movers[i]->set(i, movers[i]->somewhere());
        }
        until = std::max(q.now(), until) + static_cast<Tick>(rng.below(300'000'000));
        until = std::max(until, q.next() - 1000);
        q.run(until);
        ASSERT_TRUE(q.stopped() || q.next() >= until);
        ASSERT_EQ(q.next(), *std::min_element(pending.begin(), pending.end()));
    }
    EXPECT_EQ(left, 0u);
}

} // namespace
