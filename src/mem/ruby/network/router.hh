// SPDX-License-Identifier: BSD-3-Clause
// A chip's crossbar: takes messages from the chip's controllers and from incoming links, and sends each on
// towards its destinations: into a controller's buffer, or over an outgoing link. A message is granted its
// output, then crosses (a fixed latency, pipelined), then is serialized; store and forward per hop. All
// decisions are made in the order of simulated time, and a free output is granted at once. A decision has no effect
// until the message reaches the next router, or the credit the previous one. The router may therefore wake later than
// the tick of a decision (set_slack); it then makes all decisions up to now, each as of its tick.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "mem/ruby/network/link.hh"
#include "mem/ruby/network/network.hh"
#include "mem/ruby/runtime/crossing.hh"
#include "sim/event_queue.hh"

namespace moscope::ruby {

class Router;
struct CrossbarPort;

/// One wake-up for all routers of a network whose wake-ups may be late by the same slack. Within the slack, a decision
/// at one router has no effect on another, so all are brought up to date together, in any order.
class Rounds final : public Component {
  public:
    Rounds(EventQueue &queue, const std::vector<std::unique_ptr<Router>> &routers, Tick slack);
    static constexpr std::size_t kMost = 64; ///< routers

    std::uint64_t active = 0; ///< routers, by bit, that have something to decide
    /// Does not wake for a router until it asks for a wake-up again.
    void rest() {
        active = 0;
        if (holding_.empty())
            schedule(kNever);
    }
    /// A message from a link enters a port at tick `entry`. Its receiver wakes so late, because of a random delay, that
    /// the credit would return too late if the port were granted only then.
    void hold(CrossbarPort &port, Tick entry);

  private:
    void wake(Tick now);
    Tick grant_held(Tick now);
    std::array<Router *, kMost> routers_{}; ///< by number
    Tick slack_;
    std::vector<CrossbarPort *> holding_; ///< ports with such messages
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

/// An output port of the crossbar towards one or several controllers.
struct CrossbarPort : Crossing {
    struct Counts {
        std::uint64_t messages[2] = {0, 0}; ///< without, with data
        Tick wait = 0;
    };

    Router *router = nullptr;
    std::string name;
    unsigned router_number = 0;
    bool held = false;                       ///< in the list of Rounds
    std::array<Counts, kMaxChannels> counts; ///< in addition to those in `kinds`

    /// All counts of a channel. Adds to `of_kinds` a router's counts for those messages that only `kinds` counts.
    Counts all(const RouterCommon &common, unsigned channel, ChannelStats *of_kinds = nullptr) const;
    PortStats counted(const RouterCommon &common) const;
    void reset_counts();
};

class Router final : public Component {
  public:
    Router(EventQueue &queue, std::string name, Network &network, RouterCommon &common, unsigned number);

    Ingress ingress;

    // ---- building, in this order
    void add_port(const std::string &name);
    void set_outputs(std::vector<Link *> links) { out_ = std::move(links); }
    void set_inputs(std::vector<Link *> links);
    /// A controller of this chip.
    void add_local(NodeIndex node, unsigned port);
    /// From now on, messages from one of the chip's controllers to another need no wake-up of the router. The network
    /// must have no bounded sources. `controllers`: all of the machine, by node.
    void open_direct_ways(const std::vector<AbstractController *> &controllers);
    /// Wake-ups may be this much later than the ticks of decisions; 0: they may not be late. rounds: wakes instead of
    /// the router; null: the router wakes itself.
    void set_slack(Tick slack, Rounds *rounds = nullptr);
    /// Makes all decisions up to now, and returns when the next must be made; kNever: there is none.
    Tick decide_all(Tick now);
    /// Makes all decisions up to now.
    void catch_up();
    /// Brings the ports up to date: grants all messages that entered before the end of the run.
    void grant_all();
    /// A controller behind one of the outputs.
    void add_remote(NodeIndex node, unsigned output);

    /// Messages that have entered, then those that have not.
    void for_each_inside(const std::function<void(const HeldMessage &)> &f);
    void for_each_entering(const std::function<void(const HeldMessage &)> &f);
    /// By channel: messages that entered here, and deliveries to controllers of this chip, without what counted() adds.
    /// A message's latency is the sum of those counted at the links and at the last port on its path.
    std::vector<ChannelStats> stats;
    /// stats[channel], plus what follows from the counts of the ports.
    ChannelStats counted(unsigned channel) const;
    std::uint32_t routed_vnets = 0; ///< Network::routed_vnets
    /// All routers of the network. A router reports to them the first message that it routes of each virtual network.
    const std::vector<std::unique_ptr<Router>> *all = nullptr;
    std::vector<CrossbarPort> &ports() { return ports_; }
    const std::vector<Link *> &outputs() const { return out_; }

