// SPDX-License-Identifier: BSD-3-Clause
// The driver `http` against servers of different speed behind a TCP of the guest's.
#include <gtest/gtest.h>

#include <utility>

#include "guest.hh"
#include "stack.hh"

using namespace moscope;
using namespace moscope::net;

namespace {

constexpr unsigned kPort = 8000, kServers = 3;

/// Servers that serve one request after the other; server i takes `times[i]` for each.
struct Guest final : GuestTcp {
    std::array<Tick, kServers> times{kMs / 100, kMs / 100, kMs};
    std::multimap<Tick, ConnectionId> due;
    std::array<Tick, kServers> busy_until{};
    std::array<std::uint64_t, kServers> open{}, most{}, served{};

    Guest() {
        for (unsigned i = 0; i < kServers; ++i)
            tcp.listen(user, kPort + i);
    }
    unsigned server(ConnectionId id) const { return tcp.local(id).port - kPort; }
    void connected(ConnectionId id, Tick) override {
        const unsigned i = server(id);
        most[i] = std::max(most[i], ++open[i]);
    }
    void received(ConnectionId id, Bytes, Tick t) override {
        const unsigned i = server(id);
        busy_until[i] = std::max(busy_until[i], t) + times[i];
        due.insert({busy_until[i], id});
    }
    Tick next() const override { return due.empty() ? kNever : due.begin()->first; }
    void act() override {
        for (; next() <= now; due.erase(due.begin())) {
            const ConnectionId id = due.begin()->second;
            const unsigned i = server(id);
            --open[i];
            ++served[i];
            answer(id, "HTTP/1.1 200 OK\r\n\r\nabc", now);
            tcp.finish(id, now);
        }
    }
};

/// Never answers the first connections, and resets all later ones.
struct Holding final : GuestTcp {
    static constexpr unsigned kHeld = 100;
    unsigned seen = 0;

    Holding() { tcp.listen(user, kPort); }
    void connected(ConnectionId id, Tick t) override {
        if (++seen > kHeld)
            tcp.abort(id, t);
    }
};

} // namespace

TEST(HttpDriver, EachServerKeepsItsConnectionsWhateverTheOthersSpeed) {
    Guest g;
    ASSERT_EQ(g.hosts.command("start http connections=12 servers=3 port=8000 bytes=3", kGuest, 0), "ok");
    g.run(100 * kMs);
    EXPECT_EQ(value(g.report("http"), "wrong"), 0u);
    EXPECT_EQ(value(g.report("http"), "answers"), g.done);
    EXPECT_LE(g.served[2], 100u);
    for (unsigned i = 0; i < 2; ++i) {
        EXPECT_GE(g.served[i], 4000u) << "four connections, of which each takes a server's time and six ways";
        EXPECT_LE(g.most[i], 4u);
    }
    EXPECT_EQ(g.most[2], 4u) << "connections do not gather at the slow server";
}

TEST(HttpDriver, ConnectionsAreOpenedSlowlyAtFirstAndThenFaster) {
    Guest g;
    ASSERT_EQ(g.hosts.command("start http connections=1000 servers=3 port=8000 bytes=3", kGuest, 0), "ok");
    g.run(kMs);
    EXPECT_EQ(value(g.report("http"), "opened"), 101 + g.done);
    EXPECT_EQ(value(g.report("http"), "to_open"), 1000 - 101u);
    g.run(512 * kMs / 100 + 88 * kMs / 1000);
    EXPECT_EQ(value(g.report("http"), "to_open"), 1000 - 601u);
    g.run(10 * kMs);
    EXPECT_EQ(value(g.report("http"), "opened"), 1000 + g.done);
    EXPECT_EQ(value(g.report("http"), "to_open"), 0u);
}

TEST(HttpDriver, AClosedLoopKeepsItsConnectionsWhenManyEndpointsInARowAreInUse) {
    Holding g;
    constexpr unsigned connections = 2 * Holding::kHeld, endpoints = 28'000;
    ASSERT_EQ(g.hosts.command("start http connections=200 clients=1 port=8000", kGuest, 0), "ok");
    while (g.now < kMs * 100 && value(g.report("http"), "opened") < endpoints + connections)
        g.run(g.now + kMs);
    EXPECT_EQ(std::as_const(g.hosts).tcp().connections(), connections);
    EXPECT_EQ(value(g.report("http"), "skipped"), 0u);
}

TEST(HttpDriver, AClosedLoopHasAtMostOneConnectionForEachEndpoint) {
    Guest g;
    EXPECT_EQ(g.hosts.command("start http connections=28001 clients=1", kGuest, 0),
              "error: connections: 28001: expected 1 to 28000");
    EXPECT_EQ(g.hosts.command("start http connections=56000 clients=1 servers=2", kGuest, 0), "ok");
    EXPECT_EQ(g.hosts.command("start http connections=28001 clients=1 rate=1", kGuest, 0), "ok");
}

TEST(HttpDriver, OpenLoopAsksTheServersInTurn) {
    Guest g;
    g.times[2] = kMs / 100;
    ASSERT_EQ(g.hosts.command("start http connections=1000 rate=30000 servers=3 port=8000 bytes=3", kGuest, 0), "ok");
    g.run(100 * kMs);
    for (unsigned i = 0; i < kServers; ++i)
        EXPECT_NEAR(static_cast<double>(g.served[i]), 1000, 5);
}

TEST(HttpDriver, EqualStatesAreEqualBytesInACheckpoint) {
    expect_equal_checkpoints("start http connections=5 servers=2 rate=100");
}

TEST(HttpDriver, ACheckpointInTheMiddleChangesNothing) {
    const auto run = [](bool interrupted, const char *command) {
        Guest g;
        g.hosts.command(command, kGuest, 0);
        for (Tick t = 0; t < 30 * kMs; t += kMs / 3) {
            g.run(t);
            if (!interrupted)
                continue;
            Archive save;
            g.hosts.archive(save);
            Archive load(save.bytes());
            g.hosts.archive(load);
            EXPECT_TRUE(load.at_end());
        }
        return g.report("http");
    };
    for (const char *command : {"start http connections=600 servers=3 port=8000 bytes=3",
                                "start http connections=50 rate=30000 servers=3 port=8000 bytes=3"})
        EXPECT_EQ(run(true, command), run(false, command)) << command;
}
