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
    : Component(queue, std::move(name),
                [](Component &c, Tick now) {
                    auto &self = static_cast<Router &>(c);
                    if (const Tick next = self.decide_all(now); next != kNever)
                        self.schedule_no_later_than(next);
                }),
      network_(network),
      common_(common),
      number_(number) {
    ingress.router = this;
    ingress.owner = this;
    stats.resize(common.channels);
}

/// The parts of a message to several controllers of this chip enter the crossbar's ports without the router's waking.
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

[[gnu::always_inline]] inline bool Router::can_send(const Message &m, Link &link, const Link::Channel &channel,
                                                    Tick now) const {
    if (channel.waiting != 0 || link.free_at > now)
        return false;
    link.take_back(now + common_.latency); // a credit may come back while the packet crosses
    return link.has_credit(channel, m.carries_data);
}

/// Puts m on the link: it crosses the crossbar from now on, and is on the wire after that. others: the other channels, by bit.
[[gnu::always_inline]] inline void Router::send(Message *m, Link &link, Link::Channel &channel, Tick now,
                                                std::uint32_t others) {
    const bool data = m->carries_data;
    channel.commands.take(link.free_commands);
    if (data)
        channel.data.take(link.free_data);
    link.free_at = now + channel.serialization[data];
    if (__builtin_expect(link.waiting & others, 0))
        link.interrupt_stalls(now, link.free_at);
    link.next_channel = channel.next;

    const Tick waited = now - m->stamp, on_link = channel.on_link[data];
    const Tick arrive = now + common_.latency + on_link;
    m->path.in[static_cast<unsigned>(Segment::queue)] += waited;
    m->path.in[static_cast<unsigned>(Segment::crossbar)] += common_.latency;
    m->path.in[static_cast<unsigned>(Segment::link)] += on_link;
    m->stamp = arrive;
    ++m->hops;
    ++m->txn_hops;
    ++channel.sent[data];
    channel.wait += waited;
    if (__builtin_expect(link.observed, 0))
        send_observed(m, link, now, arrive, waited);
    else
        link.to->arrives(m, link, arrive, waited + arrive - now);
}

[[gnu::noinline]] void Router::send_observed(Message *m, Link &link, Tick now, Tick arrive, Tick waited) {
    const Tick took = waited + arrive - now;
    if (network_.trace)
        network_.trace->hop(*m, number_, link.to->number_, now + common_.latency, arrive);
    if (!link.crosses) {
        link.to->arrives(m, link, arrive, took);
        return;
    }
    const auto open = [](const ProcessMessage &p) {
        auto &l = *static_cast<Link *>(p.to);
        l.to->arrives(static_cast<Message *>(p.what), l, p.due, static_cast<Tick>(p.number[0]));
    };
    queue().post(link.to->queue(), {open, arrive, &link, m, {static_cast<std::uint64_t>(took)}});
}

/// Of two messages that links bring here at one tick: the one sent first is the first, and of those sent at one tick the
/// one of the router with the lower number.
[[gnu::noinline]] bool Router::sent_before(const Message &a, const Message &b) const {
    const auto sent = [this](const Message &m) {
        const Link &l = *in_[m.entry - 1];
        return std::pair(-l.way(l.channel[common_.channel_of_vnet[m.vnet]], m.carries_data), l.from->number_);
    };
    return sent(a) < sent(b);
}

/// m will be here at tick `at`, and has taken so long since it was at the router before. A message to a controller of this
/// chip needs no wake-up of this router: the credit for its buffer has far to go, so it is early enough when the controller
/// wakes.
[[gnu::always_inline]] inline void Router::arrives(Message *m, const Link &link, Tick at, Tick took) {
    m->entry = link.input;
    if (AbstractController *const c = direct_[m->to]) {
        c->note_crossing(*m);
        // A delay that is foreseen does not count: the credit cannot wait so long.
        c->arrive(c->crossing->enter_before(
            m, at, [this, m](const Message *o) { return o->hops == 0 || sent_before(*m, *o); }));
        return;
    }
    arrivals_.insert_if(at, m, [this, m](const Message *o) { return sent_before(*m, *o); });
    if (__builtin_expect(m->to == kMaxNodes, 0)) {
        // The link has counted the latency of one of them.
        stats[link.of_vnet[m->vnet]->number].latency += (m->destination().count() - 1) * took;
        prompt_ = std::max(prompt_, at);
        expect(at);
    } else {
        expect(at + slack_);
    }
}

