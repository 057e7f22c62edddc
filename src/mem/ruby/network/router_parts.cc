// SPDX-License-Identifier: BSD-3-Clause
// What a router consists of, what it has counted, and which messages it holds: everything outside the path of a message.
#include "mem/ruby/network/router.hh"

#include <algorithm>

#include "base/error.hh"
#include "mem/ruby/runtime/controller.hh"

namespace moscope::ruby {

void Router::add_port(const std::string &name) {
    CrossbarPort &port = ports_.emplace_back();
    port.name = name;
    port.router_number = number_;
    port.router = this;
    port.latency = common_.latency;
    static_assert(kMaxVnets <= Crossing::kVnets && Crossing::kHops <= kHopBins);
    for (unsigned v = 0; v < kMaxVnets; ++v)
        if (const unsigned c = common_.channel_of_vnet[v]; c < kMaxChannels) {
            port.kinds.resize(Crossing::kind_number(v + 1, 0, false));
            for (unsigned data = 0; data < 2; ++data)
                port.occupancies[2 * v + data] = common_.packet[c].port_occupancy[data];
        }
    port.grant_counted = [](Crossing &c, Message *m, Tick entry) {
        static_cast<CrossbarPort &>(c).router->grant_counted(m, entry);
    };
    port.left_input = [](Crossing &c, const Message &m, Tick at) {
        static_cast<CrossbarPort &>(c).router->left_input(m, at);
    };
}

CrossbarPort::Counts CrossbarPort::all(const RouterCommon &common, unsigned channel, ChannelStats *of_kinds) const {
    Counts n = counts[channel];
    for (unsigned v = 0; v < kVnets; ++v)
        for (unsigned i = 0; common.channel_of_vnet[v] == channel && i < 2 * kColumns; ++i) {
            const unsigned column = i / 2, with_data = i % 2;
            const Kind &k = kinds[kind_number(v, column, with_data)];
            n.messages[with_data] += k.messages;
            n.wait += k.wait;
            if (!of_kinds)
                continue;
            if (column == 0) // others have been counted where they entered
                of_kinds->sent += k.messages;
            of_kinds->delivered_by_hops[column == kParts ? 0 : column] += k.messages;
            of_kinds->latency += k.latency;
        }
    return n;
}

void CrossbarPort::reset_counts() {
    counts = {};
    std::fill(kinds.begin(), kinds.end(), Kind{});
}

PortStats CrossbarPort::counted(const RouterCommon &common) const {
    PortStats s;
    s.name = name;
    s.router = router_number;
    for (unsigned c = 0; c < common.channels; ++c) {
        const Counts of = all(common, c);
        for (unsigned with_data = 0; with_data < 2; ++with_data) {
            const std::uint64_t n = of.messages[with_data];
            s.messages += n;
            s.bytes += n * common.packet[c].bytes[with_data];
            s.busy += static_cast<Tick>(n) * common.packet[c].port_occupancy[with_data];
        }
        s.wait += of.wait;
    }
    return s;
}

ChannelStats Router::counted(unsigned channel) const {
    ChannelStats s = stats[channel];
    for (const CrossbarPort &port : ports_) {
        const CrossbarPort::Counts n = port.all(common_, channel, &s);
        s.delivered += n.messages[0] + n.messages[1];
        s.queueing += n.wait;
    }
    return s;
}

void Router::add_local(NodeIndex node, unsigned port) {
    way_.resize(std::max<std::size_t>(way_.size(), node + 1u));
    way_[node] = {nullptr, port};
    local_.add_index(node);
}

void Router::set_inputs(std::vector<Link *> links) {
    in_ = std::move(links);
    in_.insert(in_.begin(), nullptr);
    for (Link *link : in_)
        near_in_.push_back(link && !link->crosses ? link : nullptr);
}

void Router::no_channel(const Message &m) const {
    network_.bad_message(m, "no channel is given for this virtual network");
}

void Router::open_direct_ways(const std::vector<AbstractController *> &controllers) {
    // Without latency a message could arrive at the tick of its entry, when the other entries are not known.
    if (common_.latency == 0)
        return;
    ingress.direct = true;
    local_.for_each([&](NodeIndex node) {
        CrossbarPort &port = ports_[way_[node].port];
        controllers[node]->crossing = &port;
        port.jitter = network_.jitter_.on() ? &network_.jitter_ : nullptr;
        port.set_traced(network_.trace != nullptr);
        ingress.same_chip[node] = controllers[node];
        port.controllers = ingress.same_chip.data();
        for (unsigned v = 0; v < kMaxVnets; ++v)
            if (common_.channel_of_vnet[v] != kMaxChannels)
                controllers[node]->from_crossing[v] = network_.from_network(node, v);
    });
    ingress.routed = &routed_vnets;
    ingress.first_routed = [](Ingress &in, std::uint32_t vnet) {
        auto &self = *static_cast<Router *>(in.owner);
        for (const auto &r : *self.all)
            if (&r->queue() == &self.queue())
                r->routed_vnets |= vnet;
            else
                self.queue().post(r->queue(), {[](const ProcessMessage &p) {
                                                   static_cast<Router *>(p.to)->routed_vnets |= p.number[0];
                                               },
                                               kNever,
                                               r.get(),
                                               nullptr,
                                               {vnet}});
    };
    ingress.split = [](Ingress &in, Message *m, Tick ready) {
        return static_cast<Router *>(in.owner)->split_to_locals(m, ready);
    };
}

void Router::add_remote(NodeIndex node, unsigned output) {
    way_.resize(std::max<std::size_t>(way_.size(), node + 1u));
    way_[node] = {out_[output], 0};
    towards_[node] = out_[output];
    out_[output]->reach.add_index(node);
}

void Router::set_slack(Tick slack, Rounds *rounds) {
    slack_ = ingress.slack = slack;
    rounds_ = rounds;
    schedule(kNever);
    ingress.router = rounds ? static_cast<Component *>(rounds) : this;
    ingress.active = rounds ? &rounds->active : &ingress.alone;
    ingress.bit = std::uint64_t{1} << (rounds ? number_ : 0);
    local_.for_each([this](NodeIndex node) { direct_[node] = slack_ ? ingress.same_chip[node] : nullptr; });
    if (const Tick next = deadline(); next != kNever)
        ingress.wake(std::max(next, queue().now()));
}

std::uint32_t Router::new_slot() {
    std::uint32_t slot;
    if (free_slots_.empty()) {
        slot = static_cast<std::uint32_t>(slots_.size());
        slots_.emplace_back();
    } else {
        slot = free_slots_.back();
        free_slots_.pop_back();
    }
    slots_[slot] = {1, 0};
    return slot;
}

/// Grants a message from a link only if a wake-up of this router for it would have happened by now.
void Router::grant_all() {
    std::vector<EntryQueue::Entry> later;
    for (CrossbarPort &port : ports_) {
        for (unsigned i = 0; i < port.waiting.size();) {
            const auto entry = port.waiting.at(i);
            if (entry.item->hops == 0 || queue().passed(*this, entry.tick)) {
                ++i;
            } else {
                later.push_back(entry);
                port.waiting.remove_at(i);
            }
        }
        port.grant(queue().limit());
        for (const auto &[tick, m] : later)
            port.waiting.insert_if(tick, m, [](const Message *o) { return o->hops == 0; });
        later.clear();
    }
}

void Router::for_each_entering(const std::function<void(const HeldMessage &)> &f) {
    for (const CrossbarPort &port : ports_)
        for (unsigned i = 0; i < port.waiting.size(); ++i)
            if (port.waiting.at(i).item->hops == 0 && !port.waiting.at(i).item->entered)
                f({port.waiting.at(i).item, port.waiting.at(i).tick, "crossbar of router " + std::to_string(number_)});
    for (unsigned i = 0; i < ingress.queue.size(); ++i)
        f({ingress.queue.at(i).item, ingress.queue.at(i).tick, "entry of router " + std::to_string(number_)});
}

void Router::for_each_inside(const std::function<void(const HeldMessage &)> &f) {
    const std::string here = "router " + std::to_string(number_);
    const auto on_a_link = [&](Message *m, Tick arrival) {
        f({m, arrival, "on the link " + std::to_string(in_[m->entry]->from->number_) + "->" + std::to_string(number_)});
    };
    for (unsigned i = 0; i < arrivals_.size(); ++i)
        on_a_link(arrivals_.at(i).item, arrivals_.at(i).tick);
    for (const CrossbarPort &port : ports_)
        for (unsigned i = 0; i < port.waiting.size(); ++i)
            if (const auto [tick, m] = port.waiting.at(i); m->hops != 0)
                on_a_link(m, tick);
            else if (m->entered) // one copy of a message to several controllers
                f({m, tick, "crossbar of " + here});
    for (Link *link : out_) {
        const auto waits = [&](Message *m, const Link::Channel &channel, bool first) {
            const char *why = !first                                        ? "behind an older packet"
                              : channel.commands.none(link->free_commands)  ? "no command buffer"
                              : !link->has_credit(channel, m->carries_data) ? "no data buffer"
                                                                            : "its turn";
            f({m, m->stamp,
               here + ", waits for the link to " + std::to_string(link->to->number_) + ", channel " +
                   common_.channel_names[channel.number] + ": " + why});
        };
        if (link->waiting == Link::kSole)
            waits(link->sole.message, *link->sole.channel, true);
        for (const Link::Channel &channel : link->channel)
            for (const auto &queue : channel.queue)
                for (unsigned i = 0; i < queue.size(); ++i)
                    waits(queue.at(i).message, channel, i == 0);
    }
}

} // namespace moscope::ruby
