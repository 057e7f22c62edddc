// SPDX-License-Identifier: BSD-3-Clause
// Buffers and credits, independence of the channels, fairness, and freedom from loss and deadlock.
#include <gtest/gtest.h>

#include <set>

#include "bench.hh"

namespace moscope::ruby::bench {
namespace {

/// Most packets at once between their departure and the return of their credit: an upper bound on buffers in
/// use is kept if a packet's departure is never earlier than the credit of the one `buffers` before it.
void expect_within_credits(const std::vector<HopLog::Hop> &hops, unsigned buffers, Tick flight) {
    for (std::size_t i = buffers; i < hops.size(); ++i)
        EXPECT_GE(hops[i].depart, hops[i - buffers].arrive + flight);
}

TEST(Credits, BoundThePacketsOfAChannelOnALink) {
    for (unsigned credits : {1u, 2u, 4u}) {
        auto p = machine(2, line_of_routers(2));
        p.channels[0].commands = credits;
        Bench b(p);
        HopLog log;
        b.net->set_trace(&log);
        for (unsigned i = 0; i < 40; ++i)
            b.send(0, {1}, 0, false, 0);
        EXPECT_EQ(b.run().size(), 40u);
        ASSERT_EQ(log.hops.size(), 40u);
        expect_within_credits(log.hops, credits, ns(10));
        // And no stricter than that: one buffer goes round in serialization and two flights.
        EXPECT_EQ(log.hops[credits].depart - log.hops[0].depart, ns(2) + 2 * ns(10));
    }
}

/// Hops of `n` packets of a channel that are sent at once from router 0 to router 1; all arrive.
auto hops_of(const NetworkParams &p, unsigned n, unsigned vnet, bool data) {
    Bench b(p);
    HopLog log;
    b.net->set_trace(&log);
    for (unsigned i = 0; i < n; ++i)
        b.send(0, {1}, vnet, data, 0);
    EXPECT_EQ(b.run().size(), n);
    return log.hops;
}

TEST(Credits, ComeBackAfterTheirOwnLatencyWhereOneIsGiven) {
    auto p = machine(2, line_of_routers(2));
    p.channels[0].commands = 1;
    p.links[0].credit_latency_fs = ns(3);
    const auto hops = hops_of(p, 3, 0, false);
    EXPECT_EQ(hops[1].depart - hops[0].depart, ns(2) + ns(10) + ns(3));
    EXPECT_EQ(hops[2].depart - hops[1].depart, ns(2) + ns(10) + ns(3));
}

TEST(Credits, ADataPacketNeedsACommandBufferAndADataBuffer) {
    auto p = machine(2, line_of_routers(2));
    for (const auto &[commands, data] : {std::pair(9u, 1u), std::pair(1u, 9u)}) {
        p.channels[2].commands = commands;
        p.channels[2].data = data;
        expect_within_credits(hops_of(p, 10, 2, true), 1, ns(10));
    }
}

// The second link is slow; what waits for it fills the buffers behind the first, and so on to the source.
TEST(Credits, AFullBufferHoldsBackTheLinkBeforeIt) {
    auto p = machine(3, line_of_routers(3));
    p.links[1].clock_hz = 10'000'000; // 1800 ns per data packet
    Bench b(p);
    HopLog log;
    b.net->set_trace(&log);
    for (unsigned i = 0; i < 10; ++i)
        b.send(0, {2}, 2, true, 0);
    b.run(ns(1700));
    // Granted to the slow link: one. Waiting behind the first link: two, its data buffers.
    EXPECT_EQ(std::count_if(log.hops.begin(), log.hops.end(), [](const auto &h) { return h.to == 2; }), 1);
    EXPECT_EQ(std::count_if(log.hops.begin(), log.hops.end(), [](const auto &h) { return h.to == 1; }), 3);
    EXPECT_EQ(b.run().size(), 10u);
}

TEST(Channels, ABlockedResponseChannelDoesNotBlockProbes) {
    auto p = machine(3, line_of_routers(3));
    p.links[1].clock_hz = 10'000'000;
    Bench b(p);
    for (unsigned i = 0; i < 20; ++i)
        b.send(0, {2}, 2, true, 0); // responses pile up before the slow link
    b.send(0, {1}, 3, false, ns(500));
    b.send(0, {1}, 0, false, ns(600));
    for (const auto &a : b.run())
        if (a.vnet != 2) {
            EXPECT_EQ(a.at - a.sent, ns(1) + ns(2) + ns(10) + ns(1)) << "as on an idle network";
        }
}

/// Two routers and one buffer of each kind per channel.
NetworkParams pair_with_one_buffer_each() {
    auto p = machine(2, line_of_routers(2));
    for (auto &c : p.channels)
        c.commands = c.data = 1;
    return p;
}

/// How many of `n` packets of a channel, sent at once, leave before the first buffer can have come back.
std::ptrdiff_t leave_at_once(const NetworkParams &p, unsigned n, unsigned vnet, bool data) {
    const auto hops = hops_of(p, n, vnet, data);
    const Tick back = hops[0].arrive + ns(10);
    return std::count_if(hops.begin(), hops.end(), [&](const auto &h) { return h.depart < back; });
}

TEST(FreeList, AddsToTheBuffersOfAnyChannel) {
    auto p = pair_with_one_buffer_each();
    p.free_commands = 3;
    for (unsigned vnet = 0; vnet < 4; ++vnet)
        EXPECT_EQ(leave_at_once(p, 20, vnet, false), 4);
    p.links[0].latency_fs = ns(200); // otherwise a data packet takes longer to send than a buffer takes to come back
    EXPECT_EQ(leave_at_once(p, 20, 2, true), 1) << "a free command buffer is not one for data";
    p.free_data = 2;
    EXPECT_EQ(leave_at_once(p, 20, 2, true), 3);
}

TEST(FreeList, LeavesEveryChannelABufferOfItsOwnAndIsReusedByAnother) {
    auto p = pair_with_one_buffer_each();
    p.free_commands = 2;
    Bench b(p);
    HopLog log;
    b.net->set_trace(&log);
    for (unsigned i = 0; i < 30; ++i)
        b.send(0, {1}, 2, false, 0);
    b.send(0, {1}, 3, false, ns(7)); // its channel's own buffer is free, whatever the responses hold
    for (unsigned i = 0; i < 30; ++i)
        b.send(0, {1}, 0, false, ns(2000));
    for (const auto &a : b.run())
        if (a.vnet == 3) {
            EXPECT_LE(a.at - a.sent, ns(1) + 2 * ns(2) + ns(10) + ns(1));
        }
    ASSERT_EQ(log.hops.size(), 61u);
    // Three buffers for either channel, so the free ones came back from the responses; never more than three.
    for (unsigned vnet : {2u, 0u}) {
        std::vector<HopLog::Hop> of_channel;
        std::copy_if(log.hops.begin(), log.hops.end(), std::back_inserter(of_channel),
                     [&](const auto &h) { return h.vnet == vnet; });
        expect_within_credits(of_channel, 3, ns(10));
        EXPECT_EQ(of_channel[6].depart - of_channel[3].depart, ns(2) + 2 * ns(10));
    }
}

TEST(Credits, ALinkOfSeveralSublinksHasTheBuffersOfEach) {
    auto p = pair_with_one_buffer_each();
    p.free_commands = 1;
    for (unsigned sets : {1u, 2u, 3u}) {
        p.links[0].credit_sets = sets;
        EXPECT_EQ(leave_at_once(p, 20, 0, false), 2 * sets);
    }
}

TEST(Channels, TakeTurnsOnABusyLink) {
    auto p = machine(2, line_of_routers(2));
    for (auto &c : p.channels)
        c.commands = c.data = 64;
    Bench b(p);
    HopLog log;
    b.net->set_trace(&log);
    for (unsigned i = 0; i < 50; ++i)
        for (unsigned v = 0; v < 4; ++v)
            b.send(0, {1}, v, true, 0);
    b.run();
    for (std::size_t i = 8; i + 4 <= log.hops.size(); i += 4) {
        std::set<unsigned> seen;
        for (std::size_t k = i; k < i + 4; ++k)
            seen.insert(log.hops[k].vnet);
        EXPECT_EQ(seen.size(), 4u);
    }
}

// Routers 0 and 1 both send to 3 over the link 2->3, and so does 2 itself.
TEST(Fairness, InputsOfARouterShareAnOutputEvenly) {
    Edges star = {{0, 2}, {1, 2}, {2, 3}};
    auto p = machine(4, star);
    for (auto &c : p.channels)
        c.commands = c.data = 16;
    Bench b(p);
    constexpr unsigned kEach = 200;
    for (unsigned i = 0; i < kEach; ++i)
        for (unsigned s : {0u, 1u, 2u})
            b.send(s, {3}, 2, true, 0);
    auto got = b.run();
    std::sort(got.begin(), got.end(), [](const auto &x, const auto &y) { return x.at < y.at; });
    std::vector<unsigned> share(3);
    for (unsigned i = 0; i < 300; ++i)
        ++share[got[i].from];
    for (unsigned s : share)
        EXPECT_NEAR(s, 100, 5);
}

TEST(BoundedBuffer, APlaceIsFreeWhenTheNetworkHasSentItsMessageOn) {
    auto p = machine(2, line_of_routers(2));
    Bench b(p);
    MessageBuffer to;
    to.vnet = 2;
    to.capacity = 4;
    b.net->attach_to(0, 2, &to);
    for (unsigned i = 0; i < 4; ++i)
        to.enqueue(b.make(0, {1}, 2, true, 0), 0);
    EXPECT_FALSE(to.areNSlotsAvailable(1, 0));
    b.queue.run(ns(1));
    EXPECT_EQ(to.in_network_entry, 3u); // one has the link
    b.queue.run(ns(18) + 1);
    EXPECT_EQ(to.in_network_entry, 2u); // two, and there are no more data buffers
    EXPECT_EQ(b.run().size(), 4u);
    EXPECT_EQ(to.in_network_entry, 0u);

    to.enqueue(b.make(0, {0, 1}, 2, true, b.queue.now()), b.queue.now());
    EXPECT_EQ(to.in_network_entry, 1u);
    EXPECT_EQ(b.run().size(), 2u);
    EXPECT_EQ(to.in_network_entry, 0u);
}

// ---- random traffic

struct Storm {
    std::vector<Arrived> got;
    std::map<unsigned, std::vector<unsigned>> to; ///< destinations by message
    NetworkStats stats;
    std::uint64_t events = 0;
    bool exact = true;
    std::size_t left = 0;
    HopLog log;
};

Storm storm(NetworkParams p, unsigned messages, Tick spacing, std::uint64_t seed, std::vector<unsigned> ordered = {}) {
    Bench b(p, 0, std::move(ordered));
    Storm s;
    b.net->set_trace(&s.log);
    Rng rng(seed);
    const auto nodes = static_cast<unsigned>(b.controllers.size());
    for (unsigned i = 0; i < messages; ++i) {
        std::set<unsigned> to{static_cast<unsigned>(rng.below(nodes))};
        if (rng.below(5) == 0)
            for (unsigned k = 0; k < nodes; ++k)
                if (rng.below(2))
                    to.insert(k);
        const std::vector<unsigned> list(to.begin(), to.end());
        const Tick ready = static_cast<Tick>(i / nodes) * spacing;
        const unsigned n = b.send(i % nodes, list, static_cast<unsigned>(rng.below(4)), rng.below(2), ready);
        s.to[n] = list;
    }
    s.got = b.run();
    s.exact = b.exact;
    s.stats = b.net->stats();
    s.events = b.queue.events();
    s.left = b.net->held();
    return s;
}

void expect_each_arrived_once(const Storm &s) {
    std::map<unsigned, std::vector<unsigned>> arrived;
    for (const auto &a : s.got) {
        arrived[a.number].push_back(a.to);
        NetDest self;
        self.add_index(a.to);
        EXPECT_EQ(a.destination, self);
    }
    for (auto &[n, list] : arrived)
        std::sort(list.begin(), list.end());
    EXPECT_TRUE(arrived == s.to);
    EXPECT_TRUE(s.exact);
    EXPECT_EQ(s.left, 0u);
}

NetworkParams one_credit(NetworkParams p) {
    for (auto &c : p.channels)
        c.commands = c.data = 1;
    return p;
}

TEST(RandomTraffic, NothingIsLostOrDoubledWithOneBufferPerChannel) {
    const auto live = message_pool().live();
    expect_each_arrived_once(storm(one_credit(machine(8, kTwistedLadder, 2)), 6000, ns(1), 1));
    EXPECT_EQ(message_pool().live(), live);
}

TEST(RandomTraffic, ALinkSendsOnePacketAtATimeAndNeverWithoutABuffer) {
    const Storm s = storm(machine(8, kTwistedLadder, 2), 6000, ns(4), 2);
    std::map<std::pair<unsigned, unsigned>, Tick> free_at;
    std::map<std::tuple<unsigned, unsigned, unsigned>, std::vector<HopLog::Hop>> by_channel;
    for (const auto &h : s.log.hops) {
        Tick &t = free_at[{h.from, h.to}];
        EXPECT_GE(h.depart, t);
        t = h.depart + (h.data ? ns(18) : ns(2));
        EXPECT_EQ(h.arrive, t + ns(10));
        by_channel[{h.from, h.to, h.vnet}].push_back(h);
    }
    // Packets on the wire occupy a buffer already, so there are never more of them than buffers.
    const auto channels = NetworkParams::hypertransport_channels();
    for (const auto &[key, hops] : by_channel)
        for (std::size_t i = 0; i < hops.size(); ++i) {
            unsigned commands = 0, data = 0;
            for (std::size_t k = i; k > 0 && hops[k - 1].arrive > hops[i].depart; --k) {
                ++commands;
                data += hops[k - 1].data;
            }
            EXPECT_LT(commands, channels[hops[i].vnet].commands);
            EXPECT_TRUE(!hops[i].data || data < channels[hops[i].vnet].data);
        }
}

TEST(FreeList, NothingIsLostUnderHeavyTrafficThatCompetesForIt) {
    auto p = machine(8, kTwistedLadder, 2);
    for (auto &c : p.channels)
        c.commands = c.data = 1;
    p.free_commands = 2;
    p.free_data = 1;
    expect_each_arrived_once(storm(p, 6000, ns(1), 3));
}

TEST(RandomTraffic, ARingWithAcyclicRoutesAndOneBufferDoesNotDeadlock) {
    const Edges ring = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
        expect_each_arrived_once(storm(one_credit(machine(4, ring)), 4000, 0, seed));
}

TEST(RandomTraffic, JitterLosesNothingAndKeepsOrderWhereDeclared) {
    auto p = one_credit(machine(8, kTwistedLadder));
    p.jitter = ns(500);
    p.seed = 7;
    const Storm s = storm(p, 4000, ns(5), 3, {1, 2});
    expect_each_arrived_once(s);
    std::map<std::tuple<unsigned, unsigned, unsigned>, unsigned> last;
    unsigned overtaken = 0;
    for (const auto &a : s.got) { // by buffer, in the order in which the controller sees them
        auto [i, first] = last.try_emplace({a.from, a.to, a.vnet}, a.number);
        if (!first && a.number < i->second) {
            EXPECT_TRUE(a.vnet == 0 || a.vnet == 3);
            ++overtaken;
        }
        i->second = a.number;
    }
    EXPECT_GT(overtaken, 100u) << "jitter reorders where it may";
}

TEST(RandomTraffic, WithoutJitterEveryVirtualNetworkKeepsOrder) {
    const Storm s = storm(machine(8, kTwistedLadder, 2), 6000, ns(4), 5);
    std::map<std::tuple<unsigned, unsigned, unsigned>, unsigned> last;
    for (const auto &a : s.got) {
        auto [i, first] = last.try_emplace({a.from, a.to, a.vnet}, a.number);
        if (!first) {
            EXPECT_LT(i->second, a.number);
        }
        i->second = a.number;
    }
}

TEST(RandomTraffic, StatisticsAddUp) {
    const Storm s = storm(machine(8, kTwistedLadder, 2), 5000, ns(8), 9);
    std::uint64_t sent = 0, delivered = 0, by_port = 0, hops = 0;
    Tick latency = 0, measured = 0;
    for (const auto &c : s.stats.channel) {
        sent += c.sent;
        delivered += c.delivered;
        latency += c.latency;
        for (auto n : c.delivered_by_hops)
            hops += n;
    }
    for (const auto &port : s.stats.port)
        by_port += port.messages;
    for (const auto &a : s.got)
        measured += a.at - a.sent;
    EXPECT_EQ(sent, 5000u);
    EXPECT_EQ(delivered, s.got.size());
    EXPECT_EQ(hops, s.got.size());
    EXPECT_EQ(by_port, s.got.size());
    EXPECT_EQ(latency, measured);
    for (const auto &l : s.stats.link)
        for (const auto &c : l.channel) {
            EXPECT_EQ(c.bytes, 8 * (c.packets - c.data_packets) + 72 * c.data_packets);
            EXPECT_EQ(c.busy_fs, ns(2) * static_cast<Tick>(c.packets - c.data_packets) +
                                     ns(18) * static_cast<Tick>(c.data_packets));
        }
}

TEST(RandomTraffic, TwoRunsAreIdentical) {
    auto p = machine(8, kTwistedLadder, 2);
    p.jitter = ns(20);
    const Storm a = storm(p, 3000, ns(3), 11), b = storm(p, 3000, ns(3), 11);
    ASSERT_EQ(a.got.size(), b.got.size());
    for (std::size_t i = 0; i < a.got.size(); ++i)
        EXPECT_TRUE(a.got[i].number == b.got[i].number && a.got[i].at == b.got[i].at && a.got[i].to == b.got[i].to);
    EXPECT_EQ(a.events, b.events);
}

TEST(Multicast, CrossesEachLinkOfItsTreeOnceAndReachesAllDestinations) {
    Bench b(machine(8, kTwistedLadder, 6));
    HopLog log;
    b.net->set_trace(&log);
    std::vector<unsigned> all(48);
    for (unsigned i = 0; i < 48; ++i)
        all[i] = i;
    b.send(13, all, 3, false, 0);
    const auto got = b.run();
    EXPECT_EQ(got.size(), 48u);
    EXPECT_EQ(log.hops.size(), 7u); // a tree over eight routers
    EXPECT_EQ(log.deliveries, 48u);
    std::set<std::uint64_t> uids;
    for (const auto &a : got) {
        uids.insert(a.uid);
        EXPECT_EQ(a.number, 0u);
        EXPECT_EQ(a.destination.count(), 1);
    }
    EXPECT_EQ(uids.size(), 48u);
    EXPECT_TRUE(b.exact);
}

/// How many lines contain the text.
static std::ptrdiff_t mentions(const std::vector<std::string> &lines, const char *text) {
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string &l) { return l.find(text) != std::string::npos; });
}

