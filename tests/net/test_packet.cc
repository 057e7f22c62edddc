// SPDX-License-Identifier: BSD-3-Clause
// Checksums, packets and the hosts' answers to ARP, ICMP and UDP; frames that are not whole.
#include <gtest/gtest.h>

#include "base/rng.hh"
#include "net/checksum.hh"
#include "net/lan.hh"

using namespace moscope;
using namespace moscope::net;

namespace {

constexpr Ip kGuest = 0x0a010001;
constexpr Mac kGuestMac = {2, 0, 0, 0, 0, 9};

/// Hosts whose frames are kept.
struct Far {
    std::vector<Frame> sent;
    std::uint64_t operations = 0;
    Hosts hosts{1, [this](Frame f, Tick) { sent.push_back(std::move(f)); },
                [this](std::uint64_t n) { operations += n; }};

    Frame take() {
        EXPECT_EQ(sent.size(), 1u);
        Frame f = sent.empty() ? Frame{} : std::move(sent.back());
        sent.clear();
        return f;
    }
};

Frame from_guest(Frame f) {
    std::copy(kGuestMac.begin(), kGuestMac.end(), f.begin() + 6);
    return f;
}
Bytes bytes_of(std::string_view s) { return {reinterpret_cast<const std::uint8_t *>(s.data()), s.size()}; }

} // namespace

TEST(Checksum, IsThatOfRfc1071) {
    const std::uint8_t example[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}; // section 3
    EXPECT_EQ(Sum().add(example).checksum(), static_cast<std::uint16_t>(~0xddf2u));
    const std::uint8_t header[] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                   0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
    EXPECT_EQ(Sum().add(header).checksum(), 0xb861);
    const std::uint8_t odd[] = {1, 2, 3};
    EXPECT_EQ(Sum().add(odd).checksum(), static_cast<std::uint16_t>(~(0x0102u + 0x0300u)));
}

TEST(Packet, UdpReadsWhatItWroteAndFindsDamage) {
    const Endpoint a{kGuest, 1000}, b{Services::host(3), 7};
    for (std::size_t size = 0; size < 60; ++size) {
        Frame f = udp_frame(kGuestMac, a, b, std::vector<std::uint8_t>(size, 0x5a));
        const auto p = ipv4_of(f);
        ASSERT_TRUE(p);
        const auto udp = udp_of(*p);
        ASSERT_TRUE(udp);
        EXPECT_EQ(udp->source, a);
        EXPECT_EQ(udp->destination, b);
        EXPECT_EQ(udp->payload.size(), size);
        EXPECT_EQ(transport_checksum_right(f), true);
        f[kIpPayload + 1] ^= 4;
        EXPECT_EQ(transport_checksum_right(f), false);
        EXPECT_FALSE(udp_of(*ipv4_of(f)));
    }
}

TEST(Hosts, AnswerArpForThemselvesAlone) {
    Far far;
    far.hosts.receive(arp_frame({true, kGuestMac, kGuest, Services::host(0)}, {}), 0);
    const auto reply = arp_of(far.take());
    ASSERT_TRUE(reply);
    EXPECT_FALSE(reply->request);
    EXPECT_EQ(reply->sender, Services::host(0));
    EXPECT_EQ(reply->sender_mac, mac_of(Services::host(0)));
    EXPECT_EQ(reply->target, kGuest);
    far.hosts.receive(arp_frame({true, kGuestMac, kGuest, 0x0a010003}, {}), 0);
    EXPECT_TRUE(far.sent.empty());
}

TEST(Hosts, AreTheControlHostAndTheClients) {
    for (const Ip host : {Hosts::kControl, Services::host(0), Services::host(249), Services::host(250),
                          Services::host(Services::kMostHosts - 1)})
        EXPECT_TRUE(Hosts::is_host(host)) << text_of(host);
    for (const Ip other : {0x0a010101u - 1, 0x0a0101fbu, 0x0a01fafbu, 0x0a01fb01u, 0x0a01ffffu, 0x0a020101u})
        EXPECT_FALSE(Hosts::is_host(other)) << text_of(other);
}

TEST(Hosts, AnswerPingAndEcho) {
    Far far;
    Frame ping = from_guest(ipv4_frame({}, kGuest, Hosts::kControl, kIcmp, 16));
    ping[kIpPayload] = 8;
    ping[kIpPayload + 9] = 77;
    put16(ping, kIpPayload + 2, Sum().add(Bytes(ping).subspan(kIpPayload, 16)).checksum());
    far.hosts.receive(ping, 0);
    const Frame pong = far.take();
    EXPECT_TRUE(std::equal(kGuestMac.begin(), kGuestMac.end(), pong.begin()));
    EXPECT_EQ(pong[kIpPayload], 0);
    EXPECT_EQ(pong[kIpPayload + 9], 77);
    EXPECT_EQ(Sum().add(Bytes(pong).subspan(kIpPayload, 16)).checksum(), 0);

    far.hosts.receive(from_guest(udp_frame({}, {kGuest, 5}, {Services::host(9), 7}, bytes_of("hello"))), 0);
    const Frame echoed = far.take();
    const auto udp = udp_of(*ipv4_of(echoed));
    ASSERT_TRUE(udp);
    EXPECT_EQ(std::string(udp->payload.begin(), udp->payload.end()), "hello");
    EXPECT_EQ(udp->destination, (Endpoint{kGuest, 5}));
}

