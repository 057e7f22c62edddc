// SPDX-License-Identifier: BSD-3-Clause
// A network on a test bench: machines of a few routers with "Core" controllers, messages with a number to
// tell them apart, and a record of everything that arrived. Times are femtoseconds; `ns` makes them.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "mem/ruby/network/hypertransport.hh"
#include "mem/ruby/network/network.hh"

namespace moscope::ruby::bench {

constexpr Tick ns(double t) { return static_cast<Tick>(t * kTicksPerNs); }

struct TestMessage : Message {
    NetDest Destination;
    unsigned number = 0;
    Tick sent = 0;
};

using Edges = std::vector<std::pair<unsigned, unsigned>>;

inline const Edges kTwistedLadder = {{0, 1}, {0, 2}, {1, 3}, {2, 4}, {2, 5}, {3, 4}, {3, 5}, {4, 6}, {5, 7}, {6, 7}};

using Routes = std::vector<std::vector<unsigned>>;

/// The twisted ladder has no shortest routing without a cycle: four pairs of routers go over three links
/// instead of two here.
inline const Routes kTwistedLadderRoutes = {
    {0, 1, 2, 1, 2, 2, 2, 2}, {0, 1, 0, 3, 3, 3, 3, 3}, {0, 0, 2, 0, 4, 5, 4, 5}, {1, 1, 1, 3, 4, 5, 4, 5},
    {2, 3, 2, 3, 4, 2, 6, 6}, {2, 3, 2, 3, 3, 5, 2, 7}, {4, 4, 4, 4, 4, 4, 6, 7}, {5, 5, 5, 5, 6, 5, 6, 7}};

/// Shortest routes; among equals the neighbour of the lowest number.
inline Routes shortest_routes(unsigned routers, const Edges &edges) {
    Routes next(routers, std::vector<unsigned>(routers));
    for (unsigned d = 0; d < routers; ++d) {
        std::vector<unsigned> distance(routers, routers);
        distance[d] = 0;
        for (unsigned round = 0; round < routers; ++round)
            for (auto [a, b] : edges) {
                distance[a] = std::min(distance[a], distance[b] + 1);
                distance[b] = std::min(distance[b], distance[a] + 1);
            }
        for (unsigned r = 0; r < routers; ++r) {
            next[r][d] = r == d ? d : routers;
            for (auto [a, b] : edges)
                for (auto [from, to] : {std::pair{a, b}, std::pair{b, a}})
                    if (from == r && r != d && distance[to] + 1 == distance[r])
                        next[r][d] = std::min(next[r][d], to);
        }
    }
    return next;
}

/// HT1 links of x16 at 1.0 GHz, four virtual networks on the four channels.
inline NetworkParams machine(unsigned routers, const Edges &edges, unsigned cores_per_router = 1) {
    NetworkParams p;
    p.routers = routers;
    for (unsigned c = 0; c < routers * cores_per_router; ++c)
        p.ports.push_back({"Core", static_cast<int>(c), c / cores_per_router, ""});
    p.router_latency = ns(1);
    p.crossbar_period_num = 454'545;
    for (auto [a, b] : edges)
        p.links.push_back({a, b, 16, 1'000'000'000, ns(10)});
    p.channels = NetworkParams::hypertransport_channels();
    p.vnet_channel = {0, 1, 2, 3};
    p.routes = edges == kTwistedLadder ? kTwistedLadderRoutes : shortest_routes(routers, edges);
    return p;
}

inline Edges line_of_routers(unsigned routers) {
    Edges e;
    for (unsigned r = 0; r + 1 < routers; ++r)
        e.emplace_back(r, r + 1);
    return e;
}

struct Arrived {
    unsigned number;
    NodeIndex to;
    Tick sent, at;
    PathTimes path;
    unsigned hops;
    unsigned vnet;
    NodeIndex from;
    NetDest destination;
    std::uint64_t uid;
};

/// Remembers the links crossed.
struct HopLog : TraceHook {
    struct Hop {
        unsigned number, from, to, vnet;
        Tick depart, arrive;
        bool data;
    };
    std::vector<Hop> hops;
    unsigned deliveries = 0;
    void transition(const AbstractController &, Tick, unsigned, unsigned, unsigned, Addr, const Message *) override {}
    Tick sent(const AbstractController &, Tick, const Message &, Tick, const Message *) override { return 0; }
    void hop(const Message &m, unsigned from, unsigned to, Tick depart, Tick arrive) override {
        hops.push_back({static_cast<const TestMessage &>(m).number, from, to, m.vnet, depart, arrive, m.carries_data});
    }
    Tick delivered(const Message &, NodeIndex, Tick) override {
        ++deliveries;
        return 0;
    }
};

class Bench {
  public:
    static constexpr unsigned kVnets = 4;

    explicit Bench(const NetworkParams &p, unsigned ideal_nodes = 0, std::vector<unsigned> ordered = {}) {
        p.validate();
        for (unsigned n = 0; n < std::max<std::size_t>(p.ports.size(), ideal_nodes); ++n)
            controllers.push_back({"Core", static_cast<int>(n)});
        net = make_network(queue, p, controllers);
        from.resize(controllers.size() * kVnets);
        for (unsigned n = 0; n < controllers.size(); ++n)
            for (unsigned v = 0; v < kVnets; ++v) {
                auto &b = from[n * kVnets + v];
                b.vnet = static_cast<std::uint8_t>(v);
                b.ordered = std::find(ordered.begin(), ordered.end(), v) != ordered.end();
                net->attach_from(static_cast<NodeIndex>(n), v, &b);
            }
    }

    TestMessage *make(unsigned source, const std::vector<unsigned> &to, unsigned vnet, bool data, Tick ready) {
        auto *m = message_pool().make<TestMessage>();
        m->dest_offset = static_cast<std::uint16_t>(reinterpret_cast<char *>(&m->Destination) -
                                                    reinterpret_cast<char *>(static_cast<Message *>(m)));
        for (unsigned n : to)
            m->Destination.add_index(static_cast<NodeIndex>(n));
        m->note_destination();
        m->source = static_cast<NodeIndex>(source);
        m->vnet = static_cast<std::uint8_t>(vnet);
        m->carries_data = data;
        m->number = made++;
        m->stamp = m->sent = ready;
        return m;
    }
    unsigned send(unsigned source, const std::vector<unsigned> &to, unsigned vnet, bool data, Tick ready) {
        TestMessage *m = make(source, to, vnet, data, ready);
        const unsigned number = m->number;
        net->ingress(static_cast<NodeIndex>(source))->push(m, ready);
        return number;
    }
    /// Runs until nothing is pending, and returns all that arrived, by buffer and arrival.
    std::vector<Arrived> run(Tick until = kNever) {
        queue.run(until);
        std::vector<Arrived> all;
        for (unsigned n = 0; n < controllers.size(); ++n)
            for (unsigned v = 0; v < kVnets; ++v)
                for (auto &b = from[n * kVnets + v]; !b.isEmpty();) {
                    const Tick at = b.head_tick();
                    auto *m = static_cast<TestMessage *>(b.peek());
                    exact = exact && m->stamp == at && m->path.total() == at - m->sent;
                    all.push_back({m->number, static_cast<NodeIndex>(n), m->sent, at, m->path, m->hops, m->vnet,
                                   m->source, m->Destination, m->uid});
                    message_pool().free(b.pop(at));
                }
        return all;
    }

    EventQueue queue;
    std::vector<ControllerName> controllers;
    std::unique_ptr<Network> net;
    std::deque<MessageBuffer> from;
    unsigned made = 0;
    bool exact = true; ///< the segments of every message added up to its latency
};

} // namespace moscope::ruby::bench
