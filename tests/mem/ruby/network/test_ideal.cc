// SPDX-License-Identifier: BSD-3-Clause
// The ideal network: a fixed latency and jitter, without topology or bandwidth.
#include <gtest/gtest.h>

#include "bench.hh"

namespace moscope::ruby::bench {
namespace {

NetworkParams ideal(Tick jitter) {
    NetworkParams p;
    p.kind = NetworkParams::Kind::ideal;
    p.ideal_latency = ns(5);
    p.jitter = jitter;
    return p;
}

TEST(IdealNetwork, TakesItsLatencyWhateverElseIsUnderWay) {
    Bench b(ideal(0), 4);
    for (unsigned i = 0; i < 100; ++i)
        b.send(i % 4, {0, 1, 2, 3}, i % 3, i % 2, ns(1) * (i / 10));
    const auto got = b.run();
    EXPECT_EQ(got.size(), 400u);
    for (const auto &a : got)
        EXPECT_EQ(a.at - a.sent, ns(5));
    EXPECT_TRUE(b.exact);
    EXPECT_EQ(b.net->stats().channel[0].delivered, 400u);
    EXPECT_EQ(b.net->stats().channel[0].latency, 400 * ns(5));
}

TEST(IdealNetwork, DelaysLieBetweenLatencyAndLatencyPlusJitter) {
    Bench b(ideal(ns(100)), 2);
    for (unsigned i = 0; i < 2000; ++i)
        b.send(0, {1}, 0, false, ns(1000) * i);
    Tick least = kNever, most = 0;
    for (const auto &a : b.run()) {
        least = std::min(least, a.at - a.sent);
        most = std::max(most, a.at - a.sent);
    }
    EXPECT_GE(least, ns(5));
    EXPECT_LT(least, ns(6));
    EXPECT_LE(most, ns(105));
    EXPECT_GT(most, ns(104));
    EXPECT_TRUE(b.exact);
}

TEST(IdealNetwork, OvertakesOnlyWhereNoOrderIsDeclared) {
    Bench b(ideal(ns(100)), 3, {1});
    for (unsigned i = 0; i < 600; ++i)
        b.send(0, {1, 2}, i % 2, false, ns(1) * i);
    unsigned overtaken[2] = {0, 0};
    std::map<std::pair<unsigned, unsigned>, unsigned> last;
    for (const auto &a : b.run()) {
        auto [i, first] = last.try_emplace({a.to, a.vnet}, a.number);
        overtaken[a.vnet] += !first && a.number < i->second;
        i->second = a.number;
    }
    EXPECT_GT(overtaken[0], 50u);
    EXPECT_EQ(overtaken[1], 0u);
}

TEST(IdealNetwork, TheSeedDecidesTheDelays) {
    const auto delays = [](std::uint64_t seed) {
        auto p = ideal(ns(100));
        p.seed = seed;
        Bench b(p, 2);
        for (unsigned i = 0; i < 50; ++i)
            b.send(0, {1}, 0, false, ns(1000) * i);
        std::vector<Tick> d;
        for (const auto &a : b.run())
            d.push_back(a.at - a.sent);
        return d;
    };
    EXPECT_EQ(delays(1), delays(1));
    EXPECT_NE(delays(1), delays(2));
}

TEST(IdealNetwork, TheDelayOfAMessageDoesNotDependOnOthers) {
    const auto delays = [](bool others) {
        Bench b(ideal(ns(100)), 3);
        std::vector<unsigned> watched;
        for (unsigned i = 0; i < 50; ++i) {
            if (others)
                b.send(i % 2 ? 0 : 2, {1}, 0, false, ns(1000) * i - ns(i));
            b.send(0, {1}, 0, false, ns(1000) * i);
        }
        std::vector<Tick> d;
        for (const auto &a : b.run())
            if (a.sent % ns(1000) == 0)
                d.push_back(a.at - a.sent);
        std::sort(d.begin(), d.end());
        return d;
    };
    const auto alone = delays(false), among_others = delays(true);
    EXPECT_EQ(alone.size(), 50u);
    EXPECT_TRUE(std::includes(among_others.begin(), among_others.end(), alone.begin(), alone.end()));
}

TEST(Misuse, AMessageWithoutAReceiverIsAProtocolError) {
    for (unsigned kind : {0u, 1u}) {
        Bench b(kind ? ideal(0) : machine(2, line_of_routers(2)), kind ? 2 : 0);
        b.send(0, {200}, 0, false, 0); // no such controller
        EXPECT_THROW(b.run(), ProtocolError);
        Bench b2(kind ? ideal(0) : machine(2, line_of_routers(2)), kind ? 2 : 0);
        b2.send(0, {}, 0, false, 0); // to no controller
        EXPECT_THROW(b2.run(), ProtocolError);
        Bench b3(kind ? ideal(0) : machine(2, line_of_routers(2)), kind ? 2 : 0);
        b3.send(0, {1}, 9, false, 0); // a virtual network without buffers
        EXPECT_THROW(b3.run(), ProtocolError);
    }
}

} // namespace
} // namespace moscope::ruby::bench
