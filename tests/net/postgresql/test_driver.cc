// SPDX-License-Identifier: BSD-3-Clause
// The driver `postgresql` through the hosts' TCP, against a server behind a TCP of the guest's.
#include <gtest/gtest.h>

#include "../guest.hh"
#include "server.hh"

using namespace moscope;
using namespace moscope::net;
using namespace moscope::net::postgresql;

namespace {

/// A guest with a server on port 5432.
struct Guest final : GuestTcp {
    std::map<ConnectionId, Server> servers;
    std::function<std::string(std::string)> change; ///< of what the server sends
    unsigned opened = 0;

    Guest() { tcp.listen(user, 5432); }
    void connected(ConnectionId, Tick) override { ++opened; }
    void received(ConnectionId id, Bytes b, Tick t) override {
        std::string text = servers[id].take(b);
        if (servers[id].terminated)
            tcp.finish(id, t);
        if (change)
            text = change(text);
        // As a server that sends when its buffer is full.
        for (std::size_t at = 0; at < text.size(); at += 8192)
            answer(id, std::string_view(text).substr(at, 8192), t);
    }
    std::string report() { return GuestTcp::report("postgresql"); }
};

} // namespace

TEST(PostgresqlDriver, EachConnectionStaysOpenAndItsCorrectRowsAreOperations) {
    Guest g;
    ASSERT_EQ(g.hosts.command("start postgresql connections=5 rows=1000", kGuest, 0), "ok");
    EXPECT_EQ(value(g.report(), "to_open"), 5u);
    g.run(2 * kMs);
    EXPECT_EQ(value(g.report(), "to_open"), 0u) << "all send batches";
    const std::uint64_t answers = value(g.report(), "answers");
    EXPECT_GE(answers, 5 * 256u);
    EXPECT_EQ(g.done, answers);
    EXPECT_EQ(value(g.report(), "wrong"), 0u);
    EXPECT_EQ(g.opened, 5u);
    unsigned prewarms = 0;
    for (const auto &[id, server] : g.servers)
        prewarms += server.prewarms;
    EXPECT_EQ(prewarms, 1u) << "the first has the server read the table";
    g.hosts.command("stop postgresql", kGuest, g.now);
    g.run(100'000 * kMs); // beyond TIME-WAIT
    EXPECT_EQ(g.tcp.connections(), 0u) << "all ended in good order";
    for (const auto &[id, server] : g.servers)
        EXPECT_TRUE(server.terminated);
    EXPECT_EQ(value(g.report(), "wrong"), 0u);
}

TEST(PostgresqlDriver, AnErrorAndALostConnectionAreWrongAnswers) {
    Guest g;
    g.change = [n = 0](std::string right) mutable { return ++n == 6 ? error("XX000", "oops") + ready('E') : right; };
    ASSERT_EQ(g.hosts.command("start postgresql connections=2 batch=10", kGuest, 0), "ok");
    g.run(2 * kMs);
    EXPECT_EQ(value(g.report(), "errors"), 1u);
    EXPECT_EQ(value(g.report(), "wrong"), 1u);
    EXPECT_NE(g.report().find("first_error=XX000:oops"), std::string::npos);
    g.tcp.abort(g.servers.begin()->first, g.now);
    g.run(g.now + 15 * kMs);
    EXPECT_EQ(value(g.report(), "lost"), 1u);
    EXPECT_EQ(value(g.report(), "wrong"), 2u);
    EXPECT_EQ(g.opened, 3u) << "another takes its place";
}

TEST(PostgresqlDriver, AServerThatIsStartingOrAbsentIsTriedAgain) {
    Guest g;
    g.change = [n = 0](std::string right) mutable {
        return ++n == 1 ? error("57P03", "the database system is starting up") : right;
    };
    ASSERT_EQ(g.hosts.command("start postgresql", kGuest, 0), "ok");
    g.run(5 * kMs);
    g.tcp.finish(g.servers.begin()->first, g.now);
    g.run(17 * kMs);
    EXPECT_EQ(value(g.report(), "retried"), 1u);
    EXPECT_EQ(value(g.report(), "wrong"), 0u);
    EXPECT_GE(value(g.report(), "answers"), 256u);
    ASSERT_EQ(g.hosts.command("start postgresql port=5433", kGuest, g.now), "ok");
    g.run(g.now + 100 * kMs);
    EXPECT_GE(value(g.report(), "retried"), 5u);
    EXPECT_EQ(value(g.report(), "answers"), 0u);
}

TEST(PostgresqlDriver, SilenceCountsAsAStall) {
    Guest g;
    g.change = [n = 0](std::string right) mutable { return ++n > 4 ? std::string() : right; };
    ASSERT_EQ(g.hosts.command("start postgresql batch=1 patience_ms=100", kGuest, 0), "ok");
    g.run(150 * kMs);
    EXPECT_EQ(value(g.report(), "stalled"), 1u);
    EXPECT_EQ(value(g.report(), "wrong"), 1u);
}

TEST(PostgresqlDriver, ACheckpointInTheMiddleChangesNothing) {
    const auto run = [](bool interrupted) {
        Guest g;
        g.hosts.command("start postgresql connections=3 updates=5", kGuest, 0);
        for (Tick t = kMs / 30; interrupted && t < kMs; t += kMs / 15) {
            g.run(t);
            Archive save;
            save(g.hosts);
            Archive load(save.bytes());
            load(g.hosts);
            EXPECT_TRUE(load.at_end());
        }
        g.run(kMs);
        return g.report();
    };
    EXPECT_EQ(run(true), run(false));
    EXPECT_GT(value(run(false), "answers"), 0u);
}