  private:
    bool split_to_locals(Message *m, Tick ready);
    /// Where a controller lies from here: behind a link, or (null) at a port of this crossbar.
    struct Way {
        Link *link = nullptr;
        unsigned port = 0;
    };
    struct Slot {
        std::uint32_t parts = 0;
        Tick release = 0; ///< latest departure of the parts gone so far
    };

    /// What is sent next over a link.
    struct Grant {
        Message *message;
        Link *link;
        Link::Channel *channel;
        unsigned input;
        std::uint32_t slot;
        Tick at;
    };

    Tick pending() const { return std::min(std::min(arrivals_.front_tick(), ingress.queue.front_tick()), service_); }
    bool decide(Tick until);
    bool serve_due(Grant &g, Tick now);
    Tick next_service() const;
    /// When to wake again.
    Tick deadline() const {
        const Tick next = pending();
        return next == kNever || ingress.prompt >= next ? next : next + slack_;
    }
    bool route(Grant &g, Message *m, unsigned input, Tick now, Tick until);
    /// Whether a decision due at t is the next one and has to be made now.
    bool is_next(Tick t, Tick until) const {
        return t <= until && t <= arrivals_.front_tick() && t <= ingress.queue.front_tick() && t < service_;
    }
    void queue_up(Message *m, Link &link, Link::Channel &channel, unsigned input, std::uint32_t slot);
    void queue_up_sole(Link &link);
    void wait_for_link(Message *m, Link &link, Link::Channel &channel, unsigned input);
    void wake_when_free(Link &link);
    void wait(Message *m, Link &link, Link::Channel &channel, unsigned input, std::uint32_t slot, Tick now);
    void accept(Message *m, unsigned input, Tick now);
    void multicast(Message *m, unsigned input, Tick now);
    void grant_counted(Message *m, Tick entry);
    void grant_earlier(CrossbarPort &port, const Message &m, Tick at);
    Tick deliver(Message *m, NodeIndex node, Tick now, bool expected = false);
    [[noreturn]] void no_channel(const Message &m) const;
    void count_entry(const Message &m);
    bool can_send(const Message &m, Link &link, const Link::Channel &channel, Tick now) const;
    bool forward(Message *m, Link &link, unsigned input, std::uint32_t slot, Tick now);
    void send(Message *m, Link &link, Link::Channel &channel, Tick now);
    void send_observed(Message *m, Link &link, Tick now, Tick arrive, Tick waited);
    void serve(Link &link, Tick now);
    bool choose(Grant &g, Link &link, Tick now);
    bool choose_sole(Grant &g, Link &link, Tick now);
    void carry_out(const Grant &g);
    void part_left(const Message &m, unsigned input, std::uint32_t slot, Tick at);
    void part_of_several_left(const Message &m, unsigned input, std::uint32_t slot, Tick at);
    void free_input(const Message &m, unsigned input, Tick at);
    void post_freed(Link &link, const Message &m, Tick at);
    void left_input(const Message &m, Tick at);
    bool sent_before(const Message &a, const Message &b) const;
    void arrives(Message *m, const Link &link, Tick at, Tick took);
    void arrives_delayed(Message *m, AbstractController &to, Tick at);
    static void freed_behind(Link &link, Link::Channel &channel, bool data, Tick usable);
    static void freed_before_another(Link &link, Link::Channel &channel, bool data, Tick usable);
    void credit_returned(Link &link, Tick usable);
    std::uint32_t new_slot();

    Network &network_;
    RouterCommon &common_;
    unsigned number_;
    /// What the links bring. The `entry` of a message is its input: i for the link in_[i].
    EntryQueue arrivals_;
    std::uint32_t waiting_ = 0; ///< outputs with waiting packets
    Tick service_ = kNever;     ///< earliest `wake_at` of these
    Tick slack_ = 0;            ///< see set_slack()
    Rounds *rounds_ = nullptr;
    std::vector<Way> way_; ///< by controller
    /// By controller (kMaxNodes: several). towards_: the link that leads to the controller. direct_: a controller of
    /// this chip, if a message that a link brings for it needs no wake-up of the router. Null otherwise.
    std::array<Link *, kMaxNodes + 1> towards_{};
    std::array<AbstractController *, kMaxNodes + 1> direct_{};
    std::vector<Link *> out_;
    std::vector<Link *> in_;      ///< by input port; null: this chip's controllers
    std::vector<Link *> near_in_; ///< the same, but also null for a link from a router of another queue
    std::vector<CrossbarPort> ports_;
    NetDest local_; ///< this chip's controllers
    std::vector<Slot> slots_{1};
    std::vector<std::uint32_t> free_slots_;
};

} // namespace moscope::ruby