[[gnu::always_inline]] inline void Router::free_input(const Message &m, unsigned input, Tick at) {
    if (input == 0) {
        network_.free_source(m.source, m.vnet);
        return;
    }
    Link &link = *in_[input - 1];
    Link::Channel &channel = *link.of_vnet[m.vnet];
    const Tick usable = at + link.credit_flight;
    if (__builtin_expect(link.crosses, 0))
        post_freed(link, channel, m.carries_data, usable);
    else
        link.from->freed_behind(link, channel, m.carries_data, usable);
}

/// To another queue.
[[gnu::noinline]] void Router::post_freed(Link &link, const Link::Channel &channel, bool data, Tick usable) {
    const auto open = [](const ProcessMessage &p) {
        auto &l = *static_cast<Link *>(p.to);
        l.from->freed_behind(l, l.channel[p.number[0]], p.number[1] != 0, static_cast<Tick>(p.number[2]));
    };
    queue().post(
        link.from->queue(),
        {open, usable - common_.latency, &link, nullptr, {channel.number, data, static_cast<std::uint64_t>(usable)}});
}

/// A packet has left its buffers behind the link.
[[gnu::always_inline]] inline void Router::freed_behind(Link &link, Link::Channel &channel, bool data, Tick usable) {
    link.returning.push(usable, channel, data);
    if (link.waiting)
        credit_returned(link, usable);
}

