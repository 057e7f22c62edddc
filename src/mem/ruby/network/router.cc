// SPDX-License-Identifier: BSD-3-Clause
// A chip's crossbar at work.
#include "mem/ruby/network/router.hh"

#include <algorithm>

#include "base/error.hh"
#include "mem/ruby/runtime/controller.hh"

namespace moscope::ruby {

namespace {

/// The lowest bit of `bits` at or after `from`, or else the lowest of all; bits != 0, from < 32.
unsigned next_in_turn(std::uint32_t bits, unsigned from) {
    const std::uint32_t later = bits >> from << from;
    return static_cast<unsigned>(std::countr_zero(later ? later : bits));
}

} // namespace

Router::Router(EventQueue &queue, std::string name, Network &network, RouterCommon &common, unsigned number)
    : Component(queue, std::move(name), [](Component &c, Tick now) { static_cast<Router &>(c).wake(now); }),
      network_(network),
      common_(common),
      number_(number) {
    ingress.router = this;
    stats.resize(common.channels);
}

void Router::add_port(const std::string &name) {
    ports_.emplace_back();
    ports_.back().stats.name = name;
    ports_.back().stats.router = number_;
    ports_.back().router = this;
    ports_.back().latency = common_.latency;
    static_assert(kMaxVnets <= Crossing::kVnets);
    for (unsigned v = 0; v < kMaxVnets; ++v)
        if (const unsigned c = common_.channel_of_vnet[v]; c < kMaxChannels)
            std::copy_n(common_.packet[c].port_occupancy, 2, ports_.back().occupancy[v]);
    ports_.back().grant_entry = [](Crossing &c, Tick before) {
        auto &port = static_cast<CrossbarPort &>(c);
        port.router->grant_entered(port, before);
    };
}

void Router::add_local(NodeIndex node, unsigned port) {
    way_.resize(std::max<std::size_t>(way_.size(), node + 1u));
    way_[node] = {nullptr, port};
    local_.add_index(node);
}

void Router::open_direct_ways(const std::vector<AbstractController *> &controllers) {
    // Without latency a message could arrive at the tick of its entry, when the other entries are not known.
    if (common_.latency == 0)
        return;
    ingress.same_chip.assign(controllers.size(), nullptr);
    local_.for_each([&](NodeIndex node) {
        controllers[node]->crossing = &ports_[way_[node].port];
        ingress.same_chip[node] = controllers[node];
    });
    ingress.routed = &routed_vnets;
    ingress.first_routed = [](Ingress &in, std::uint32_t vnet) {
        auto &self = *static_cast<Router *>(in.router);
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
        return static_cast<Router *>(in.router)->split_to_locals(m, ready);
    };
}

/// The parts of a message to several controllers of this chip enter the crossbar's ports without the router's waking.
bool Router::split_to_locals(Message *m, Tick ready) {
    NetDest rest = m->destination();
    if (rest.isEmpty() || !local_.isSuperset(rest))
        return false;
    count_entry(*m, static_cast<unsigned>(rest.count()));
    while (true) {
        const NodeIndex node = rest.first_index();
        rest.remove_index(node);
        Message *part = rest.isEmpty() ? m : message_pool().clone(m);
        part->destination().clear();
        part->destination().add_index(node);
        part->to = node;
        part->entered = true;
        ingress.same_chip[node]->enter_crossing(part, ready);
        if (rest.isEmpty())
            return true;
    }
}

void Router::add_remote(NodeIndex node, unsigned output) {
    way_.resize(std::max<std::size_t>(way_.size(), node + 1u));
    way_[node] = {out_[output], 0};
    out_[output]->reach.add_index(node);
}

/// Counts a message that enters here.
inline void Router::count_entry(const Message &m, unsigned destinations) {
    const unsigned channel = common_.channel_of_vnet[m.vnet];
    if (__builtin_expect(channel == kMaxChannels, 0))
        network_.bad_message(m, "no channel is given for this virtual network");
    ++stats[channel].sent;
    add_latency(stats[channel], -static_cast<std::uint64_t>(m.stamp) * destinations);
}

inline bool Router::can_send(const Message &m, Link &link, const Link::Channel &channel, Tick now) const {
    link.take_back(now + common_.latency); // a credit may come back while the packet crosses
    return channel.waiting == 0 && link.free_at <= now && link.credit(channel, m.carries_data) - common_.latency <= now;
}

/// Puts m on the link: it crosses the crossbar from now on, and is on the wire after that.
[[gnu::always_inline]] inline void Router::send(Message *m, Link &link, unsigned c, Tick now) {
    Link::Channel &channel = link.channel[c];
    const bool data = m->carries_data;
    const Tick serialization = channel.serialization[data];
    channel.commands.take(link.free_commands);
    if (data)
        channel.data.take(link.free_data);
    link.free_at = now + serialization;
    link.next_channel = (c + 1) & 31;

    const Tick waited = now - m->stamp;
    const Tick depart = now + common_.latency;
    const Tick arrive = depart + serialization + link.flight;
    m->account(Segment::queue, now);
    m->account(Segment::crossbar, depart);
    m->account(Segment::link, arrive);
    ++m->hops;
    ++m->txn_hops;

    LinkChannelStats &s = channel.stats;
    ++s.packets;
    s.data_packets += data;
    s.wait_fs += waited;
    stats[c].queueing += waited;
    if (__builtin_expect(network_.trace != nullptr, 0))
        network_.trace->hop(*m, number_, link.to->number_, depart, arrive);
    if (__builtin_expect(link.crosses, 0)) {
        const auto open = [](const ProcessMessage &p) {
            auto &l = *static_cast<Link *>(p.to);
            l.to->arrives(static_cast<Message *>(p.what), l, p.due);
        };
        queue().post(link.to->queue(), {open, arrive, &link, m, {}});
    } else {
        link.to->arrives(m, link, arrive);
    }
}

/// m will be here at tick `at`. Of those that arrive at one tick the one sent first is the first, and of those sent at one
/// tick the one of the router with the lower number.
inline void Router::arrives(Message *m, const Link &link, Tick at) {
    const auto sent = [this, at](const Arrival &a) {
        const Link &l = *in_[a.input - 1];
        const Tick on_the_way =
            l.channel[common_.channel_of_vnet[a.message->vnet]].serialization[a.message->carries_data] + l.flight;
        return std::pair(at - on_the_way, l.from->number_);
    };
    const Arrival arrival{m, link.input};
    arrivals_.insert_if(at, arrival, [&](const Arrival &other) { return sent(other) > sent(arrival); });
    schedule_no_later_than(at);
}

[[gnu::always_inline]] inline void Router::free_input(const Message &m, unsigned input, Tick at) {
    if (input == 0) {
        network_.free_source(m.source, m.vnet);
        return;
    }
    Link &link = *in_[input - 1];
    const auto c = static_cast<std::uint8_t>(common_.channel_of_vnet[m.vnet]);
    const Tick usable = at + link.credit_flight;
    if (__builtin_expect(link.crosses, 0)) {
        const auto open = [](const ProcessMessage &p) {
            auto &l = *static_cast<Link *>(p.to);
            l.from->freed_behind(l, static_cast<std::uint8_t>(p.number[0]), p.number[1],
                                 static_cast<Tick>(p.number[2]));
        };
        queue().post(
            link.from->queue(),
            {open, usable - common_.latency, &link, nullptr, {c, m.carries_data, static_cast<std::uint64_t>(usable)}});
    } else {
        link.from->freed_behind(link, c, m.carries_data, usable);
    }
}

/// A packet of channel c has left its buffers behind the link, which may be used again from a tick on.
[[gnu::always_inline]] inline void Router::freed_behind(Link &link, std::uint8_t c, bool data, Tick usable) {
    link.returning.insert(usable, {c, false});
    if (data)
        link.returning.insert(usable, {c, true});
    if (link.waiting)
        credit_returned(link, usable);
}

/// The usual case of accept(): one destination, behind a link that can take the packet now. False: not that case.
[[gnu::always_inline]] inline bool Router::pass_on(Message *m, unsigned input, Tick now) {
    if (m->to >= way_.size() || !way_[m->to].link)
        return false;
    Link &link = *way_[m->to].link;
    const unsigned c = common_.channel_of_vnet[m->vnet];
    if (c >= link.channel.size() || !can_send(*m, link, link.channel[c], now))
        return false;
    if (input == 0)
        count_entry(*m, 1);
    send(m, link, c, now);
    free_input(*m, input, now);
    return true;
}

void Router::wake(Tick now) {
    for (std::uint32_t w = waiting_; w; w &= w - 1) {
        Link &link = *out_[static_cast<unsigned>(std::countr_zero(w))];
        if (link.wake_at > now)
            continue;
        if (now < link.free_at) // granted to a packet that did not have to wait
            link.wake_at = link.free_at;
        else
            serve(link, now);
    }
    // Through traffic before the chip's own at the same tick.
    while (arrivals_.front_tick() <= now) {
        const Arrival a = arrivals_.front().item;
        arrivals_.pop();
        if (!pass_on(a.message, a.input, now))
            accept(a.message, a.input, now);
    }
    while (ingress.queue.front_tick() <= now) {
        Message *m = ingress.queue.front().item;
        ingress.queue.pop();
        if (!pass_on(m, 0, now))
            accept(m, 0, now);
    }

    Tick next = std::min(arrivals_.front_tick(), ingress.queue.front_tick());
    for (std::uint32_t w = waiting_; w; w &= w - 1)
        next = std::min(next, out_[static_cast<unsigned>(std::countr_zero(w))]->wake_at);
    schedule_no_later_than(next);
}

void Router::accept(Message *m, unsigned input, Tick now) {
    const NodeIndex node = m->to;
    if (__builtin_expect(node == kMaxNodes, 0)) {
        multicast(m, input, now);
        return;
    }
    if (input == 0)
        count_entry(*m, 1);
    if (__builtin_expect(node >= way_.size(), 0))
        network_.no_destination(*m, node);
    Link *link = way_[node].link;
    if (!link) {
        ports_[way_[node].port].grant(now);
        part_left(*m, input, 0, deliver(m, node, now));
    } else if (forward(m, *link, input, 0, now)) {
        part_left(*m, input, 0, now);
    }
}

void Router::multicast(Message *m, unsigned input, Tick now) {
    if (m->dest_offset == 0 || m->destination().isEmpty())
        network_.bad_message(*m, "has no destination");
    NetDest rest = m->destination();
    if (input == 0)
        count_entry(*m, static_cast<unsigned>(rest.count()));
    // The input buffer is free when the last part has left; this function holds it until all have been seen.
    const bool shared = input != 0 || network_.has_bounded_sources();
    const std::uint32_t slot = shared ? new_slot() : 0;
    const auto take_part = [&](const NetDest &part) {
        rest.removeNetDest(part);
        Message *p = rest.isEmpty() ? m : message_pool().clone(m);
        p->destination() = part;
        p->note_destination();
        if (slot)
            ++slots_[slot].parts;
        return p;
    };
    for (Link *link : out_) {
        if (rest.intersectionIsEmpty(link->reach))
            continue;
        Message *p = take_part(rest.AND(link->reach));
        if (forward(p, *link, input, slot, now) && slot)
            part_left(*p, input, slot, now);
    }
    rest.AND(local_).for_each([&](NodeIndex node) {
        NetDest one;
        one.add_index(node);
        Message *p = take_part(one);
        if (input == 0 && !ingress.same_chip.empty()) { // in its place among those that enter at this tick
            p->entered = true;
            ingress.same_chip[node]->enter_crossing(p, now);
            return;
        }
        ports_[way_[node].port].grant(now);
        const Tick left = deliver(p, node, now);
        if (slot)
            part_left(*p, input, slot, left);
    });
    if (!rest.isEmpty())
        network_.no_destination(*m, rest.first_index());
    if (slot)
        part_left(*m, input, slot, now);
}

/// Hands on what this chip's controllers have sent to a port and what has entered before a tick.
void Router::grant_entered(CrossbarPort &port, Tick before) {
    while (port.waiting.front_tick() < before) {
        const auto [entry, m] = port.waiting.front();
        port.waiting.pop();
        if (!m->entered)
            count_entry(*m, 1);
        const NodeIndex node = m->to;
        --ingress.same_chip[node]->crossing_to_here;
        deliver(m, node, entry, true);
    }
}

/// Hands m to a controller of this chip; returns the tick at which it leaves the input.
Tick Router::deliver(Message *m, NodeIndex node, Tick now, bool expected) {
    MessageBuffer *buffer = network_.from_network(node, m->vnet);
    if (__builtin_expect(!buffer, 0))
        network_.no_destination(*m, node);
    CrossbarPort &port = ports_[way_[node].port];
    const RouterCommon::Packet &packet = common_.packet[common_.channel_of_vnet[m->vnet]];
    const bool data = m->carries_data;
    const Tick start = std::max(now, port.free_at);
    port.free_at = start + packet.port_occupancy[data];
    Tick arrival = start + common_.latency;
    m->account(Segment::queue, start);
    m->account(Segment::crossbar, arrival);
    if (__builtin_expect(network_.jitter_.on(), 0)) {
        arrival = network_.jitter_.delay(*m, node, arrival);
        m->account(Segment::queue, arrival);
    }
    if (__builtin_expect(network_.trace != nullptr, 0)) {
        arrival += network_.trace->delivered(*m, node, arrival);
        m->account(Segment::queue, arrival);
    }
    ++port.stats.messages;
    port.stats.bytes += packet.bytes[data];
    port.stats.busy += packet.port_occupancy[data];
    port.stats.wait += start - now;
    left(*m, arrival, start - now);
    if (expected)
        buffer->deliver_expected(m, arrival);
    else
        buffer->deliver(m, arrival);
    return start;
}

/// Sends m over the link if that is possible now (true), or queues it there.
bool Router::forward(Message *m, Link &link, unsigned input, std::uint32_t slot, Tick now) {
    const unsigned c = common_.channel_of_vnet[m->vnet];
    Link::Channel &channel = link.channel[c];
    if (can_send(*m, link, channel, now)) {
        send(m, link, c, now);
        return true;
    }
    channel.queue[input].push({m, slot});
    channel.waiting |= 1u << input;
    link.waiting |= 1u << c;
    waiting_ |= 1u << link.index;
    if (now < link.free_at)
        link.wake_at = link.free_at;
    else
        serve(link, now);
    return false;
}

/// Grants the link to one of its waiting packets if possible, and sets when to look again. Channels take
/// turns, and within a channel the input ports; a channel without credit is passed over.
void Router::serve(Link &link, Tick now) {
    link.take_back(now + common_.latency);
    Tick soonest = link.returning.front_tick() == kNever ? kNever : link.returning.front_tick() - common_.latency;
    unsigned c = link.next_channel;
    for (std::uint32_t channels = link.waiting; channels; channels &= ~(1u << c)) {
        c = next_in_turn(channels, c);
        Link::Channel &channel = link.channel[c];
        unsigned input = channel.next_input;
        for (std::uint32_t inputs = channel.waiting; inputs; inputs &= ~(1u << input)) {
            input = next_in_turn(inputs, input);
            const Waiting head = channel.queue[input].front();
            // A credit may come back while the packet crosses.
            const Tick credit = link.credit(channel, head.message->carries_data);
            const Tick possible = credit == kNever ? kNever : credit - common_.latency;
            if (possible > now) {
                soonest = std::min(soonest, possible);
                continue;
            }
            channel.queue[input].pop();
            if (channel.queue[input].empty())
                channel.waiting &= ~(1u << input);
            if (!channel.waiting)
                link.waiting &= ~(1u << c);
            if (!link.waiting)
                waiting_ &= ~(1u << link.index);
            channel.next_input = (input + 1) & 31;
            if (channel.blocked_since != kNever) {
                channel.stats.credit_stall_fs += std::max<Tick>(0, possible - channel.blocked_since);
                channel.blocked_since = kNever;
            }
            send(head.message, link, c, now);
            part_left(*head.message, input, head.slot, now);
            link.wake_at = link.waiting ? link.free_at : kNever;
            return;
        }
        if (channel.blocked_since == kNever)
            channel.blocked_since = now;
    }
    link.wake_at = soonest;
}

/// A part of a packet goes from its input buffer at tick `at`.
void Router::part_left(const Message &m, unsigned input, std::uint32_t slot, Tick at) {
    if (slot) {
        Slot &s = slots_[slot];
        s.release = std::max(s.release, at);
        if (--s.parts)
            return;
        at = s.release;
        free_slots_.push_back(slot);
    }
    free_input(m, input, at);
}

void Router::credit_returned(Link &link, Tick usable) {
    const Tick t = std::max({usable - common_.latency, link.free_at, queue().now()});
    if (t < link.wake_at) {
        link.wake_at = t;
        schedule_no_later_than(t);
    }
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

void Router::for_each_entering(const std::function<void(const HeldMessage &)> &f) {
    for (const CrossbarPort &port : ports_)
        for (unsigned i = 0; i < port.waiting.size(); ++i)
            f({port.waiting.at(i).item, port.waiting.at(i).tick, "crossbar of router " + std::to_string(number_)});
    for (unsigned i = 0; i < ingress.queue.size(); ++i)
        f({ingress.queue.at(i).item, ingress.queue.at(i).tick, "entry of router " + std::to_string(number_)});
}

void Router::for_each_inside(const std::function<void(const HeldMessage &)> &f) {
    const std::string here = "router " + std::to_string(number_);
    for (unsigned i = 0; i < arrivals_.size(); ++i) {
        const Arrival &a = arrivals_.at(i).item;
        f({a.message, arrivals_.at(i).tick,
           "on the link " + std::to_string(in_[a.input - 1]->from->number_) + "->" + std::to_string(number_)});
    }
    for (Link *link : out_)
        for (unsigned c = 0; c < link->channel.size(); ++c) {
            const Link::Channel &channel = link->channel[c];
            for (const auto &queue : channel.queue)
                for (unsigned i = 0; i < queue.size(); ++i) {
                    Message *m = queue.at(i).message;
                    const char *why = i > 0                                              ? "behind an older packet"
                                      : link->credit(channel, false) == kNever           ? "no command buffer"
                                      : link->credit(channel, m->carries_data) == kNever ? "no data buffer"
                                                                                         : "its turn";
                    f({m, m->stamp,
                       here + ", waits for the link to " + std::to_string(link->to->number_) + ", channel " +
                           common_.channel_names[c] + ": " + why});
                }
        }
}

} // namespace moscope::ruby
