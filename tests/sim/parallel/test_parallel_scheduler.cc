// SPDX-License-Identifier: BSD-3-Clause
// Logical processes: components receive the same messages at the same ticks with any number of threads; stops, errors, the serial
// phase and shared work.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.hh"
#include "sim/parallel/parallel_scheduler.hh"

using namespace moscope;

namespace {

constexpr Tick kLookahead = 100;
constexpr unsigned kProcesses = 5;

/// On each wake-up, mixes the messages that are due into its hash and sends the hash to another node, `kLookahead` or more later.
struct Node : Component {
    Node(EventQueue &q, unsigned id) : Component(q, "node", wake), rng(id + 1) {}

    static void wake(Component &c, Tick now) {
        auto &n = static_cast<Node &>(c);
        std::uint64_t got = 0;
        for (; !n.inbox.empty() && n.inbox.begin()->first <= now; n.inbox.erase(n.inbox.begin()))
            got += n.inbox.begin()->second;
        n.hash = (n.hash ^ got ^ static_cast<std::uint64_t>(now)) * 0x9e3779b97f4a7c15ull;
        Node &to = *n.others[n.rng.below(n.others.size())];
        const Tick due = now + kLookahead + static_cast<Tick>(n.rng.below(300));
        if (n.throw_at && now >= n.throw_at)
            throw std::runtime_error("node of " + std::to_string(n.queue().domain()));
        if (n.stop_at && now >= n.stop_at) {
            n.stop_at = 0;
            n.queue().stop();
        }
        if (&to.queue() == &n.queue())
            to.take(n.hash, due);
        else
            n.queue().post(to.queue(),
                           {[](const ProcessMessage &p) { static_cast<Node *>(p.to)->take(p.number[0], p.due); },
                            due,
                            &to,
                            nullptr,
                            {n.hash}});
        if (n.requests)
            n.requests->request_serial_phase();
        if (n.noted)
            n.noted->push_back(n.queue().outside());
        n.schedule_no_later_than(now + 1 + static_cast<Tick>(n.rng.below(60)));
        if (!n.inbox.empty())
            n.schedule_no_later_than(n.inbox.begin()->first);
    }
    void take(std::uint64_t what, Tick due) {
        inbox.emplace(due, what);
        schedule_no_later_than(due);
    }

    Rng rng;
    std::vector<Node *> others;
    std::multimap<Tick, std::uint64_t> inbox; ///< by due tick
    std::uint64_t hash = 0;
    Tick throw_at = 0, stop_at = 0;
    ParallelScheduler *requests = nullptr;
    std::vector<Tick> *noted = nullptr; ///< ends of the epochs in which it woke
};

struct Ring {
    explicit Ring(unsigned threads) {
        std::vector<EventQueue *> all;
        for (auto &q : queues)
            all.push_back(&q);
        step = std::make_unique<ParallelScheduler>(all, kLookahead, threads);
        for (unsigned i = 0; i < 3 * kProcesses; ++i)
            nodes.push_back(std::make_unique<Node>(queues[i % kProcesses], i));
        for (auto &n : nodes) {
            for (auto &o : nodes)
                n->others.push_back(o.get());
            n->schedule(static_cast<Tick>(n->rng.below(50)));
        }
    }
    std::vector<std::uint64_t> hashes() const {
        std::vector<std::uint64_t> h;
        for (const auto &n : nodes)
            h.push_back(n->hash);
        return h;
    }

