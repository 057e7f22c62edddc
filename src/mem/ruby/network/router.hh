// SPDX-License-Identifier: BSD-3-Clause
// A chip's crossbar: takes messages from the chip's controllers and from incoming links, and sends each on
// towards its destinations: into a controller's buffer, or over an outgoing link. A message is granted its
// output, then crosses (a fixed latency, pipelined), then is serialized; store and forward per hop. All
// decisions are made in the order of simulated time; a free output is granted at once, so that an idle network
// costs one wake-up per router on the way.
#pragma once

#include <memory>
#include <vector>

#include "mem/ruby/network/link.hh"
#include "mem/ruby/network/network.hh"
#include "mem/ruby/runtime/crossing.hh"
#include "sim/event_queue.hh"

namespace moscope::ruby {

class Router;

/// An output port of the crossbar towards one or several controllers.
struct CrossbarPort : Crossing {
    Router *router = nullptr;
    PortStats stats;
};

/// What every router of a network shares.
struct RouterCommon {
    Tick latency = 0;
    struct Packet {
        Tick port_occupancy[2] = {0, 0}; ///< without, with data
        unsigned bytes[2] = {0, 0};
    };
    Packet packet[kMaxChannels];
    unsigned channels = 0;
    unsigned channel_of_vnet[256] = {}; ///< kMaxChannels: no such virtual network
    std::vector<std::string> channel_names;
};

class Router final : public Component {
  public:
    Router(EventQueue &queue, std::string name, Network &network, RouterCommon &common, unsigned number);

    Ingress ingress;

    // ---- building, in this order
    void add_port(const std::string &name);
    void set_outputs(std::vector<Link *> links) { out_ = std::move(links); }
    void set_inputs(std::vector<Link *> links) { in_ = std::move(links); }
    /// A controller of this chip.
    void add_local(NodeIndex node, unsigned port);
    /// Messages from one of the chip's controllers to another need no wake-up of the router from now on. The
    /// network has no bounded sources and adds no random delays, and `controllers` are all, by node.
    void open_direct_ways(const std::vector<AbstractController *> &controllers);
    /// Brings the ports up to date: grants all messages that entered before a tick that simulated time has reached.
    void grant(Tick before) {
        for (CrossbarPort &port : ports_)
            port.grant(before);
    }
    /// A controller behind one of the outputs.
    void add_remote(NodeIndex node, unsigned output);

    /// Messages that have entered, then those that have not.
    void for_each_inside(const std::function<void(const HeldMessage &)> &f);
    void for_each_entering(const std::function<void(const HeldMessage &)> &f);
    /// By channel: what has entered here, waited here and left to a controller of this chip.
    std::vector<ChannelStats> stats;
    std::uint32_t routed_vnets = 0; ///< Network::routed_vnets
    /// All routers of the network. A router reports to them the first message that it receives of a virtual network.
    const std::vector<std::unique_ptr<Router>> *all = nullptr;
    std::vector<CrossbarPort> &ports() { return ports_; }
    const std::vector<Link *> &outputs() const { return out_; }
    unsigned number_in_network() const { return number_; }

  private:
    // Latencies are summed as (sum of delivery ticks) - (sum of entry ticks), modulo 2^64, over all routers, so that a message
    // need not remember when it entered.
    void left(const Message &m, Tick arrival, Tick waited) {
        ChannelStats &s = stats[common_.channel_of_vnet[m.vnet]];
        ++s.delivered;
        ++s.delivered_by_hops[m.hops < kHopBins ? m.hops : kHopBins - 1];
        s.queueing += waited;
        add_latency(s, static_cast<std::uint64_t>(arrival));
    }
    static void add_latency(ChannelStats &s, std::uint64_t ticks) {
        s.latency = static_cast<Tick>(static_cast<std::uint64_t>(s.latency) + ticks);
    }
    bool split_to_locals(Message *m, Tick ready);
    struct Arrival {
        Message *message;
        unsigned input; ///< 0: this chip's controllers; i: the link in_[i - 1]
    };
    /// Where a controller lies from here: behind a link, or (null) at a port of this crossbar.
    struct Way {
        Link *link = nullptr;
        unsigned port = 0;
    };
    struct Slot {
        std::uint32_t parts = 0;
        Tick release = 0; ///< latest departure of the parts gone so far
    };

    void wake(Tick now);
    void accept(Message *m, unsigned input, Tick now);
    void multicast(Message *m, unsigned input, Tick now);
    void grant_entered(CrossbarPort &port, Tick before);
    Tick deliver(Message *m, NodeIndex node, Tick now, bool expected = false);
    void count_entry(const Message &m, unsigned destinations);
    bool pass_on(Message *m, unsigned input, Tick now);
    bool can_send(const Message &m, Link &link, const Link::Channel &channel, Tick now) const;
    bool forward(Message *m, Link &link, unsigned input, std::uint32_t slot, Tick now);
    void send(Message *m, Link &link, unsigned channel, Tick now);
    void serve(Link &link, Tick now);
    void part_left(const Message &m, unsigned input, std::uint32_t slot, Tick at);
    void free_input(const Message &m, unsigned input, Tick at);
    void arrives(Message *m, const Link &link, Tick at);
    void freed_behind(Link &link, std::uint8_t channel, bool data, Tick usable);
    void credit_returned(Link &link, Tick usable);
    std::uint32_t new_slot();

    Network &network_;
    RouterCommon &common_;
    unsigned number_;
    TimedQueue<Arrival> arrivals_;
    std::uint32_t waiting_ = 0; ///< outputs with waiting packets
    std::vector<Way> way_;      ///< by controller
    std::vector<Link *> out_, in_;
    std::vector<CrossbarPort> ports_;
    NetDest local_; ///< this chip's controllers
    std::vector<Slot> slots_{1};
    std::vector<std::uint32_t> free_slots_;
};

} // namespace moscope::ruby
