// SPDX-License-Identifier: BSD-3-Clause
// Building the HyperTransport network, and its statistics.
#include "mem/ruby/network/hypertransport.hh"

#include <algorithm>

#include "base/error.hh"
#include "mem/ruby/runtime/controller.hh"

namespace moscope::ruby {

HyperTransport::HyperTransport(const std::vector<EventQueue *> &queues, const NetworkParams &p,
                               const std::vector<ControllerName> &controllers)
    : Network(static_cast<unsigned>(controllers.size())), tables_(p) {
    jitter_.init(p.jitter, p.seed, nodes_);
    common_.latency = p.router_latency;
    for (unsigned c = 0; c < p.channels.size(); ++c)
        for (unsigned data = 0; data < 2; ++data) {
            RouterCommon::Packet &packet = common_.packet[c];
            packet.bytes[data] = p.packet_bytes(c, data);
            const std::int64_t cycles = (packet.bytes[data] + p.port_bytes_per_cycle - 1) / p.port_bytes_per_cycle;
            packet.port_occupancy[data] = cycles * p.crossbar_period_num / p.crossbar_period_den;
        }
    common_.channels = static_cast<unsigned>(p.channels.size());
    std::fill(std::begin(common_.channel_of_vnet), std::end(common_.channel_of_vnet), kMaxChannels);
    std::copy(p.vnet_channel.begin(), p.vnet_channel.end(), std::begin(common_.channel_of_vnet));
    for (const auto &c : p.channels)
        common_.channel_names.push_back(c.name);

    for (unsigned r = 0; r < p.routers; ++r)
        routers_.push_back(
            std::make_unique<Router>(*queues[r % queues.size()], "router" + std::to_string(r), *this, common_, r));
    build_links(p);
    connect(p, controllers);
}

void HyperTransport::build_links(const NetworkParams &p) {
    std::vector<std::vector<Link *>> out(p.routers), in(p.routers);
    for (const DirectedLink &d : tables_.links()) {
        const LinkParams &params = p.links[d.params];
        auto link = std::make_unique<Link>();
        link->from = routers_[d.from].get();
        link->to = routers_[d.to].get();
        link->index = static_cast<unsigned>(out[d.from].size());
        link->input = static_cast<unsigned>(in[d.to].size()) + 1; // input 0: the chip's controllers
        link->crosses = link->observed = &link->from->queue() != &link->to->queue();
        link->crossbar = common_.latency;
        link->flight = params.latency_fs;
        link->credit_flight = params.credit_latency_fs < 0 ? params.latency_fs : params.credit_latency_fs;
        link->unordered = link->credit_flight < link->crossbar;
        out[d.from].push_back(link.get());
        in[d.to].push_back(link.get());
        links_.push_back(std::move(link));
    }
    for (unsigned r = 0; r < p.routers; ++r) {
        if (out[r].size() > 31) // one bit each in the routers' words
            throw UserError("network.links: router " + std::to_string(r) + " has " + std::to_string(out[r].size()) +
                            " links: expected at most 31");
        routers_[r]->set_outputs(out[r]);
        routers_[r]->set_inputs(in[r]);
    }
    for (unsigned l = 0; l < links_.size(); ++l) {
        Link &link = *links_[l];
        const LinkParams &params = p.links[tables_.links()[l].params];
        link.free_commands.init(p.free_commands * params.credit_sets);
        link.free_data.init(p.free_data * params.credit_sets);
        link.channel.resize(common_.channels);
        for (unsigned c = 0; c < common_.channels; ++c) {
            Link::Channel &channel = link.channel[c];
            channel.number = c;
            channel.next = (c + 1) & 31;
            channel.commands.own.init(p.channels[c].commands * params.credit_sets);
            channel.data.own.init(p.channels[c].data * params.credit_sets);
            channel.queue.resize(in[tables_.links()[l].from].size() + 1);
            for (unsigned data = 0; data < 2; ++data) {
                channel.bytes[data] = common_.packet[c].bytes[data];
                channel.serialization[data] = params.serialization(channel.bytes[data]);
                channel.on_link[data] = channel.serialization[data] + link.flight;
            }
        }
        for (unsigned v = 0; v < kMaxVnets; ++v)
            if (common_.channel_of_vnet[v] < kMaxChannels)
                link.of_vnet[v] = &link.channel[common_.channel_of_vnet[v]];
    }
}

void HyperTransport::connect(const NetworkParams &p, const std::vector<ControllerName> &controllers) {
    std::vector<const PortParams *> port_of(nodes_, nullptr);
    for (const PortParams &port : p.ports) {
        const auto c = std::find_if(controllers.begin(), controllers.end(), [&](const ControllerName &x) {
            return x.machine == port.machine && x.version == port.version;
        });
        const std::string name = port.machine + " " + std::to_string(port.version);
        if (c == controllers.end())
            throw UserError("network.ports: there is no controller " + name + ": expected one of the machine's");
        auto &slot = port_of[static_cast<std::size_t>(c - controllers.begin())];
        if (slot)
            throw UserError("network.ports: controller " + name + " is connected twice: expected once each");
        slot = &port;
    }
    std::vector<std::vector<std::string>> names(p.routers); ///< ports by router
    std::vector<unsigned> port_number(nodes_);
    for (unsigned n = 0; n < nodes_; ++n) {
        const std::string own = controllers[n].machine + std::to_string(controllers[n].version);
        if (!port_of[n])
            throw UserError("network.ports: controller " + own + " is not connected: expected a router for each");
        const std::string &name = port_of[n]->port.empty() ? own : port_of[n]->port;
        const unsigned r = port_of[n]->router;
        router_of_.push_back(r);
        auto known = std::find(names[r].begin(), names[r].end(), name);
        port_number[n] = static_cast<unsigned>(known - names[r].begin());
        if (known == names[r].end()) {
            names[r].push_back(name);
            routers_[r]->add_port(std::to_string(r) + ":" + name);
        }
    }
    for (unsigned r = 0; r < p.routers; ++r)
        for (unsigned n = 0; n < nodes_; ++n) {
            const auto node = static_cast<NodeIndex>(n);
            if (router_of_[n] == r) {
                routers_[r]->add_local(node, port_number[n]);
                continue;
            }
            routers_[r]->add_remote(node, links_[tables_.towards(r, router_of_[n])]->index);
        }
}

void HyperTransport::open_direct_ways(const std::vector<AbstractController *> &controllers) {
    // A bounded source needs to know of a grant at once.
    if (has_bounded_sources())
        return;
    for (auto &r : routers_) {
        r->all = &routers_;
        r->open_direct_ways(controllers);
    }
    slack_ = slack(controllers);
    if (jitter_.on() && routers_.size() > Rounds::kMost)
        slack_ = 0; // a delayed message relies on Rounds
    if (slack_ && routers_.size() <= Rounds::kMost)
        rounds_ = std::make_unique<Rounds>(routers_.front()->queue(), routers_, slack_);
    for (auto &r : routers_)
        r->set_slack(slack_, rounds_.get());
}

/// How much later than at its tick a router may make a decision: always before its consequences, an arrival at another
/// router or a credit. A port towards a controller decides when the controller wakes, which must also be before them.
Tick HyperTransport::slack(const std::vector<AbstractController *> &controllers) const {
    if (common_.latency == 0)
        return 0;
    Tick least = kNever;
    for (const auto &link : links_) {
        if (link->crosses)
            return 0; // ends of epochs depend on the ticks of wake-ups
        least = std::min(least, link->credit_flight - common_.latency);
        for (const Link::Channel &c : link->channel)
            least = std::min(least, link->way(c, false));
    }
    Tick period = 0;
    for (const AbstractController *c : controllers)
        period = std::max(period, c->clock().clock().num / c->clock().clock().den + 1);
    return least != kNever && least > common_.latency + period + 1 ? least - 1 : 0;
}

void HyperTransport::set_trace(TraceHook *hook) {
    trace = hook;
    for (auto &l : links_)
        l->observed = l->crosses || hook;
    for (auto &r : routers_)
        for (auto &port : r->ports())
            port.set_traced(hook != nullptr);
    for (auto &r : routers_)
        r->catch_up();
    if (rounds_)
        rounds_->rest();
    for (auto &r : routers_) // events are reported in the order of their ticks
        r->set_slack(hook ? 0 : slack_, hook ? nullptr : rounds_.get());
}

/// Routers and ports as they are at the end of the run.
void HyperTransport::catch_up() const {
    for (const auto &r : routers_)
        r->catch_up();
    for (const auto &r : routers_)
        r->grant_all();
}

Tick HyperTransport::min_path_latency(NodeIndex from, NodeIndex to) const {
    Tick t = common_.latency;
    unsigned r = router_of_[from];
    while (r != router_of_[to]) {
        const unsigned l = tables_.towards(r, router_of_[to]);
        Tick shortest = kNever; // of the packets of all channels
        for (const Link::Channel &c : links_[l]->channel)
            shortest = std::min(shortest, c.serialization[0]);
        t += shortest + links_[l]->flight + common_.latency;
        r = tables_.links()[l].to;
    }
    return t;
}

NetworkStats HyperTransport::stats() const {
    catch_up();
    NetworkStats s;
    s.kind = "hypertransport";
    s.channel_names = common_.channel_names;
    s.channel.resize(common_.channels);
    for (const auto &r : routers_)
        for (unsigned c = 0; c < common_.channels; ++c)
            s.channel[c] += r->counted(c);
    for (unsigned l = 0; l < links_.size(); ++l) {
        const DirectedLink &d = tables_.links()[l];
        s.link.push_back({std::to_string(d.from) + "->" + std::to_string(d.to), d.from, d.to, {}});
        for (unsigned c = 0; c < common_.channels; ++c) {
            s.link.back().channel.push_back(links_[l]->channel[c].counted());
            const Link::Channel &channel = links_[l]->channel[c];
            s.channel[c].sent += channel.entered;
            s.channel[c].queueing += channel.wait;
            s.channel[c].latency += channel.wait;
            for (const bool data : {false, true})
                s.channel[c].latency += static_cast<Tick>(channel.sent[data]) * links_[l]->way(channel, data);
        }
    }
    for (const auto &r : routers_)
        for (const auto &port : r->ports())
            s.port.push_back(port.counted(common_));
    return s;
}

void HyperTransport::reset_stats(Tick now) {
    catch_up();
    for (auto &r : routers_)
        r->stats.assign(common_.channels, {});
    for (auto &l : links_)
        for (auto &c : l->channel)
            c.reset_counts(now);
    for (auto &r : routers_)
        for (auto &port : r->ports())
            port.reset_counts();
}

void HyperTransport::for_each_held(const std::function<void(const HeldMessage &)> &f) {
    for (auto &r : routers_)
        r->catch_up();
    for (auto &r : routers_) {
        r->for_each_inside(f);
        r->for_each_entering(f);
    }
}

} // namespace moscope::ruby
