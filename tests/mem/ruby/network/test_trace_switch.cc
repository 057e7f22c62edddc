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

/// Messages to one and to several controllers of three chips. At each of the ticks, tracing begins or ends.
Taken run(const std::vector<Tick> &switches) {
    Bench b(machine(3, line_of_routers(3), 2));
    Taken taken;
    std::vector<std::unique_ptr<Taker>> takers;
    std::vector<AbstractController *> controllers;
    for (NodeIndex n = 0; n < b.controllers.size(); ++n) {
        takers.push_back(std::make_unique<Taker>(b, n));
        takers.back()->taken = &taken;
        controllers.push_back(takers.back().get());
    }
    b.net->open_direct_ways(controllers);
    for (unsigned i = 0; i < 60; ++i) {
        b.send(i % 6, {0, 3, 5}, 1, false, ns(7) * i);
        b.send((i + 1) % 6, {(i + 4) % 6}, i % 4, i % 4 == 2, ns(7) * i + ns(1));
    }
    HopLog log;
    bool traced = false;
    for (const Tick t : switches) {
        b.queue.run(t);
        b.net->set_trace((traced = !traced) ? &log : nullptr);
    }
    b.queue.run();
    std::sort(taken.begin(), taken.end());
    return taken;
}

TEST(TraceSwitch, ArrivalsDoNotDependOnIt) {
    const Taken all = run({});
    EXPECT_EQ(all.size(), 60u * 4);
    for (unsigned k = 1; k < 400; k += 13)
        EXPECT_EQ(run({ns(k), ns(k + 3), ns(k + 29), ns(k + 40)}), all) << "from " << k << " ns on";
}

} // namespace
} // namespace moscope::ruby::bench