TEST(Hosts, CommandsThatAreWrongSayWhatIsExpected) {
    Far far;
    EXPECT_EQ(far.hosts.command("start nothing", kGuest, 0).find("error: nothing: expected one of "), 0u);
    EXPECT_EQ(far.hosts.command("", kGuest, 0), "error: no command: expected start, stop or report");
    EXPECT_EQ(far.hosts.command("bla", kGuest, 0), "error: bla: expected start, stop or report");
    EXPECT_EQ(far.hosts.command("start", kGuest, 0).find("error: start: names no driver: expected one of "), 0u);
    EXPECT_EQ(far.hosts.command("start memcached batch=1 batch=2", kGuest, 0),
              "error: batch: is given twice: expected it once");
    for (const char *line : {"stop memcached extra", "report memcached extra"})
        EXPECT_EQ(far.hosts.command(line, kGuest, 0), "error: extra: expected nothing after the driver's name");
}

TEST(Hosts, AStartWhoseAnswerWasLostIsAnsweredAgainAndStartsNothingTwice) {
    constexpr Tick kMs = 1'000'000 * kTicksPerNs;
    Far far;
    far.hosts.receive(arp_frame({true, kGuestMac, kGuest, Services::host(0)}, {}), 0);
    const auto asked = [&](std::uint16_t port, const char *line, Tick now) {
        far.sent.clear();
        far.hosts.receive(
            from_guest(udp_frame({}, {kGuest, port}, {Hosts::kControl, Hosts::kControlPort}, bytes_of(line))), now);
        EXPECT_EQ(far.sent.size(), 1u);
        const auto udp = udp_of(*ipv4_of(far.take()));
        return std::string(udp->payload.begin(), udp->payload.end());
    };
    const auto run_until = [&](Tick end) {
        while (far.hosts.next() <= end)
            far.hosts.run(far.hosts.next());
    };
    const char *const line = "start http connections=4 servers=1 port=8000 bytes=3";
    EXPECT_EQ(asked(900, line, 0), "ok\n");
    run_until(kMs);
    const std::string report = far.hosts.reports().at("http");
    EXPECT_EQ(report.find(" to_open=4"), std::string::npos) << report;
    EXPECT_EQ(asked(900, line, kMs), "ok\n");
    EXPECT_EQ(far.hosts.reports().at("http"), report);
    EXPECT_EQ(asked(901, line, kMs), "ok\n"); // another program's: from the beginning
    EXPECT_NE(far.hosts.reports().at("http"), report);
    const std::string anew = far.hosts.reports().at("http");
    run_until(2 * kMs);
    EXPECT_EQ(asked(901, "stop http", 2 * kMs), "ok\n");
    EXPECT_EQ(asked(901, line, 2 * kMs), "ok\n"); // after a stop it is a start
    EXPECT_EQ(far.hosts.reports().at("http"), anew);
}

TEST(Hosts, RandomAndDamagedFramesDoNoHarm) {
    Far far;
    Rng rng(5);
    const Frame good[] = {udp_frame({}, {kGuest, 5}, {Services::host(9), 7}, bytes_of("hello")),
                          udp_frame({}, {kGuest, 5}, {Hosts::kControl, Hosts::kControlPort}, bytes_of("start x")),
                          arp_frame({true, kGuestMac, kGuest, Services::host(0)}, {}),
                          ipv4_frame({}, kGuest, Services::host(1), kTcp, 20)};
    for (unsigned i = 0; i < 200'000; ++i) {
        Frame f = good[rng.below(4)];
        for (unsigned n = 0; n < rng.below(4); ++n)
            f[rng.below(f.size())] = static_cast<std::uint8_t>(rng.next());
        if (rng.below(4) == 0)
            f.resize(rng.below(f.size() + 1));
        far.hosts.receive(f, i);
        flow_of(f);
        transport_checksum_right(f);
        far.sent.clear();
    }
}

TEST(Link, FramesLeaveAtTheRateAndArriveALatencyLater) {
    Link link({.bits_per_second = 10'000'000'000, .latency = 500}, 1);
    const Tick each = link.wire_time(1514); // 1538 bytes at 0.8 ns
    EXPECT_EQ(each, 1'230'400'000);
    link.send(Link::kToGuest, Frame(1514), 1000);
    link.send(Link::kToGuest, Frame(1514), 1000);
    Link::Direction d;
    Frame f;
    EXPECT_FALSE(link.receive(1000 + each + 499, d, f));
    EXPECT_TRUE(link.receive(1000 + each + 500, d, f));
    EXPECT_EQ(link.next(), 1000 + 2 * each + 500);
}

TEST(Link, LosesDuplicatesAndDelaysTheShareThatItShould) {
    Link link({.lost = 100'000, .duplicated = 50'000, .delayed = 200'000}, 3);
    for (unsigned i = 0; i < 20'000; ++i)
        link.send(Link::kToClients, Frame{static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i >> 8)}, i);
    unsigned arrived = 0, overtaken = 0, last = 0;
    Link::Direction d;
    Frame f;
    while (link.receive(kNever - 1, d, f)) {
        const unsigned number = f[0] | f[1] << 8;
        overtaken += number < last;
        last = number;
        ++arrived;
    }
    const auto &c = link.counts(Link::kToClients);
    EXPECT_NEAR(static_cast<double>(c.lost), 2000, 200);
    EXPECT_NEAR(static_cast<double>(c.duplicated), 900, 150);
    EXPECT_EQ(arrived, 20'000 - c.lost + c.duplicated);
    EXPECT_GT(overtaken, 1000u);
}