TEST(Reports, NameEveryHeldMessageAndWhatItWaitsFor) {
    auto p = machine(3, line_of_routers(3));
    p.links[1].clock_hz = 10'000'000;
    Bench b(p);
    for (unsigned i = 0; i < 10; ++i)
        b.send(0, {2}, 2, true, 0);
    b.queue.run(ns(1700));
    EXPECT_EQ(b.net->held(), 10u);
    const auto lines = b.net->stuck_report(ns(1700));
    ASSERT_EQ(lines.size(), 10u);
    EXPECT_EQ(mentions(lines, "on the link 1->2"), 1);
    EXPECT_EQ(mentions(lines, "router 1, waits for the link to 2, channel response: its turn"), 1);
    EXPECT_EQ(mentions(lines, "router 1, waits for the link to 2, channel response: behind an older packet"), 1);
    EXPECT_EQ(mentions(lines, "router 0, waits for the link to 1, channel response: no data buffer"), 1);
    EXPECT_EQ(mentions(lines, "router 0, waits for the link to 1, channel response: behind an older packet"), 6);
    b.net->reset_stats(b.queue.now());
    EXPECT_EQ(b.run().size(), 10u);
    EXPECT_EQ(b.net->stats().channel[2].delivered, 10u);
    EXPECT_EQ(b.net->stats().channel[2].sent, 0u);
    EXPECT_EQ(b.net->held(), 0u);
}

TEST(Reports, NameAPacketThatWaitsAloneForALink) {
    auto p = machine(2, line_of_routers(2));
    p.links[0].clock_hz = 10'000'000;
    Bench b(p);
    for (unsigned i = 0; i < 2; ++i)
        b.send(0, {1}, 2, true, 0);
    b.queue.run(ns(100));
    EXPECT_EQ(b.net->held(), 2u);
    const auto lines = b.net->stuck_report(ns(100));
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(mentions(lines, "router 0, waits for the link to 1, channel response: its turn"), 1);
    EXPECT_EQ(b.run().size(), 2u);
    EXPECT_EQ(b.net->held(), 0u);
}

TEST(Reports, LatencyAfterAResetCountsFromTheReset) {
    Bench b(machine(2, line_of_routers(2)));
    b.send(0, {1}, 0, false, 0);
    b.queue.run(ns(1)); // under way: accounted up to its arrival at router 1
    b.net->reset_stats(b.queue.now());
    b.run();
    EXPECT_EQ(b.net->stats().channel[0].latency, ns(1)); // the last crossbar
}

} // namespace
} // namespace moscope::ruby::bench
