// SPDX-License-Identifier: BSD-3-Clause
// Latency of single messages and bandwidth of single links, against closed formulas.
#include <gtest/gtest.h>

#include "bench.hh"

namespace moscope::ruby::bench {
namespace {

constexpr Tick kCommand = ns(2), kData = ns(18); // 8 and 72 bytes at 4 bytes per ns

TEST(IdleNetwork, LatencyIsOneCrossbarPlusHopsTimesSerializationLinkAndCrossbar) {
    for (bool data : {false, true})
        for (unsigned h = 0; h < 5; ++h) {
            Bench b(machine(5, line_of_routers(5)));
            b.send(0, {h}, 2, data, ns(100));
            const auto got = b.run();
            ASSERT_EQ(got.size(), 1u);
            const Tick serialization = data ? kData : kCommand;
            EXPECT_EQ(got[0].at - got[0].sent, ns(1) + h * (serialization + ns(10) + ns(1)));
            EXPECT_EQ(got[0].hops, h);
            EXPECT_EQ(got[0].path[Segment::crossbar], (h + 1) * ns(1));
            EXPECT_EQ(got[0].path[Segment::link], h * (serialization + ns(10)));
            EXPECT_EQ(got[0].path[Segment::queue], 0);
        }
}

TEST(IdleNetwork, MinimumPathLatencyIsThatOfACommandPacket) {
    Bench b(machine(8, kTwistedLadder));
    for (unsigned s = 0; s < 8; ++s)
        for (unsigned d = 0; d < 8; ++d) {
            const Tick start = b.queue.now() + ns(1000);
            b.send(s, {d}, 0, false, start);
            const auto got = b.run();
            ASSERT_EQ(got.size(), 1u);
            const auto from = static_cast<NodeIndex>(s), to = static_cast<NodeIndex>(d);
            EXPECT_EQ(got[0].at - start, b.net->min_path_latency(from, to));
            EXPECT_GE(got[0].at - start, b.net->min_delivery_latency(to));
        }
}

TEST(IdleNetwork, EachChannelHasPacketsOfItsOwnSize) {
    auto p = machine(2, line_of_routers(2));
    p.channels[2].bytes[0] = 4;
    p.channels[2].bytes[1] = 68;
    for (unsigned vnet : {0u, 2u})
        for (bool data : {false, true}) {
            Bench b(p);
            b.send(0, {1}, vnet, data, 0);
            const auto got = b.run();
            ASSERT_EQ(got.size(), 1u);
            const Tick bytes = (vnet == 2 ? 4 : 8) + (data ? 64 : 0);
            EXPECT_EQ(got[0].path[Segment::link], ns(10) + bytes * ns(1) / 4);
            const auto sent = b.net->stats().link[0].channel[vnet];
            EXPECT_EQ(sent.bytes, static_cast<std::uint64_t>(bytes));
            EXPECT_EQ(sent.busy_fs, bytes * ns(1) / 4);
            EXPECT_EQ(b.net->min_path_latency(0, 1), 2 * ns(1) + ns(10) + ns(1)) << "of the shortest packet";
        }
}

TEST(IdleNetwork, AMessageCrossesTheLinksOfItsRouteAndCountsThem) {
    const auto p = machine(8, kTwistedLadder);
    const RoutingTables tables(p);
    Bench b(p);
    HopLog log;
    b.net->set_trace(&log);
    std::vector<unsigned> pairs(5);
    for (unsigned s = 0; s < 8; ++s)
        for (unsigned d = 0; d < 8; ++d)
            b.send(s, {d}, 3, false, ns(1000) * (8 * s + d));
    for (const auto &a : b.run()) {
        EXPECT_EQ(a.hops, tables.hops(a.from, a.to));
        ++pairs.at(a.hops);
    }
    EXPECT_EQ(pairs, (std::vector<unsigned>{8, 20, 24, 12, 0})); // 8, 20, 28, 8 by shortest paths
    for (const auto &h : log.hops)
        EXPECT_EQ(p.routes[h.from][h.number % 8], h.to);
}

TEST(IdleNetwork, SerializationTakesTheLinksBitsTimesTwiceItsClock) {
    LinkParams ht1{0, 1, 16, 1'000'000'000, 0}, ht3{0, 1, 16, 2'400'000'000, 0}, narrow{0, 1, 8, 3'200'000'000, 0};
    EXPECT_EQ(ht1.serialization(72), ns(18));    // 4 GB/s
    EXPECT_EQ(ht3.serialization(72), ns(7.5));   // 9.6 GB/s
    EXPECT_EQ(narrow.serialization(64), ns(10)); // 6.4 GB/s
}

/// Tick of the last arrival of `n` data packets that router 0 sends to router 1 at once.
Tick last_of(Bench &b, unsigned n) {
    for (unsigned i = 0; i < n; ++i)
        b.send(0, {1}, 2, true, 0);
    Tick last = 0;
    for (const auto &a : b.run())
        last = std::max(last, a.at);
    return last;
}

// With enough buffers behind it a link sends without a gap: bytes / (GB/s) from first to last bit.
TEST(Bandwidth, ALinkSaturatesAtItsBytesPerNanosecond) {
    auto p = machine(2, line_of_routers(2));
    for (auto &c : p.channels)
        c.commands = c.data = 64;
    Bench b(p);
    constexpr unsigned kPackets = 500;
    EXPECT_EQ(last_of(b, kPackets), ns(1) + kPackets * kData + ns(10) + ns(1));
    const auto s = b.net->stats();
    EXPECT_EQ(s.link[0].name, "0->1");
    EXPECT_EQ(s.link[0].channel[2].bytes, kPackets * 72u);
    EXPECT_EQ(s.link[0].channel[2].busy_fs, kPackets * kData);
    EXPECT_EQ(s.link[0].channel[2].credit_stall_fs, 0);
    EXPECT_EQ(s.link[1].channel[2].packets, 0u);
}

// Two data buffers of 72 bytes go round once per serialization and two flights.
TEST(Bandwidth, TwoDataBuffersLimitALinkToTwoPacketsPerRoundTrip) {
    Bench b(machine(2, line_of_routers(2)));
    constexpr unsigned kPackets = 501;
    const Tick last = last_of(b, kPackets);
    const Tick round = kData + 2 * ns(10);
    EXPECT_EQ(last, ns(1) + (kPackets / 2) * round + kData + ns(10) + ns(1));
    const auto s = b.net->stats();
    // Each pair of packets leaves the link idle for the rest of the round.
    EXPECT_EQ(s.link[0].channel[2].credit_stall_fs, (kPackets / 2) * (round - 2 * kData));
}

// A link that waits for buffers of one channel carries the packets of another meanwhile.
TEST(Bandwidth, AStallForBuffersIsNotBusyTimeOfTheLink) {
    auto p = machine(2, line_of_routers(2));
    p.links[0].latency_fs = ns(100);
    p.channels[3].commands = 64;
    Bench b(p);
    constexpr unsigned kPackets = 101;
    for (unsigned i = 0; i < 400; ++i)
        b.send(0, {1}, 3, false, ns(7) * i + ns(50));
    const Tick last = last_of(b, kPackets);
    const auto s = b.net->stats();
    const Tick stalled = s.link[0].channel[2].credit_stall_fs, busy = s.link[0].channel[2].busy_fs;
    const Tick others = s.link[0].channel[3].busy_fs;
    EXPECT_EQ(s.link[0].channel[3].credit_stall_fs, 0);
    EXPECT_EQ(others, 400 * ns(2));
    // Until its last packet has been sent, the link is busy or its response channel lacks a buffer.
    EXPECT_EQ(stalled + busy + others, last - ns(1) - ns(100) - ns(1));
}

TEST(Bandwidth, APortTakesItsBytesPerCycle) {
    auto p = machine(1, {}, 2);
    Bench b(p);
    for (unsigned i = 0; i < 100; ++i)
        b.send(0, {1}, 2, true, 0);
    Tick last = 0;
    for (const auto &a : b.run())
        last = std::max(last, a.at);
    const Tick occupancy = 5 * p.crossbar_period_num; // 72 bytes, 16 per cycle
    EXPECT_EQ(last, 99 * occupancy + ns(1));
    const auto s = b.net->stats();
    EXPECT_EQ(s.port[1].busy, 100 * occupancy);
    EXPECT_EQ(s.port[1].wait, 99 * 100 / 2 * occupancy);
}

TEST(Bandwidth, ControllersThatShareAPortShareItsBandwidth) {
    auto p = machine(1, {}, 3);
    p.ports[1].port = p.ports[2].port = "sri";
    Bench b(p);
    for (unsigned i = 0; i < 50; ++i)
        for (unsigned to : {1u, 2u})
            b.send(0, {to}, 2, true, 0);
    Tick last = 0;
    for (const auto &a : b.run())
        last = std::max(last, a.at);
    EXPECT_EQ(last, 99 * 5 * p.crossbar_period_num + ns(1));
}

} // namespace
} // namespace moscope::ruby::bench
