// SPDX-License-Identifier: BSD-3-Clause
// Streams of accesses against a memory that answers after a fixed time: how many are in flight, in which order, and
// what is counted. Sequences of lines by themselves.
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/traffic/access_stream.hh"

using namespace moscope;

namespace {

constexpr Tick kLatency = 1000;

/// Answers every access kLatency after its issue, and notes how many were open.
struct FixedMemory : Component {
    explicit FixedMemory(EventQueue &queue) : Component(queue, "memory", wake) {
        port.memory_ = this;
        port.issue_ = [](void *self, Access &a) { static_cast<FixedMemory *>(self)->take(a); };
    }
    void take(Access &a) {
        open.insert({a.issued + kLatency, &a});
        most = std::max(most, open.size());
        issued.push_back(a.addr.value);
        schedule_no_later_than(a.issued + kLatency);
    }
    static void wake(Component &c, Tick now) {
        auto &self = static_cast<FixedMemory &>(c);
        while (!self.open.empty() && self.open.begin()->first <= now) {
            Access &a = *self.open.begin()->second;
            self.open.erase(self.open.begin());
            a.done = now;
            a.path = {};
            a.path.in[static_cast<unsigned>(Segment::dram)] = now - a.issued;
            a.hops = 2;
            a.on_done(a);
        }
        if (!self.open.empty())
            self.schedule_no_later_than(self.open.begin()->first);
    }
    Port port;
    std::multimap<Tick, Access *> open;
    std::size_t most = 0;
    std::vector<Addr> issued;
};

LineSequence lines(std::uint64_t n, LineSequence::Order order = LineSequence::Order::ascending) {
    return LineSequence({{0, n * kLineBytes}}, order, 7);
}

/// A stream of loads with `most` in flight.
struct Loads {
    explicit Loads(unsigned most) : stream(queue, "stream", memory.port, lines(64), most, AccessKind::load) {}
    EventQueue queue;
    FixedMemory memory{queue};
    AccessStream stream;
};

} // namespace

TEST(AccessStream, OneInFlightIsAChainOfDependentLoads) {
    Loads loads(1);
    auto &[queue, memory, stream] = loads;
    stream.start(500, 10);
    queue.run();
    EXPECT_TRUE(stream.idle());
    EXPECT_EQ(queue.now(), 500 + 10 * kLatency);
    EXPECT_EQ(memory.most, 1u);
    EXPECT_EQ(stream.counts().done, 10u);
    EXPECT_EQ(stream.counts().latency, 10 * kLatency);
    EXPECT_EQ(stream.counts().path.total(), stream.counts().latency);
    EXPECT_EQ(stream.counts().by_hops[2], 10u);
}

TEST(AccessStream, KeepsExactlyItsNumberInFlight) {
    Loads loads(8);
    auto &[queue, memory, stream] = loads;
    stream.start(0, 80);
    queue.run();
    EXPECT_EQ(memory.most, 8u);
    EXPECT_EQ(queue.now(), 80 / 8 * kLatency);
}

TEST(AccessStream, StoppingLetsWhatIsInFlightComplete) {
    Loads loads(4);
    auto &[queue, memory, stream] = loads;
    stream.start(0, AccessStream::kForever);
    queue.run(5 * kLatency + 1);
    EXPECT_FALSE(stream.idle());
    stream.stop();
    queue.run();
    EXPECT_TRUE(stream.idle());
    EXPECT_EQ(stream.counts().done, memory.issued.size());
}

TEST(AccessStream, CountsFromTheLastResetAndNotesNoMoreThanAsked) {
    Loads loads(2);
    auto &[queue, memory, stream] = loads;
    stream.start(0, 10);
    queue.run();
    stream.reset_counts(3);
    stream.start(queue.now(), 10);
    queue.run();
    EXPECT_EQ(stream.counts().done, 10u);
    ASSERT_EQ(stream.log().size(), 3u);
    EXPECT_EQ(stream.log()[0].done - stream.log()[0].issued, kLatency);
}

TEST(AccessStream, ALaterStartGoesOnWhereTheWalkStopped) {
    Loads loads(1);
    auto &[queue, memory, stream] = loads;
    stream.start(0, 3);
    queue.run();
    stream.start(queue.now(), 1);
    queue.run();
    EXPECT_EQ(memory.issued, (std::vector<Addr>{0, 64, 128, 192}));
}

TEST(LineSequence, TakesItsRangesInTurnAndGoesRound) {
    LineSequence s({{0, 128}, {4096, 128}}, LineSequence::Order::ascending, 1);
    std::vector<Addr> seen;
    for (int i = 0; i < 5; ++i)
        seen.push_back(s.next());
    EXPECT_EQ(seen, (std::vector<Addr>{0, 4096, 64, 4160, 0}));
}

TEST(LineSequence, ShuffledVisitsEveryLineOncePerRound) {
    LineSequence s = lines(100, LineSequence::Order::shuffled);
    std::set<Addr> first, second;
    std::vector<Addr> order;
    for (int i = 0; i < 100; ++i)
        first.insert(order.emplace_back(s.next()));
    for (int i = 0; i < 100; ++i) {
        const Addr a = s.next();
        second.insert(a);
        EXPECT_EQ(a, order[static_cast<std::size_t>(i)]);
    }
    EXPECT_EQ(first.size(), 100u);
    EXPECT_EQ(second, first);
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST(LineSequence, PagesComeInRandomOrderAndTheLinesOfAPageInAscendingOrder) {
    constexpr unsigned kPages = 10, kLines = 64, kRest = 3;
    const std::uint64_t bytes = kPages * 4096 + kRest * kLineBytes;
    LineSequence s({{1 << 20, bytes}, {1 << 24, bytes}}, LineSequence::Order::pages, 5);
    std::vector<Addr> pages[2];
    std::set<Addr> seen;
    for (unsigned i = 0; i < kPages * kLines + kRest; ++i)
        for (unsigned r = 0; r < 2; ++r) {
            const Addr a = s.next() - (r ? 1 << 24 : 1 << 20);
            ASSERT_LT(a, bytes);
            EXPECT_EQ(a % 4096, i % kLines * kLineBytes);
            if (a % 4096 == 0)
                pages[r].push_back(a / 4096);
            seen.insert(a + r);
        }
    EXPECT_EQ(seen.size(), 2 * (kPages * kLines + kRest)) << "every line once per round";
    EXPECT_FALSE(std::is_sorted(pages[0].begin(), pages[0].end()));
    EXPECT_NE(pages[0], pages[1]);
    EXPECT_EQ(pages[0].back(), kPages) << "what is no whole page stays behind the others";
}

TEST(LineSequence, RandomStaysInItsRanges) {
    LineSequence s({{1 << 20, 640}, {1 << 22, 640}}, LineSequence::Order::random, 3);
    std::set<Addr> seen;
    for (int i = 0; i < 1000; ++i)
        seen.insert(s.next());
    EXPECT_EQ(seen.size(), 20u);
    for (const Addr a : seen)
        EXPECT_TRUE((a >= (1 << 20) && a < (1 << 20) + 640) || (a >= (1 << 22) && a < (1 << 22) + 640));
}

TEST(LineSequence, StepAndSkipLeaveLinesOut) {
    LineSequence s({{0, 1024}}, LineSequence::Order::ascending, 1, 256);
    EXPECT_EQ(s.lines(), 4u);
    s.skip(6);
    EXPECT_EQ(s.next(), 512u);
    EXPECT_EQ(s.next(), 768u);
    EXPECT_EQ(s.next(), 0u);
}
