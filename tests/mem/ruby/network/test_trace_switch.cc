// SPDX-License-Identifier: BSD-3-Clause
// Tracing that begins or ends while messages are under way: what arrives, and when, does not depend on it.
#include <gtest/gtest.h>

#include "bench.hh"
#include "mem/ruby/runtime/controller.hh"

namespace moscope::ruby::bench {
namespace {

/// A message that has arrived.
struct Taken {
    unsigned number;
    NodeIndex to;
    Tick sent, arrival;
    std::array<Tick, kSegments> path; ///< its latency, by segment
    auto operator<=>(const Taken &) const = default;
};

/// A controller that takes out what is due whenever it wakes.
class Taker final : public AbstractController {
  public:
    Taker(Bench &b, NodeIndex number)
        : AbstractController(b.queue, "taker", wake_entry, Clock{500'000, 1}), number_(number) {
        node = number;
        for (unsigned v = 0; v < Bench::kVnets; ++v) {
            buffers_.push_back(&b.from[number * Bench::kVnets + v]);
            buffers_.back()->consumer = this;
            reads(*buffers_.back(), v);
        }
    }
    std::vector<Taken> *taken = nullptr;
    unsigned wakes = 0;

    std::vector<BufferPort> buffers() override { return {}; }
    bool set_cache(std::string_view, CacheMemory *) override { return false; }
    bool set_directory(std::string_view, DirectoryMemory *) override { return false; }
    bool set_sequencer(std::string_view, Sequencer *) override { return false; }
    bool set_dma_sequencer(std::string_view, DMASequencer *) override { return false; }
    bool set_value(std::string_view, std::int64_t) override { return false; }
    void init() override {}
    AccessPermission permission(Addr) override { return AccessPermission_NotPresent; }
    unsigned state_of(Addr) override { return 0; }
    void functional_read(Addr, Packet &) override {}
    unsigned tbes_in_use() const override { return 0; }
    void view(Addr, LineView &) override {}
    void for_each_entry(void *, void (*)(void *, const AbstractCacheEntry &)) override {}
    bool probe_hit(Addr, RubyRequestType, RubyRequestType, HitInfo &) override { return false; }

  private:
    static void wake_entry(Component &c, Tick t) {
        auto &self = static_cast<Taker &>(static_cast<AbstractController &>(c));
        self.begin_wake(t);
        ++self.wakes;
        for (unsigned v = 0; v < Bench::kVnets; ++v)
            for (MessageBuffer &b = *self.buffers_[v]; b.isReady(t);) {
                const Tick arrival = b.head_tick();
                auto *m = static_cast<TestMessage *>(b.pop(t));
                EXPECT_EQ(m->path.total(), t - m->sent);
                self.taken->push_back({m->number, self.number_, m->sent, arrival, m->path.in});
                message_pool().free(m);
            }
        self.end_wake(self.next_head(Bench::kVnets));
    }
    NodeIndex number_;
    std::vector<MessageBuffer *> buffers_;
};

struct Outcome {
    std::vector<Taken> taken;
    std::vector<std::array<std::int64_t, 4>> links;    ///< by channel: packets, busy, wait, stall for credits
    std::vector<std::array<std::int64_t, 3>> channels; ///< deliveries, latency, queueing
    bool operator==(const Outcome &) const = default;
};

/// Messages to one and to several controllers of three chips.
void send_pairs(Bench &b) {
    for (unsigned i = 0; i < 60; ++i) {
        b.send(i % 6, {0, 3, 5}, 1, false, ns(7) * i);
        b.send((i + 1) % 6, {(i + 4) % 6}, i % 4, i % 4 == 2, ns(7) * i + ns(1));
    }
}

NetworkParams star_of_routers() { return machine(4, {{0, 1}, {0, 2}, {0, 3}}, 2); }

/// 1500 messages to one and to several controllers of the star. The lower the seed, the higher the load.
void send_at_random(Bench &b, std::uint64_t seed) {
    Rng rng(seed);
    Tick at = 0;
    for (unsigned i = 0; i < 1500; ++i) {
        at += static_cast<Tick>(rng.below(static_cast<std::uint64_t>(ns(2 + static_cast<Tick>(seed)))));
        const auto from = static_cast<unsigned>(rng.below(8)), vnet = static_cast<unsigned>(rng.below(4));
        if (rng.below(8) == 0)
            b.send(from, {0, 3, 5, 6}, 1, false, at);
        else
            b.send(from, {static_cast<unsigned>(from + 1 + rng.below(7)) % 8}, vnet, vnet % 2 == 0, at);
    }
}

/// The deliveries that were traced: message, receiver, arrival.
struct DeliveryLog : HopLog {
    unsigned wakes = 0; ///< of all controllers
    std::vector<std::tuple<unsigned, NodeIndex, Tick>> traced;
    Tick delivered(const Message &m, NodeIndex to, Tick arrival) override {
        traced.emplace_back(static_cast<const TestMessage &>(m).number, to, arrival);
        return 0;
    }
    /// Message, routers, and ticks, of those that left a router from this tick on.
    auto hops_from(Tick t) const {
        std::vector<std::tuple<unsigned, unsigned, unsigned, Tick, Tick>> of;
        for (const Hop &h : hops)
            if (h.depart >= t)
                of.emplace_back(h.number, h.from, h.to, h.depart, h.arrive);
        std::sort(of.begin(), of.end());
        return of;
    }
};

/// At each of the ticks, tracing into the log begins or ends. `ordered`: the virtual networks that keep order.
template <class Send>
Outcome run(const std::vector<Tick> &switches, Send &&send, DeliveryLog &log,
            const NetworkParams &p = machine(3, line_of_routers(3), 2), const std::vector<unsigned> &ordered = {}) {
    Bench b(p, 0, ordered);
    Outcome outcome;
    std::vector<Taken> &taken = outcome.taken;
    std::vector<std::unique_ptr<Taker>> takers;
    std::vector<AbstractController *> controllers;
    for (NodeIndex n = 0; n < b.controllers.size(); ++n) {
        takers.push_back(std::make_unique<Taker>(b, n));
        takers.back()->taken = &taken;
        controllers.push_back(takers.back().get());
    }
    b.net->open_direct_ways(controllers);
    send(b);
    bool traced = false;
    for (const Tick t : switches) {
        b.queue.run(t);
        b.net->set_trace((traced = !traced) ? &log : nullptr);
    }
    b.queue.run();
    for (const auto &t : takers)
        log.wakes += t->wakes;
    std::sort(taken.begin(), taken.end());
    const NetworkStats stats = b.net->stats();
    for (const ChannelStats &c : stats.channel)
        outcome.channels.push_back({static_cast<std::int64_t>(c.delivered), c.latency, c.queueing});
    for (const LinkStats &l : stats.link)
        for (const LinkChannelStats &c : l.channel)
            outcome.links.push_back({static_cast<std::int64_t>(c.packets), c.busy_fs, c.wait_fs, c.credit_stall_fs});
    return outcome;
}

template <class Send, class... Machine>
Outcome run(const std::vector<Tick> &switches, Send &&send, const Machine &...machine) {
    DeliveryLog log;
    return run(switches, send, log, machine...);
}

TEST(TraceSwitch, ArrivalsDoNotDependOnIt) {
    const Outcome all = run({}, send_pairs);
    EXPECT_EQ(all.taken.size(), 60u * 4);
    for (unsigned k = 1; k < 400; k += 13)
        EXPECT_TRUE(run({ns(k), ns(k + 3), ns(k + 29), ns(k + 40)}, send_pairs) == all) << "from " << k << " ns on";
}

// Without a trace routers decide late, and a packet that will not meet another at a busy link is granted it beforehand.
TEST(TraceSwitch, LateDecisionsEqualThoseMadeInTime) {
    const NetworkParams star = star_of_routers();
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const auto send = [&](Bench &b) { send_at_random(b, seed); };
        EXPECT_TRUE(run({}, send, star) == run({0}, send, star)) << "seed " << seed;
    }
}

struct TraceSwitchWithRandomDelays : testing::TestWithParam<unsigned> { ///< longest delay, ns
    NetworkParams delayed(std::uint64_t seed, NetworkParams p = machine(3, line_of_routers(3), 2)) const {
        p.jitter = ns(GetParam());
        p.seed = seed;
        return p;
    }
};

TEST_P(TraceSwitchWithRandomDelays, ArrivalsDoNotDependOnIt) {
    for (const std::vector<unsigned> &ordered : {std::vector<unsigned>{}, std::vector<unsigned>{0, 1}}) {
        const NetworkParams p = delayed(5);
        const Outcome all = run({}, send_pairs, p, ordered);
        EXPECT_EQ(all.taken.size(), 60u * 4);
        EXPECT_FALSE(all == run({}, send_pairs)) << "nothing was delayed";
        for (unsigned k = 1; k < 400; k += 13)
            EXPECT_TRUE(run({ns(k), ns(k + 3), ns(k + 29), ns(k + 40)}, send_pairs, p, ordered) == all)
                << "from " << k << " ns on, " << ordered.size() << " ordered virtual networks";
    }
}

TEST_P(TraceSwitchWithRandomDelays, ArrivalsUnderLoadDoNotDependOnIt) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const auto send = [&](Bench &b) { send_at_random(b, seed); };
        const NetworkParams p = delayed(seed, star_of_routers());
        const Outcome all = run({}, send, p);
        std::vector<Tick> switches;
        Rng rng(seed + 100);
        for (Tick t = 0; t < all.taken.back().sent;
             t += ns(1) + static_cast<Tick>(rng.below(static_cast<std::uint64_t>(ns(200)))))
            switches.push_back(t);
        EXPECT_TRUE(run(switches, send, p) == all) << "seed " << seed;
        EXPECT_TRUE(run({switches[switches.size() / 2]}, send, p) == all) << "seed " << seed << ", traced to the end";
    }
}