    std::array<EventQueue, kProcesses> queues;
    std::vector<std::unique_ptr<Node>> nodes;
    std::unique_ptr<ParallelScheduler> step;
};

TEST(ParallelScheduler, TheNumberOfThreadsChangesNothing) {
    Ring one(1);
    one.step->run(40'000);
    EXPECT_GT(one.step->events(), 3 * kProcesses * 500u);
    EXPECT_EQ(one.step->next() >= 40'000, true);
    for (const unsigned threads : {2u, 3u, kProcesses, 40u}) {
        Ring many(threads);
        for (Tick t = 700; t < 40'000; t += 700) // in pieces, which change nothing either
            many.step->run(t);
        many.step->run(40'000);
        EXPECT_EQ(many.hashes(), one.hashes()) << threads;
        EXPECT_EQ(many.step->now(), one.step->now());
    }
}

TEST(ParallelScheduler, AnIdleThreadTakesAProcessThatNoThreadHasBegun) {
    // One thread owns two processes. The first keeps it busy until another thread has run the second.
    std::array<EventQueue, 3> queues;
    ParallelScheduler step({&queues[0], &queues[1], &queues[2]}, kLookahead, 2); // one thread owns 0 and 2
    struct Slow : Component {
        Slow(EventQueue &q, std::atomic<bool> &ran)
            : Component(q, "slow",
                        [](Component &c, Tick) {
                            auto &s = static_cast<Slow &>(c);
                            for (unsigned polls = 0; !s.ran && polls < 10'000'000;
                                 ++polls) // the host may have one processor
                                std::this_thread::yield();
                        }),
              ran(ran) {}
        std::atomic<bool> &ran;
    };
    std::atomic<bool> ran = false;
    struct Quick : Component {
        Quick(EventQueue &q, std::atomic<bool> &ran)
            : Component(q, "quick", [](Component &c, Tick) { static_cast<Quick &>(c).ran = true; }), ran(ran) {}
        std::atomic<bool> &ran;
    };
    std::vector<std::pair<unsigned, unsigned>> taken;
    step.on_migrate = [&](unsigned process, unsigned thread) { taken.emplace_back(process, thread); };
    Slow slow(queues[0], ran);
    Quick quick(queues[2], ran);
    slow.schedule(10);
    quick.schedule(10);
    step.run(kLookahead);
    EXPECT_TRUE(ran);
    EXPECT_NE(std::find(taken.begin(), taken.end(), std::pair(2u, 1u)), taken.end()) << "and says so first";
}

TEST(ParallelScheduler, AStopEndsTheEpochForAllProcessesAndTheRunCanContinue) {
    Ring one(1), two(2);
    for (Ring *r : {&one, &two}) {
        r->nodes[7]->stop_at = 10'000;
        r->step->run(40'000);
        EXPECT_TRUE(r->step->stopped());
        EXPECT_GE(r->step->now(), 10'000);
        EXPECT_LT(r->step->now(), 10'000 + 2 * kLookahead);
    }
    EXPECT_EQ(one.hashes(), two.hashes());
    for (Ring *r : {&one, &two}) {
        r->step->run(40'000);
        EXPECT_FALSE(r->step->stopped());
    }
    EXPECT_EQ(one.hashes(), two.hashes());
}

TEST(ParallelScheduler, AnExceptionOfAComponentReachesTheCallerFromAnyThread) {
    for (const unsigned thrower : {0u, kProcesses - 1})
        for (const unsigned threads : {1u, 2u, 4u}) {
            Ring r(threads);
            r.nodes[thrower]->throw_at = 5'000;
            EXPECT_THROW(r.step->run(40'000), std::runtime_error);
        }
}

TEST(ParallelScheduler, TheSerialProcessRunsAfterEpochsInWhichItHasEvents) {
    struct Clock : Component {
        explicit Clock(EventQueue &q) : Component(q, "clock", wake) {}
        static void wake(Component &c, Tick now) {
            static_cast<Clock &>(c).rang.push_back(now);
            c.schedule(now + 1'234);
        }
        std::vector<Tick> rang;
    };
    for (const unsigned threads : {1u, 3u}) {
        Ring r(threads);
        EventQueue serial;
        Clock clock(serial);
        clock.schedule(5);
        unsigned phases = 0;
        r.step->serial_queue = &serial;
        r.step->serial_phase = [&](Tick end) {
            ++phases;
            EXPECT_EQ(end, r.step->epoch_end());
            for (const EventQueue &q : r.queues) {
                EXPECT_LT(q.now(), end);
                EXPECT_GE(q.next(), end);
            }
            serial.run(end);
        };
        r.step->run(10'000);
        ASSERT_EQ(clock.rang.size(), 9u); // 5, 1239, .. 9877
        EXPECT_EQ(clock.rang.back(), 5 + 8 * 1'234);
        EXPECT_EQ(phases, 9u);
    }
}

TEST(ParallelScheduler, ExceptionsOfTheSerialPhaseAndOfMessagesReachTheCaller) {
    for (const unsigned threads : {1u, 2u, 4u}) {
        Ring r(threads);
        r.step->serial_phase = [](Tick) { throw std::runtime_error("serial phase"); };
        r.step->request_serial_phase();
        EXPECT_THROW(r.step->run(40'000), std::runtime_error);
        Ring bad(threads);
        bad.nodes[0]->queue().send_on(0);
        bad.nodes[0]->queue().post(
            bad.queues[kProcesses - 1],
            {[](const ProcessMessage &) { throw std::runtime_error("delivered"); }, 1, nullptr, nullptr, {}});
        EXPECT_THROW(bad.step->run(40'000), std::runtime_error);
    }
}

TEST(ParallelScheduler, EachPartOfSharedWorkIsDoneOnceBeforeTheNextEpoch) {
    std::vector<std::uint64_t> hashes[3];
    for (const unsigned threads : {1u, 2u, 4u}) {
        Ring r(threads);
        r.nodes[0]->requests = r.step.get();
        std::array<std::uint64_t, 3> done{};
        std::uint64_t phases = 0;
        r.step->serial_phase = [&](Tick) {
            for (const std::uint64_t n : done)
                EXPECT_EQ(n, phases) << "each part of the previous phase";
            if (++phases % 2) // not every phase has shared work
                r.step->share_work(3, [&](unsigned part) { ++done[part]; });
            else
                for (std::uint64_t &n : done)
                    ++n;
        };
        r.step->run(20'000);
        EXPECT_GT(phases, 50u);
        EXPECT_EQ(done[2], phases);
        for (auto &n : r.nodes)
            hashes[threads / 2].push_back(n->hash);
    }
    EXPECT_EQ(hashes[0], hashes[1]);
    EXPECT_EQ(hashes[0], hashes[2]);
}

TEST(ParallelScheduler, AnExceptionOfSharedWorkReachesTheCaller) {
    for (const unsigned threads : {1u, 2u}) {
        Ring r(threads);
        r.nodes[0]->requests = r.step.get();
        EventQueue serial; // an event is always due there
        Component due(serial, "due", [](Component &c, Tick now) { c.schedule(now + 1'000); });
        due.schedule(1);
        r.step->serial_queue = &serial;
        unsigned phases = 0;
        r.step->serial_phase = [&](Tick end) {
            serial.run(end);
            ++phases;
            r.step->share_work(2, [](unsigned part) {
                if (part == 1)
                    throw std::runtime_error("shared");
            });
        };
        EXPECT_THROW(r.step->run(20'000), std::runtime_error);
        EXPECT_EQ(phases, 1u) << "the run has ended";
    }
}

TEST(ParallelScheduler, ASerialPhaseWithoutWorkChangesNoEpoch) {
    std::vector<Tick> ends[2];
    for (const bool requests : {false, true}) {
        Ring r(2);
        r.step->serial_phase = [](Tick) {};
        r.nodes[0]->others = {r.nodes[1].get()}; // of another process
        for (auto &n : r.nodes)
            n->requests = requests ? r.step.get() : nullptr;
        r.nodes[1]->noted = &ends[requests];
        r.step->run(20'000);
    }
    EXPECT_EQ(ends[0], ends[1]);
}

TEST(ParallelScheduler, ARecordHasTheTimeOfEachPartOfEachEpochAndChangesNothing) {
    Ring plain(1), recorded(1);
    recorded.step->record_epochs();
    for (Ring *r : {&plain, &recorded}) {
        r->step->serial_phase = [r](Tick) { r->step->share_work(2, [](unsigned) {}); };
        r->nodes.front()->requests = r->step.get();
        r->step->run(10'000);
    }
    EXPECT_EQ(recorded.hashes(), plain.hashes());
    EXPECT_EQ(plain.step->epoch_record(), nullptr);
    const EpochRecord &record = *recorded.step->epoch_record();
    ASSERT_EQ(record.columns(), kProcesses + 3);
    ASSERT_EQ(record.rows().size() % record.columns(), 0u);
    EXPECT_GE(record.rows().size() / record.columns(), 10'000u / kLookahead);
    std::vector<std::uint64_t> sums(record.columns());
    for (std::size_t i = 0; i < record.rows().size(); ++i)
        sums[i % record.columns()] += record.rows()[i];
    for (const std::uint64_t sum : sums)
        EXPECT_GT(sum, 0u);
    EXPECT_LE(sums[record.shared_part()], sums[record.shared()]);
}

TEST(ParallelScheduler, ARunWithoutEventsEndsAtOnce) {
    Ring r(2);
    for (auto &n : r.nodes)
        n->schedule(kNever);
    r.step->run(kNever);
    EXPECT_EQ(r.step->events(), 0u);
    EXPECT_EQ(r.step->next(), kNever);
}

} // namespace