/// A part of a packet goes from its input buffer at tick `at`.
[[gnu::always_inline]] inline void Router::part_left(const Message &m, unsigned input, std::uint32_t slot, Tick at) {
    if (__builtin_expect(slot, 0))
        part_of_several_left(m, input, slot, at);
    else
        free_input(m, input, at);
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

/// Hands m to a controller of this chip; returns the tick at which it leaves the input.
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
        arrival = network_.jitter_.delay(*m, node, now, arrival);
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

[[gnu::always_inline]] inline Tick Router::decide_all(Tick now) {
    while (decide(now))
        ;
    service_ = next_service();
    return deadline();
}

Rounds::Rounds(EventQueue &queue, const std::vector<std::unique_ptr<Router>> &routers)
    : Component(queue, "routers", [](Component &c, Tick now) { static_cast<Rounds &>(c).wake(now); }),
      routers_(routers) {}

void Rounds::wake(Tick now) {
    Tick next = kNever;
    for (std::uint64_t bits = active; bits; bits &= bits - 1) {
        const Tick t = routers_[static_cast<unsigned>(std::countr_zero(bits))]->decide_all(now);
        if (t == kNever)
            active &= ~(bits & -bits); // what this router has sent to others may have set theirs
        next = std::min(next, t);
    }
    if (next != kNever)
        schedule_no_later_than(next);
}

void Router::catch_up() {
    while (pending() != kNever && queue().passed(*this, pending()))
        decide(pending());
    service_ = next_service();
}

/// The next decision, if it is due: packets that wait, then through traffic, then the chip's own at the same tick.
[[gnu::always_inline]] inline bool Router::decide(Tick until) {
    const Tick arrival = arrivals_.front_tick(), entry = ingress.queue.front_tick();
    const Tick now = std::min(arrival, entry);
    if (service_ <= now) {
        if (service_ > until || service_ == kNever)
            return false;
        serve_due(service_);
        return true;
    }
    if (now > until)
        return false;
    EntryQueue &from = arrival == now ? arrivals_ : ingress.queue;
    Message *m = from.front().item;
    from.pop();
    route(m, arrival == now ? m->entry : 0, now);
    return true;
}

void Router::serve_due(Tick now) {
    Tick next = kNever;
    for (std::uint32_t w = waiting_; w; w &= w - 1) {
        Link &link = *out_[static_cast<unsigned>(std::countr_zero(w))];
        if (link.wake_at <= now) {
            if (now < link.free_at) // granted to a packet that did not have to wait
                link.wake_at = link.free_at;
            else
                serve(link, now);
        }
        next = std::min(next, link.wake_at);
    }
    service_ = next;
}

inline Tick Router::next_service() const {
    Tick next = kNever;
    for (std::uint32_t w = waiting_; __builtin_expect(w != 0, 0); w &= w - 1)
        next = std::min(next, out_[static_cast<unsigned>(std::countr_zero(w))]->wake_at);
    return next;
}

/// Usually a message has one destination, behind a link.
[[gnu::always_inline]] inline void Router::route(Message *m, unsigned input, Tick now) {
    Link *const link = towards_[m->to];
    if (__builtin_expect(!link, 0)) {
        accept(m, input, now);
        return;
    }
    Link::Channel *const channel = link->of_vnet[m->vnet];
    if (input == 0) {
        if (__builtin_expect(!channel, 0))
            no_channel(*m);
        ++channel->entered;
    }
    if (can_send(*m, *link, *channel, now)) {
        send(m, *link, *channel, now);
        free_input(*m, input, now);
    } else {
        wait(m, *link, input, 0, now);
    }
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
    // The input buffer is free when the last part has left; this function holds it until all have been seen.
    const bool shared = input != 0 || network_.has_bounded_sources();
    const std::uint32_t slot = shared ? new_slot() : 0;
    const auto next_part = [&] { // after it has been taken out of the rest
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

/// Hands on a message that has waited for a port, and that the port does not count: one of this chip's controllers, or one
/// from a link.
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

/// Hands on what is before m at a port: m comes from a link at tick `at`.
void Router::grant_earlier(CrossbarPort &port, const Message &m, Tick at) {
    port.grant(at);
    while (port.waiting.front_tick() == at && port.waiting.front().item->hops != 0 &&
           sent_before(*port.waiting.front().item, m))
        port.grant_next();
}

/// Sends m over the link if that is possible now (true), or queues it there.
bool Router::forward(Message *m, Link &link, unsigned input, std::uint32_t slot, Tick now) {
    Link::Channel &channel = *link.of_vnet[m->vnet];
    if (can_send(*m, link, channel, now)) {
        send(m, link, channel, now);
        return true;
    }
    wait(m, link, input, slot, now);
    return false;
}

/// Queues m at the link, which cannot take it now.
void Router::wait(Message *m, Link &link, unsigned input, std::uint32_t slot, Tick now) {
    Link::Channel &channel = *link.of_vnet[m->vnet];
    channel.queue[input].push({m, slot});
    channel.waiting |= 1u << input;
    link.waiting |= 1u << channel.number;
    waiting_ |= 1u << link.index;
    if (now < link.free_at)
        link.wake_at = link.free_at;
    else
        serve(link, now);
    if (link.wake_at < service_)
        service_ = link.wake_at;
}

/// Grants the link to one of its waiting packets if possible, and sets when to look again. Channels take
/// turns, and within a channel the input ports; a channel without credit is passed over.
void Router::serve(Link &link, Tick now) {
    link.take_back(now + common_.latency);
    unsigned c = link.next_channel;
    for (std::uint32_t channels = link.waiting; channels; channels &= ~(1u << c)) {
        c = next_in_turn(channels, c);
        Link::Channel &channel = link.channel[c];
        unsigned input = channel.next_input;
        for (std::uint32_t inputs = channel.waiting; inputs; inputs &= ~(1u << input)) {
            input = next_in_turn(inputs, input);
            Fifo<Waiting> &queue = channel.queue[input];
            const Waiting head = queue.front();
            if (!link.has_credit(channel, head.message->carries_data))
                continue;
            queue.pop();
            if (queue.empty())
                channel.waiting &= ~(1u << input);
            if (!channel.waiting)
                link.waiting &= ~(1u << c);
            if (!link.waiting)
                waiting_ &= ~(1u << link.index);
            channel.next_input = (input + 1) & 31;
            if (channel.blocked_since != kNever) {
                // A credit may come back while the packet crosses.
                const Tick possible = link.credit(channel, head.message->carries_data) - common_.latency;
                channel.credit_stall += std::max<Tick>(0, possible - channel.blocked_since);
                channel.blocked_since = kNever;
            }
            send(head.message, link, channel, now, ~(1u << c));
            part_left(*head.message, input, head.slot, now);
            link.wake_at = link.waiting ? link.free_at : kNever;
            return;
        }
        if (channel.blocked_since == kNever)
            channel.blocked_since = now;
    }
    const Tick credit = link.returning.next();
    link.wake_at = credit == kNever ? kNever : credit - common_.latency;
}

void Router::credit_returned(Link &link, Tick usable) {
    const Tick t = std::max({usable - common_.latency, link.free_at, queue().now()});
    if (t < link.wake_at) {
        link.wake_at = t;
        service_ = std::min(service_, t);
        expect(t + slack_);
    }
}

} // namespace moscope::ruby
