// SPDX-License-Identifier: BSD-3-Clause
// Parameters from JSON, and the errors for wrong ones.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench.hh"

namespace moscope::ruby::bench {
namespace {

using nlohmann::json;

json good() {
    return json::parse(R"({
        "kind": "hypertransport", "routers": 3,
        "ports": [{"controller": ["L1Cache", 0], "router": 0},
                  {"controller": ["Directory", 0], "router": 2, "port": "mct"}],
        "router": {"latency_fs": 2000000, "port_bytes_per_cycle": 8,
                   "clock": {"period_num": 5000000, "period_den": 11}},
        "links": [{"a": 0, "b": 1, "width_bits": 16, "clock_hz": 1000000000, "latency_fs": 15000000},
                  {"a": 1, "b": 2, "width_bits": 8, "clock_hz": 2400000000, "latency_fs": 5000000}],
        "routes": [[0, 1, 1], [0, 1, 2], [1, 1, 2]],
        "vnet_channel": {"0": "request", "1": "probe", "2": "response", "4": "posted"},
        "credits": {"request": 4, "posted": 2, "response": 9, "probe": 9, "request_data": 3, "response_data": 2},
        "packet_bytes": {"command": 6, "data": 70, "response": 4, "response_data": 68}, "jitter_fs": 5, "seed": 6})");
}

std::string refusal(const json &j) {
    try {
        NetworkParams::from_json(j);
    } catch (const UserError &e) {
        return e.what();
    }
    return "accepted";
}

/// The good description with one value replaced.
std::string refusal_of(const char *pointer, json value) {
    json j = good();
    j[json::json_pointer(pointer)] = std::move(value);
    return refusal(j);
}

void expect_mentions(const std::string &text, std::initializer_list<const char *> words) {
    for (const char *w : words)
        EXPECT_NE(text.find(w), std::string::npos) << text << "\n  should mention: " << w;
}

TEST(NetworkJson, EveryKeyIsRead) {
    const auto p = NetworkParams::from_json(good());
    EXPECT_EQ(p.routers, 3u);
    ASSERT_EQ(p.ports.size(), 2u);
    EXPECT_EQ(p.ports[1].machine, "Directory");
    EXPECT_EQ(p.ports[1].router, 2u);
    EXPECT_EQ(p.ports[1].port, "mct");
    EXPECT_EQ(p.router_latency, ns(2));
    EXPECT_EQ(p.port_bytes_per_cycle, 8u);
    EXPECT_EQ(p.crossbar_period_den, 11);
    EXPECT_EQ(p.links[1].width_bits, 8u);
    EXPECT_EQ(p.links[1].clock_hz, 2'400'000'000);
    EXPECT_EQ(p.links[0].latency_fs, ns(15));
    EXPECT_EQ(p.routes[0][2], 1u);
    EXPECT_EQ(p.vnet_channel, (std::vector<unsigned>{0, 3, 2, 0, 1}));
    EXPECT_EQ(p.channels[0].data, 3u);
    EXPECT_EQ(p.channels[1].data, 2u) << "a posted buffer holds command and data";
    EXPECT_EQ(p.channels[2].commands, 9u);
    EXPECT_EQ(p.packet_bytes(0, false), 6u);
    EXPECT_EQ(p.packet_bytes(0, true), 70u);
    EXPECT_EQ(p.packet_bytes(2, false), 4u);
    EXPECT_EQ(p.packet_bytes(2, true), 68u);
    EXPECT_EQ(p.packet_bytes(3, true), 70u);
    EXPECT_EQ(p.jitter, 5);
    EXPECT_EQ(p.seed, 6u);
}

TEST(NetworkJson, AChannelOfOnesOwnIsAddedByNamingItInCredits) {
    json j = good();
    j["credits"]["unblock"] = 5;
    j["credits"]["unblock_data"] = 1;
    j["vnet_channel"]["5"] = "unblock";
    const auto p = NetworkParams::from_json(j);
    ASSERT_EQ(p.channels.size(), 5u);
    EXPECT_EQ(p.channels[4].name, "unblock");
    EXPECT_EQ(p.channels[4].commands, 5u);
    EXPECT_EQ(p.channels[4].data, 1u);
    EXPECT_EQ(p.vnet_channel[5], 4u);
}

TEST(NetworkJson, AnErrorNamesTheWrongValue) {
    expect_mentions(refusal_of("/linkz", 1), {"network.linkz", "unknown key", "links"});
    expect_mentions(refusal_of("/router/latency", 1), {"router.latency", "unknown key", "latency_fs"});
    expect_mentions(refusal_of("/kind", "torus"), {"kind", "torus", "hypertransport"});
    expect_mentions(refusal_of("/routers", "three"), {"routers", "whole number"});
    expect_mentions(refusal_of("/links/0/clock_hz", -1), {"links[0].clock_hz", "out of range"});
    expect_mentions(refusal_of("/links/0/b", 3), {"links", "0-3"});
    expect_mentions(refusal_of("/links/1", good()["links"][0]), {"links", "0-1", "twice"});
    expect_mentions(refusal_of("/credits/response", 0), {"credits", "response"});
    expect_mentions(refusal_of("/credits/answer_data", 2), {"credits.answer_data", "no such channel"});
    expect_mentions(refusal_of("/vnet_channel/0", "requests"), {"vnet_channel.0", "requests", "request, posted"});
    expect_mentions(refusal_of("/vnet_channel/99", "request"), {"vnet_channel.99"});
    expect_mentions(refusal_of("/packet_bytes/data", 4), {"packet_bytes", "request"});
    expect_mentions(refusal_of("/packet_bytes/response_data", 4), {"packet_bytes", "response"});
    expect_mentions(refusal_of("/packet_bytes/response", 0), {"packet_bytes.response", "1 or more"});
    expect_mentions(refusal_of("/packet_bytes/answer", 4), {"packet_bytes.answer", "no such channel"});
    expect_mentions(refusal_of("/links/0/credit_sets", 0), {"links[0].credit_sets", "1 to 64"});
    expect_mentions(refusal_of("/credits/free", 5000), {"credits", "free list"});
    expect_mentions(refusal_of("/ports/0/router", 3), {"ports", "L1Cache 0"});
    expect_mentions(refusal_of("/ports/0/controller", "L1Cache"), {"ports[0].controller", "pair"});
    expect_mentions(refusal_of("/router/latency_fs", 0), {"router.latency_fs"});
    expect_mentions(refusal_of("/jitter_fs", -1), {"jitter_fs"});
    expect_mentions(refusal_of("/routes", json::array()), {"routes", "rows"});
    EXPECT_EQ(refusal(good()), "accepted");
    EXPECT_THROW(NetworkParams::from_json_text("{\"kind\":"), UserError);
    EXPECT_THROW(NetworkParams::from_json_text("[]"), UserError);
}

TEST(NetworkJson, ADescriptionWithAnyOneKeyGoneOrOfAnotherTypeIsAcceptedOrRefusedCleanly) {
    const json flat = good().flatten();
    for (const auto &[pointer, value] : flat.items())
        for (const json &other : {json(), json(-1), json("x"), json::array(), json::object(), json(1e300), json(true),
                                  json(~std::uint64_t{0})})
            refusal_of(pointer.c_str(), other);
    const json all = good();
    for (const auto &[key, value] : all.items()) {
        json j = all;
        j.erase(key);
        refusal(j);
    }
}

TEST(Ports, EveryControllerIsConnectedExactlyOnce) {
    EventQueue q;
    auto p = NetworkParams::from_json(good());
    EXPECT_NO_THROW(make_network(q, p, {{"L1Cache", 0}, {"Directory", 0}}));
    EXPECT_THROW(make_network(q, p, {{"L1Cache", 0}}), UserError);
    EXPECT_THROW(make_network(q, p, {{"L1Cache", 0}, {"Directory", 0}, {"DMA", 0}}), UserError);
    p.ports.push_back(p.ports[0]);
    EXPECT_THROW(make_network(q, p, {{"L1Cache", 0}, {"Directory", 0}}), UserError);
}

TEST(Routing, ACycleOfWaitingLinksIsRefusedAndNamed) {
    auto p = machine(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}});
    EXPECT_NO_THROW(p.validate());
    // Each router routes clockwise to the router opposite.
    for (unsigned r = 0; r < 4; ++r)
        p.routes[r][(r + 2) % 4] = (r + 1) % 4;
    try {
        p.validate();
        FAIL() << "a cyclic routing was accepted";
    } catch (const UserError &e) {
        expect_mentions(e.what(), {"0->1 1->2 2->3 3->0", "cycle"});
    }
}

TEST(Routing, RoutesThatDoNotArriveOrLeaveTheGraphAreRefused) {
    auto p = machine(3, line_of_routers(3));
    p.routes[0][2] = 2; // not a neighbour
    EXPECT_THROW(p.validate(), UserError);
    p = machine(4, {{0, 1}, {1, 2}, {2, 0}, {2, 3}});
    p.routes[0][3] = 1;
    p.routes[1][3] = 0; // to and fro
    EXPECT_THROW(p.validate(), UserError);
    p = machine(3, line_of_routers(3));
    p.routes[1].pop_back();
    EXPECT_THROW(p.validate(), UserError);
}

} // namespace
} // namespace moscope::ruby::bench
