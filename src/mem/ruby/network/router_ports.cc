// SPDX-License-Identifier: BSD-3-Clause
// Messages to the controllers of a router's chip, at the ports of its crossbar, and seldom used parts of a packet's
// path.
#include "base/error.hh"
#include "mem/ruby/network/router_input.hh"
#include "mem/ruby/runtime/controller.hh"

namespace moscope::ruby {

/// Lets the parts of a message to several controllers of this chip enter the crossbar's ports without a wake-up of the
/// router. False: it has other destinations, too, or none.
bool Router::split_to_locals(Message *m, Tick ready) {
    NetDest rest = m->destination();
    if (rest.isEmpty() || !local_.isSuperset(rest))
        return false;
    count_entry(*m);
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

/// Counts a message that enters here.
inline void Router::count_entry(const Message &m) {
    const unsigned channel = common_.channel_of_vnet[m.vnet];
    if (__builtin_expect(channel == kMaxChannels, 0))
        no_channel(m);
    ++stats[channel].sent;
}

/// Hands m to a controller of this chip; returns the tick at which it leaves the input. expected: it has waited for the
/// port, and the controller wakes for it.
[[gnu::always_inline]] inline Tick Router::deliver(Message *m, NodeIndex node, Tick now, bool expected) {
    MessageBuffer *buffer = network_.from_network(node, m->vnet);
    if (__builtin_expect(!buffer, 0))
        network_.no_destination(*m, node);
    CrossbarPort &port = ports_[way_[node].port];
    const unsigned channel = common_.channel_of_vnet[m->vnet];
    const bool data = m->carries_data;
    const Tick start = std::max(now, port.free_at);
    port.free_at = start + port.occupancy(*m);
    Tick arrival = start + common_.latency;
    const Tick since = m->stamp;
    m->account(Segment::queue, start);
    m->account(Segment::crossbar, arrival);
    if (__builtin_expect(network_.jitter_.on(), 0)) {
        if (!expected)
            network_.jitter_.draw(*m, node, now);
        arrival = network_.jitter_.delay(*m, node, arrival);
        m->account(Segment::queue, arrival);
    }
    if (__builtin_expect(network_.trace != nullptr, 0)) {
        arrival += network_.trace->delivered(*m, node, arrival);
        m->account(Segment::queue, arrival);
    }
    ++port.counts[channel].messages[data];
    port.counts[channel].wait += start - now;
    ChannelStats &s = stats[channel];
    ++s.delivered_by_hops[m->hops < kHopBins ? m->hops : kHopBins - 1];
    s.latency += arrival - since;
    if (expected)
        buffer->deliver_expected(m, arrival);
    else
        buffer->deliver(m, arrival);
    return start;
}

/// A message to a controller of this chip, or to several.
void Router::accept(Message *m, unsigned input, Tick now) {
    const NodeIndex node = m->to;
    if (__builtin_expect(node == kMaxNodes, 0)) {
        multicast(m, input, now);
        return;
    }
    if (input == 0)
        count_entry(*m);
    if (__builtin_expect(node >= way_.size(), 0))
        network_.no_destination(*m, node);
    ports_[way_[node].port].grant(now);
    part_left(*m, input, 0, deliver(m, node, now));
}

void Router::multicast(Message *m, unsigned input, Tick now) {
    if (m->dest_offset == 0 || m->destination().isEmpty())
        network_.bad_message(*m, "has no destination");
    NetDest rest = m->destination();
    if (input == 0)
        count_entry(*m);
    // The input buffer is free when the last part has left; this function holds it until it has handled all parts.
    const bool shared = input != 0 || network_.has_bounded_sources();
    const std::uint32_t slot = shared ? new_slot() : 0;
    const auto next_part = [&] { // called after its destinations have left `rest`
        if (slot)
            ++slots_[slot].parts;
        return rest.isEmpty() ? m : message_pool().clone(m);
    };
    for (Link *link : out_) {
        if (rest.intersectionIsEmpty(link->reach))
            continue;
        const NetDest part = rest.AND(link->reach);
        rest.removeNetDest(part);
        Message *p = next_part();
        p->destination() = part;
        p->note_destination();
        if (forward(p, *link, input, slot, now) && slot)
            part_left(*p, input, slot, now);
    }
    rest.AND(local_).for_each([&](NodeIndex node) {
        rest.remove_index(node);
        Message *p = next_part();
        p->destination().clear();
        p->destination().add_index(node);
        p->to = node;
        if (input == 0 && ingress.direct) { // in its place among those that enter at this tick
            p->entered = true;
            ingress.same_chip[node]->enter_crossing(p, now);
            return;
        }
        if (input == 0)
            ports_[way_[node].port].grant(now);
        else
            grant_earlier(ports_[way_[node].port], *p, now);
        const Tick left = deliver(p, node, now);
        if (slot)
            part_left(*p, input, slot, left);
    });
    if (!rest.isEmpty())
        network_.no_destination(*m, rest.first_index());
    if (slot)
        part_left(*m, input, slot, now);
}

/// Hands on a message that has waited for a port and that the router counts, not the port. It comes from a controller
/// of this chip or from a link.
void Router::grant_counted(Message *m, Tick entry) {
    const NodeIndex node = m->to;
    if (m->hops == 0) {
        if (!m->entered)
            count_entry(*m);
        deliver(m, node, entry, true);
    } else {
        const unsigned input = m->entry;
        free_input(*m, input, deliver(m, node, entry, true));
    }
}

/// A message from a link is granted a port towards a controller at tick `at`.
void Router::left_input(const Message &m, Tick at) { free_input(m, m.entry, at); }

/// Grants the messages that go before m at a port; m comes from a link at tick `at`.
void Router::grant_earlier(CrossbarPort &port, const Message &m, Tick at) {
    port.grant(at);
    while (port.waiting.front_tick() == at && port.waiting.front().item->hops != 0 &&
           sent_before(*port.waiting.front().item, m))
        port.grant_next();
}

/// Returns a buffer to a sender that runs on another queue.
[[gnu::noinline]] void Router::post_freed(Link &link, const Message &m, Tick at) {
    const Tick usable = at + link.credit_flight;
    const auto open = [](const ProcessMessage &p) {
        auto &l = *static_cast<Link *>(p.to);
        freed_behind(l, l.channel[p.number[0]], p.number[1] != 0, static_cast<Tick>(p.number[2]));
    };
    queue().post(link.from->queue(),
                 {open,
                  usable - common_.latency,
                  &link,
                  nullptr,
                  {link.of_vnet[m.vnet]->number, m.carries_data, static_cast<std::uint64_t>(usable)}});
}

/// freed_behind() if a buffer that was freed earlier may be used only later, or if the queue of freed buffers is full.
[[gnu::noinline]] void Router::freed_before_another(Link &link, Link::Channel &channel, bool data, Tick usable) {
    link.returning.push_between(usable, channel, data);
    if (link.waiting)
        link.from->credit_returned(link, usable);
}

[[gnu::noinline]] void Router::part_of_several_left(const Message &m, unsigned input, std::uint32_t slot, Tick at) {
    Slot &s = slots_[slot];
    s.release = std::max(s.release, at);
    if (--s.parts)
        return;
    at = s.release;
    free_slots_.push_back(slot);
    free_input(m, input, at);
}

} // namespace moscope::ruby
