// SPDX-License-Identifier: BSD-3-Clause
// The driver `memcached` against a server that answers, loses and repeats datagrams.
#include <gtest/gtest.h>

#include "guest.hh"
#include "stack.hh"

using namespace moscope;
using namespace moscope::net;

namespace {

/// Answers each request 20 us later, except one in `lose`, which it loses, and one in `repeat`, which it answers twice;
/// one answer in `spoil` is wrong.
struct Server {
    unsigned lose = 0, repeat = 0, spoil = 0; ///< one in so many; 0: none
    std::uint64_t done = 0, seen = 0;
    std::multimap<Tick, Frame> flying; ///< to the hosts
    Hosts hosts{1, [this](Frame f, Tick t) { take(f, t); }, [this](std::uint64_t n) { done += n; }};

    Server() { hosts.receive(arp_frame({true, mac_of(kGuest), kGuest, Hosts::kControl}, {}), 0); }
    void take(const Frame &f, Tick t) {
        const auto packet = ipv4_of(f);
        const auto udp = packet ? udp_of(*packet) : std::nullopt;
        if (!udp || (++seen, lose && seen % lose == 0))
            return;
        std::vector<std::uint8_t> text(udp->payload.begin(), udp->payload.begin() + 8);
        for (const char c : std::string_view(spoil && seen % spoil == 0 ? "ERROR\r\n" : "END\r\n"))
            text.push_back(static_cast<std::uint8_t>(c));
        for (unsigned n = repeat && seen % repeat == 0 ? 2 : 1; n; --n)
            flying.insert({t + 2 * kWay, udp_frame(mac_of(udp->source.ip), udp->destination, udp->source, text)});
    }
    void run(Tick until) {
        while (true) {
            const Tick at = std::min(flying.empty() ? kNever : flying.begin()->first, hosts.next());
            if (at > until)
                return;
            while (!flying.empty() && flying.begin()->first <= at) {
                const Frame f = std::move(flying.begin()->second);
                flying.erase(flying.begin());
                hosts.receive(f, at);
            }
            hosts.run(at);
        }
    }
    std::uint64_t reported(const std::string &key) {
        return value(hosts.command("report memcached", kGuest, 0).substr(3), key);
    }
};

} // namespace

TEST(MemcachedDriver, EachBatchFollowsTheAnswersOfTheOneBefore) {
    Server s;
    ASSERT_EQ(s.hosts.command("start memcached clients=10 servers=2 batch=4", kGuest, 0), "ok");
    s.run(kMs);
    EXPECT_EQ(s.reported("answers"), 10 * 4 * 50u) << "a batch each 20 us";
    EXPECT_EQ(s.done, s.reported("answers"));
    EXPECT_EQ(s.reported("wrong") + s.reported("late") + s.reported("timeouts"), 0u);
}

TEST(MemcachedDriver, LostAnswersTimeOutAndRepeatedOnesAreLate) {
    Server s;
    s.lose = 1000;
    s.repeat = 700;
    ASSERT_EQ(s.hosts.command("start memcached clients=10 batch=32", kGuest, 0), "ok");
    s.run(2000 * kMs);
    EXPECT_LE(s.reported("timeouts"), s.seen / 1000);
    EXPECT_EQ(s.reported("requests"), s.seen);
    EXPECT_GT(s.reported("timeouts"), 100u);
    EXPECT_NEAR(static_cast<double>(s.reported("late")), static_cast<double>(s.seen) / 700, 30);
    EXPECT_EQ(s.reported("wrong"), 0u);
}

TEST(MemcachedDriver, EachRequestCountsOnceAsAnsweredWrongOrTimedOut) {
    Server s;
    s.lose = 900;
    s.repeat = 700;
    s.spoil = 7;
    ASSERT_EQ(s.hosts.command("start memcached clients=10 batch=20", kGuest, 0), "ok");
    s.run(1000 * kMs);
    const std::uint64_t ended = s.reported("answers") + s.reported("wrong") + s.reported("timeouts");
    EXPECT_LE(ended, s.reported("requests"));
    EXPECT_GE(ended + 10 * 20, s.reported("requests")) << "only the last batches are under way";
    EXPECT_NEAR(static_cast<double>(s.reported("wrong")), static_cast<double>(s.seen) / 7, 300);
    EXPECT_LE(s.reported("timeouts"), s.seen / 900) << "a wrong answer is not waited for";
    EXPECT_EQ(s.done, s.reported("answers"));
}

TEST(MemcachedDriver, AnAnswerWithoutAWaitingRequestIsLate) {
    Server s;
    s.lose = 1; // all
    ASSERT_EQ(s.hosts.command("start memcached clients=1 batch=1", kGuest, 0), "ok");
    const std::vector<std::uint8_t> empty, unknown{0xff, 0xff, 0, 0, 0, 1, 0, 0, 'E', 'N', 'D', '\r', '\n'};
    for (const auto &text : {empty, unknown})
        s.hosts.receive(udp_frame(mac_of(Services::host(0)), {kGuest, 11211}, {Services::host(0), 21'000}, text), 0);
    EXPECT_EQ(s.reported("late"), 2u);
    EXPECT_EQ(s.reported("wrong"), 0u);
}

TEST(MemcachedDriver, ACheckpointInTheMiddleChangesNothing) {
    const auto run = [](bool interrupted) {
        Server s;
        s.lose = 500;
        s.hosts.command("start memcached clients=7 servers=3 batch=11", kGuest, 0);
        for (Tick t = 0; t < 500 * kMs; t += 7 * kMs) {
            s.run(t);
            if (!interrupted)
                continue;
            Archive save;
            s.hosts.archive(save);
            Archive load(save.bytes());
            s.hosts.archive(load);
            EXPECT_TRUE(load.at_end());
        }
        return s.hosts.command("report memcached", kGuest, 0);
    };
    EXPECT_EQ(run(true), run(false));
}

TEST(MemcachedDriver, EqualStatesAreEqualBytesInACheckpoint) {
    expect_equal_checkpoints("start memcached clients=5 servers=2");
}
