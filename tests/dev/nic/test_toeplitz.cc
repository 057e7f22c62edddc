// SPDX-License-Identifier: BSD-3-Clause
// The hash against the verification suite of Microsoft's specification ("Verifying the RSS hash calculation"), and the
// steering policies.
#include <gtest/gtest.h>

#include "base/error.hh"
#include "dev/nic/steering.hh"
#include "dev/nic/toeplitz.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

constexpr net::Ip ip(unsigned a, unsigned b, unsigned c, unsigned d) { return a << 24 | b << 16 | c << 8 | d; }

struct Vector {
    net::Ip destination;
    std::uint16_t destination_port;
    net::Ip source;
    std::uint16_t source_port;
    std::uint32_t addresses, with_ports;
};
const Vector kVectors[] = {
    {ip(161, 142, 100, 80), 1766, ip(66, 9, 149, 187), 2794, 0x323e8fc2, 0x51ccc178},
    {ip(65, 69, 140, 83), 4739, ip(199, 92, 111, 2), 14230, 0xd718262a, 0xc626b0ea},
    {ip(12, 22, 207, 184), 38024, ip(24, 19, 198, 95), 12898, 0xd2d0a5de, 0x5c2b394a},
    {ip(209, 142, 163, 6), 2217, ip(38, 27, 205, 30), 48228, 0x82989176, 0xafc7327f},
    {ip(202, 188, 127, 2), 1303, ip(153, 39, 163, 191), 44251, 0x5d1809c5, 0x10e828a2},
};

net::Flow flow(std::uint16_t source_port, std::uint16_t destination_port, std::uint8_t protocol = net::kTcp) {
    return {ip(10, 1, 1, 1), ip(10, 1, 0, 1), source_port, destination_port, protocol, true};
}

} // namespace

TEST(Toeplitz, AgreesWithTheVerificationSuite) {
    for (const Vector &v : kVectors) {
        const net::Flow f{v.source, v.destination, v.source_port, v.destination_port, net::kTcp, true};
        EXPECT_EQ(toeplitz(default_rss_key(), toeplitz_input(f, false)), v.addresses);
        EXPECT_EQ(toeplitz(default_rss_key(), toeplitz_input(f, true)), v.with_ports);
    }
}

TEST(Steering, RssUsesTheTableOfTheDriver) {
    auto rss = make_steering("rss", 0);
    RssConfig config;
    config.table = {5};
    EXPECT_EQ(rss->queue_of(flow(1, 2), 8, config), 5u);
    EXPECT_EQ(rss->queue_of(flow(1, 2), 4, config), 1u); // a queue that is not in use
    config.types = 0;
    config.unclassified = 3;
    EXPECT_EQ(rss->queue_of(flow(1, 2), 8, config), 3u);
    EXPECT_EQ(rss->queue_of({}, 8, {}), 0u);
}

TEST(Steering, RssSpreadsConnections) {
    auto rss = make_steering("rss", 0);
    unsigned packets[8] = {};
    for (unsigned port = 0; port < 8000; ++port)
        ++packets[rss->queue_of(flow(static_cast<std::uint16_t>(20000 + port), 80), 8, {})];
    for (const unsigned n : packets) {
        EXPECT_GT(n, 800u);
        EXPECT_LT(n, 1200u);
    }
}

TEST(Steering, FixedPortCountsFromTheFirstPort) {
    auto fixed = make_steering("fixed-port", 11211);
    for (const std::uint16_t core : {0, 1, 47})
        EXPECT_EQ(fixed->queue_of(flow(9, static_cast<std::uint16_t>(11211 + core), net::kUdp), 48, {}), core);
    EXPECT_LT(fixed->queue_of(flow(9, 80), 48, {}), 48u);
}

TEST(Steering, PinEntersEachTwentiethPacketSent) {
    auto pin = make_steering("pin-every-20", 0);
    const net::Flow in = flow(4000, 5432), out = in.reverse();
    const unsigned spread = pin->queue_of(in, 48, {}), other = (spread + 7) % 48;
    for (unsigned i = 0; i < 19; ++i)
        pin->sent(out, other);
    EXPECT_EQ(pin->queue_of(in, 48, {}), spread);
    pin->sent(out, other);
    EXPECT_EQ(pin->queue_of(in, 48, {}), other);
    EXPECT_EQ(pin->queue_of(flow(4001, 5432), 48, {}), RssConfig{}.queue_of(flow(4001, 5432), 48));
    Archive save;
    pin->archive(save);
    auto copy = make_steering("pin-every-20", 0);
    Archive load(save.bytes());
    copy->archive(load);
    EXPECT_EQ(copy->queue_of(in, 48, {}), other);
}

TEST(Steering, AnUnknownPolicyIsAnsweredWithTheKnownOnes) {
    try {
        make_steering("spread", 0);
        FAIL();
    } catch (const UserError &e) {
        EXPECT_STREQ(e.what(), "nic.steering: spread: expected one of fixed-port, pin-every-20, rss");
    }
}