TEST_P(TraceSwitchWithRandomDelays, AReceiverWakesWhenTheDelayIsOver) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        DeliveryLog log;
        const Outcome all = run(
            {}, [&](Bench &b) { send_at_random(b, seed); }, log, delayed(seed, star_of_routers()));
        EXPECT_LT(log.wakes, all.taken.size() + all.taken.size() / 10) << "seed " << seed;
    }
}

TEST_P(TraceSwitchWithRandomDelays, EachLaterHopAndDeliveryIsTracedOnce) {
    for (unsigned k = 0; k < 400; k += 7) {
        SCOPED_TRACE("from " + std::to_string(k) + " ns on");
        const NetworkParams p = delayed(k);
        DeliveryLog log, from_the_beginning;
        const Outcome all = run({ns(k)}, send_pairs, log, p);
        run({0}, send_pairs, from_the_beginning, p);
        EXPECT_GT(from_the_beginning.hops.size(), 60u);
        // A packet leaves the router one router latency after the decision.
        const Tick decided = ns(k) + p.router_latency;
        EXPECT_TRUE(log.hops_from(decided) == from_the_beginning.hops_from(decided));
        std::sort(log.traced.begin(), log.traced.end());
        EXPECT_TRUE(std::adjacent_find(log.traced.begin(), log.traced.end()) == log.traced.end()) << "traced twice";
        std::size_t late = 0;
        for (const Taken &t : all.taken) {
            const bool traced =
                std::binary_search(log.traced.begin(), log.traced.end(), std::tuple(t.number, t.to, t.arrival));
            // A port grants a message after it was sent, and at most a router latency and the longest delay before it
            // arrives.
            const bool later = t.sent >= ns(k) || t.arrival >= ns(k) + p.router_latency + p.jitter;
            EXPECT_TRUE(traced || !later) << "message " << t.number << " to " << t.to << " at " << t.arrival;
            late += traced;
        }
        EXPECT_EQ(late, log.traced.size()) << "traced with another arrival";
    }
}

INSTANTIATE_TEST_SUITE_P(Longest, TraceSwitchWithRandomDelays, testing::Values(1u, 20u, 300u));

} // namespace
} // namespace moscope::ruby::bench
