// SPDX-License-Identifier: BSD-3-Clause
// Tracing that begins or ends while messages are under way: what arrives, and when, does not depend on it.
#include <gtest/gtest.h>

#include "bench.hh"
#include "mem/ruby/runtime/controller.hh"

namespace moscope::ruby::bench {
namespace {

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
    std::vector<std::tuple<unsigned, NodeIndex, Tick>> *taken = nullptr; ///< message, receiver, tick of its arrival

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
        for (unsigned v = 0; v < Bench::kVnets; ++v)
            for (MessageBuffer &b = *self.buffers_[v]; b.isReady(t);) {
                const Tick arrival = b.head_tick();
                auto *m = static_cast<TestMessage *>(b.pop(t));
                self.taken->emplace_back(m->number, self.number_, arrival);
                message_pool().free(m);
            }
        self.end_wake(self.next_head(Bench::kVnets));
    }
    NodeIndex number_;
    std::vector<MessageBuffer *> buffers_;
};

using Taken = std::vector<std::tuple<unsigned, NodeIndex, Tick>>;

struct Outcome {
    Taken taken;
    std::vector<std::array<std::int64_t, 4>> links; ///< by channel: packets, busy, wait, stall for credits
    bool operator==(const Outcome &) const = default;
};

/// Messages to one and to several controllers of three chips.
void send_pairs(Bench &b) {
    for (unsigned i = 0; i < 60; ++i) {
        b.send(i % 6, {0, 3, 5}, 1, false, ns(7) * i);
        b.send((i + 1) % 6, {(i + 4) % 6}, i % 4, i % 4 == 2, ns(7) * i + ns(1));
    }
}

/// At each of the ticks, tracing begins or ends.
template <class Send>
Outcome run(const std::vector<Tick> &switches, Send &&send,
            const NetworkParams &p = machine(3, line_of_routers(3), 2)) {
    Bench b(p);
    Outcome outcome;
    Taken &taken = outcome.taken;
    std::vector<std::unique_ptr<Taker>> takers;
    std::vector<AbstractController *> controllers;
    for (NodeIndex n = 0; n < b.controllers.size(); ++n) {
        takers.push_back(std::make_unique<Taker>(b, n));
        takers.back()->taken = &taken;
        controllers.push_back(takers.back().get());
    }
    b.net->open_direct_ways(controllers);
    send(b);
    HopLog log;
    bool traced = false;
    for (const Tick t : switches) {
        b.queue.run(t);
        b.net->set_trace((traced = !traced) ? &log : nullptr);
    }
    b.queue.run();
    std::sort(taken.begin(), taken.end());
    for (const LinkStats &l : b.net->stats().link)
        for (const LinkChannelStats &c : l.channel)
            outcome.links.push_back({static_cast<std::int64_t>(c.packets), c.busy_fs, c.wait_fs, c.credit_stall_fs});
    return outcome;
}

TEST(TraceSwitch, ArrivalsDoNotDependOnIt) {
    const Outcome all = run({}, send_pairs);
    EXPECT_EQ(all.taken.size(), 60u * 4);
    for (unsigned k = 1; k < 400; k += 13)
        EXPECT_TRUE(run({ns(k), ns(k + 3), ns(k + 29), ns(k + 40)}, send_pairs) == all) << "from " << k << " ns on";
}

// Without a trace routers decide late, and a packet that will not meet another at a busy link is granted it beforehand.
TEST(TraceSwitch, LateDecisionsAreThoseMadeInTime) {
    const NetworkParams star = machine(4, {{0, 1}, {0, 2}, {0, 3}}, 2);
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const auto send = [&](Bench &b) {
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
        };
        EXPECT_TRUE(run({}, send, star) == run({0}, send, star)) << "seed " << seed;
    }
}

} // namespace
} // namespace moscope::ruby::bench
