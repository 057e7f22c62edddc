// SPDX-License-Identifier: BSD-3-Clause
// The order of an ordered virtual network, where a protocol sends with different latencies.
#include <gtest/gtest.h>

#include "bench.hh"

namespace moscope::ruby::bench {
namespace {

constexpr unsigned kVnet = 1;

/// A controller's buffer into the network.
struct Sender {
    Bench &bench;
    unsigned node;
    MessageBuffer buffer;

    Sender(Bench &b, unsigned from, bool ordered) : bench(b), node(from) {
        buffer.vnet = kVnet;
        buffer.ordered = ordered;
        b.net->attach_to(static_cast<NodeIndex>(from), kVnet, &buffer);
    }
    void send(const std::vector<unsigned> &to, Tick arrival) {
        buffer.enqueue(bench.make(node, to, kVnet, false, arrival), arrival);
    }
};

/// Numbers of the messages that arrived at a controller, in the order of their arrival.
std::vector<unsigned> order_at(unsigned node, const std::vector<Arrived> &all) {
    std::vector<unsigned> numbers;
    for (const Arrived &a : all)
        if (a.to == node)
            numbers.push_back(a.number);
    return numbers;
}

NetworkParams ideal() {
    NetworkParams p;
    p.kind = NetworkParams::Kind::ideal;
    p.ideal_latency = ns(5);
    return p;
}

NetworkParams two_chips() { return machine(2, line_of_routers(2), 2); }

TEST(OrderedNetwork, AMessageDoesNotOvertakeOneThatItsSenderSentWithALargerLatency) {
    for (const bool hypertransport : {false, true})
        for (const unsigned to : {1u, 2u}) { // on the same chip, and on another one
            Bench b(hypertransport ? two_chips() : ideal(), hypertransport ? 0 : 4, {kVnet});
            Sender s(b, 0, true);
            s.send({to}, ns(20));
            s.send({to}, ns(3));
            s.send({to, 3}, ns(10));
            const auto all = b.run();
            EXPECT_EQ(order_at(to, all), (std::vector<unsigned>{0, 1, 2}));
            EXPECT_TRUE(b.exact); // the wait is part of the message's latency
        }
}

TEST(OrderedNetwork, MessagesToOtherControllersDoNotWait) {
    Bench b(ideal(), 4, {kVnet});
    Sender s(b, 0, true);
    s.send({1}, ns(20));
    s.send({2}, ns(3));
    for (const Arrived &a : b.run())
        EXPECT_EQ(a.at, a.to == 1 ? ns(25) : ns(8));
}

TEST(OrderedNetwork, OneEndThatDeclaresTheOrderIsEnough) {
    Bench receivers(ideal(), 4, {kVnet});
    Sender s(receivers, 0, false);
    s.send({1}, ns(20));
    s.send({1}, ns(3));
    EXPECT_EQ(order_at(1, receivers.run()), (std::vector<unsigned>{0, 1}));

    Bench another(ideal(), 4);
    Sender undeclared(another, 0, false), declared(another, 2, true);
    undeclared.send({1}, ns(20));
    undeclared.send({1}, ns(3));
    EXPECT_EQ(order_at(1, another.run()), (std::vector<unsigned>{0, 1}));
}

TEST(OrderedNetwork, WithoutADeclaredOrderMessagesOvertake) {
    Bench b(ideal(), 4);
    Sender s(b, 0, false);
    s.send({1}, ns(20));
    s.send({1}, ns(3));
    EXPECT_EQ(order_at(1, b.run()), (std::vector<unsigned>{1, 0}));
}

} // namespace
} // namespace moscope::ruby::bench
