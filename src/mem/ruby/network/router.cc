// SPDX-License-Identifier: BSD-3-Clause
// The path of a message through a chip's crossbar: arrival, grant of an output, sending over a link, and waiting for
// one.
#include "mem/ruby/network/router_input.hh"

#include <algorithm>
#include <utility>

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

[[gnu::always_inline]] inline bool Router::can_send(const Message &m, Link &link, const Link::Channel &channel,
                                                    Tick now) const {
    if (channel.waiting != 0)
        return false;
    link.take_back(now + common_.latency); // a credit may come back while the packet crosses
    return link.has_credit(channel, m.carries_data);
}

/// Puts m on the link: it crosses the crossbar from now on, and is on the wire after that.
[[gnu::always_inline]] inline void Router::send(Message *m, Link &link, Link::Channel &channel, Tick now) {
    const bool data = m->carries_data;
    const Tick waited = now - m->stamp, crossbar = link.crossbar, on_link = channel.on_link[data];
    channel.commands.take(link.free_commands);
    if (data)
        channel.data.take(link.free_data);
    link.free_at = now + channel.serialization[data];
    if (__builtin_expect(link.blocked, 0))
        link.interrupt_stalls(now, link.free_at);
    link.next_channel = channel.next;

    const Tick arrive = now + crossbar + on_link;
    m->path.in[static_cast<unsigned>(Segment::queue)] += waited;
    m->path.in[static_cast<unsigned>(Segment::crossbar)] += crossbar;
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

/// The order of two messages that links bring here at the same tick: the one sent first goes first; if both were sent
/// at the same tick, the one from the router with the lower number.
[[gnu::noinline]] bool Router::sent_before(const Message &a, const Message &b) const {
    const auto sent = [this](const Message &m) {
        const Link &l = *in_[m.entry];
        return std::pair(-l.way(l.channel[common_.channel_of_vnet[m.vnet]], m.carries_data), l.from->number_);
    };
    return sent(a) < sent(b);
}

/// A message with a random delay, for a controller of this chip, will arrive at tick `at`. The controller wakes only
/// after the delay, so Rounds grants the port in time for the credit.
[[gnu::noinline]] void Router::arrives_delayed(Message *m, AbstractController &to, Tick at) {
    auto &port = static_cast<CrossbarPort &>(*to.crossing);
    port.jitter->draw(*m, m->to, at);
    to.arrive(m->delay +
              port.enter_before(m, at, [this, m](const Message *o) { return o->hops == 0 || sent_before(*m, *o); }));
    if (m->delay != 0)
        rounds_->hold(port, at);
}

/// m will arrive here at tick `at`; `took` is the time since its arrival at the previous router. A message to a
/// controller of this chip needs no wake-up of this router: the credit for its buffer takes so long to return that it
/// is early enough to send it when the controller wakes.
[[gnu::always_inline]] inline void Router::arrives(Message *m, const Link &link, Tick at, Tick took) {
    m->entry = link.input;
    if (AbstractController *const c = direct_[m->to]) {
        c->note_crossing(*m);
        if (__builtin_expect(c->crossing->jitter != nullptr, 0))
            return arrives_delayed(m, *c, at);
        c->arrive(c->crossing->enter_before(
            m, at, [this, m](const Message *o) { return o->hops == 0 || sent_before(*m, *o); }));
        return;
    }
    const auto *const place = arrivals_.insert_if(at, m, [this, m](const Message *o) { return sent_before(*m, *o); });
    if (__builtin_expect(m->to == kMaxNodes, 0)) {
        // The link has counted the latency for one destination; the others are added here.
        stats[link.of_vnet[m->vnet]->number].latency += (m->destination().count() - 1) * took;
        ingress.prompt = std::max(ingress.prompt, at);
        ingress.wake(at);
    } else if (arrivals_.is_first(place)) { // else it wakes in time for an earlier arrival
        ingress.wake(at + slack_);
    }
}

[[gnu::always_inline]] inline Tick Router::decide_all(Tick now) {
    while (decide(now))
        ;
    return deadline();
}

Rounds::Rounds(EventQueue &queue, const std::vector<std::unique_ptr<Router>> &routers, Tick slack)
    : Component(queue, "routers", [](Component &c, Tick now) { static_cast<Rounds &>(c).wake(now); }), slack_(slack) {
    for (std::size_t i = 0; i < routers.size(); ++i)
        routers_[i] = routers[i].get();
}

void Rounds::wake(Tick now) {
    Tick next = kNever;
    for (std::uint64_t bits = active; bits; bits &= bits - 1) {
        const Tick t = routers_[static_cast<unsigned>(std::countr_zero(bits))]->decide_all(now);
        if (t == kNever)
            active &= ~(bits & -bits); // what this router has sent to others may have set theirs
        next = std::min(next, t);
    }
    if (!holding_.empty())
        next = std::min(next, grant_held(now));
    if (next != kNever)
        schedule_no_later_than(next);
}

void Rounds::hold(CrossbarPort &port, Tick entry) {
    if (!port.held) {
        port.held = true;
        holding_.push_back(&port);
    }
    schedule_no_later_than(entry + slack_);
}

/// Grants the messages that have entered the ports in the list. Returns when those that enter next must be granted;
/// kNever: there are none.
Tick Rounds::grant_held(Tick now) {
    Tick next = kNever;
    std::erase_if(holding_, [&](CrossbarPort *port) {
        port->grant(now);
        port->held = !port->waiting.empty();
        if (port->held)
            next = std::min(next, port->waiting.front_tick() + slack_);
        return !port->held;
    });
    return next;
}

void Router::catch_up() {
    while (pending() != kNever && queue().passed(*this, pending()))
        decide(pending());
}

/// Makes the next decision, if it is due (true). At one tick, packets that wait come first, then messages from links,
/// then those of the chip's controllers. One place sends everything that goes over a link, so that this path is inlined
/// once.
[[gnu::always_inline]] inline bool Router::decide(Tick until) {
    const Tick arrival = arrivals_.front_tick(), entry = ingress.queue.front_tick();
    const Tick now = std::min(arrival, entry);
    Grant g;
    if (service_ <= now) {
        if (service_ > until || service_ == kNever)
            return false;
        if (!serve_due(g, service_))
            return true;
    } else {
        if (now > until)
            return false;
        EntryQueue &from = arrival == now ? arrivals_ : ingress.queue;
        Message *m = from.front().item;
        from.pop();
        if (!route(g, m, arrival == now ? m->entry : 0, now, until))
            return true;
    }
    carry_out(g);
    return true;
}

/// Chooses a packet (true) for the first of the outputs that are due at tick `now`.
[[gnu::always_inline]] inline bool Router::serve_due(Grant &g, Tick now) {
    std::uint32_t w = waiting_;
    Tick others = kNever;
    Link *link = out_[static_cast<unsigned>(std::countr_zero(w))];
    while (__builtin_expect((w &= w - 1) != 0, 0)) {
        Link *const later = out_[static_cast<unsigned>(std::countr_zero(w))];
        if (link->wake_at <= now) {
            others = std::min(others, later->wake_at);
        } else {
            others = std::min(others, link->wake_at);
            link = later;
        }
    }
    bool chosen = false;
    if (link->wake_at <= now) {
        if (now < link->free_at) // granted to a packet that did not have to wait
            link->wake_at = link->free_at;
        else
            chosen = choose(g, *link, now);
    }
    service_ = std::min(others, link->wake_at);
    return chosen;
}

inline Tick Router::next_service() const {
    Tick next = kNever;
    for (std::uint32_t w = waiting_; __builtin_expect(w != 0, 0); w &= w - 1)
        next = std::min(next, out_[static_cast<unsigned>(std::countr_zero(w))]->wake_at);
    return next;
}

/// Decides where m goes. True: over a link at once, as `g` says. Usually it has one destination, behind a link.
[[gnu::always_inline]] inline bool Router::route(Grant &g, Message *m, unsigned input, Tick now, Tick until) {
    Link *const link = towards_[m->to];
    if (__builtin_expect(!link, 0)) {
        accept(m, input, now);
        return false;
    }
    Link::Channel *const channel = link->of_vnet[m->vnet];
    if (input == 0) {
        if (__builtin_expect(!channel, 0))
            no_channel(*m);
        ++channel->entered;
    }
    Tick grant = now;
    if (link->free_at > now) {
        // Where nothing else is decided until the link is free, the packet need not be queued.
        if (link->waiting != 0 || !is_next(link->free_at, until)) {
            wait_for_link(m, *link, *channel, input);
            return false;
        }
        grant = link->free_at;
    }
    if (!can_send(*m, *link, *channel, grant)) {
        wait(m, *link, *channel, input, 0, now);
        return false;
    }
    if (grant != now)
        channel->next_input = (input + 1) & 31;
    g = {m, link, channel, input, 0, grant};
    return true;
}

/// Sends m over the link if that is possible now (true), or queues it there.
bool Router::forward(Message *m, Link &link, unsigned input, std::uint32_t slot, Tick now) {
    Link::Channel &channel = *link.of_vnet[m->vnet];
    if (link.free_at <= now && can_send(*m, link, channel, now)) {
        send(m, link, channel, now);
        return true;
    }
    wait(m, link, channel, input, slot, now);
    return false;
}

/// Puts m into its queue at the link.
[[gnu::always_inline]] inline void Router::queue_up(Message *m, Link &link, Link::Channel &channel, unsigned input,
                                                    std::uint32_t slot) {
    if (link.waiting == Link::kSole)
        queue_up_sole(link);
    channel.queue[input].push({m, slot});
    channel.waiting |= 1u << input;
    link.waiting |= 1u << channel.number;
    waiting_ |= 1u << link.index;
}

/// The packet that has waited alone goes into its queue.
[[gnu::noinline]] void Router::queue_up_sole(Link &link) {
    link.waiting = 0;
    queue_up(link.sole.message, link, *link.sole.channel, link.sole.input, 0);
}

/// m waits for the link while that is busy.
[[gnu::always_inline]] inline void Router::wait_for_link(Message *m, Link &link, Link::Channel &channel,
                                                         unsigned input) {
    if (link.waiting == 0) {
        link.sole = {m, &channel, input};
        link.waiting = Link::kSole;
        link.wake_at = link.free_at;
        waiting_ |= 1u << link.index;
        service_ = std::min(service_, link.free_at);
    } else {
        queue_up(m, link, channel, input, 0);
        wake_when_free(link);
    }
}

/// Looks at the packets that wait for a link when its wire is free, and not before.
[[gnu::always_inline]] inline void Router::wake_when_free(Link &link) {
    const Tick before = std::exchange(link.wake_at, link.free_at);
    if (__builtin_expect(before < link.free_at, 0))
        service_ = next_service(); // the link's old tick may have been the earliest
    else
        service_ = std::min(service_, link.free_at);
}

/// Queues m at the link, which cannot take it now.
[[gnu::noinline]] void Router::wait(Message *m, Link &link, Link::Channel &channel, unsigned input, std::uint32_t slot,
                                    Tick now) {
    queue_up(m, link, channel, input, slot);
    if (now < link.free_at) {
        wake_when_free(link);
    } else {
        serve(link, now);
        service_ = next_service(); // it may be later now
    }
}

/// Grants the link to one of its waiting packets if possible, and sets when to look again.
[[gnu::noinline]] void Router::serve(Link &link, Tick now) {
    if (Grant g; choose(g, link, now))
        carry_out(g);
}

/// Chooses the packet that waits for a link alone, if there is credit.
[[gnu::always_inline]] inline bool Router::choose_sole(Grant &g, Link &link, Tick now) {
    Message *const m = link.sole.message;
    Link::Channel &channel = *link.sole.channel;
    if (__builtin_expect(!link.has_credit(channel, m->carries_data), 0))
        return false;
    link.waiting = 0;
    waiting_ &= ~(1u << link.index);
    channel.next_input = (link.sole.input + 1) & 31;
    link.wake_at = kNever;
    g = {m, &link, &channel, link.sole.input, 0, now};
    return true;
}

/// Chooses one of the packets that wait for a link, and sets when to look again. Channels take turns, and within a
/// channel the input ports; a channel without credit is passed over.
[[gnu::always_inline]] inline bool Router::choose(Grant &g, Link &link, Tick now) {
    link.take_back(now + common_.latency);
    if (link.waiting == Link::kSole) {
        if (choose_sole(g, link, now))
            return true;
        queue_up_sole(link);
    }
    unsigned c = link.next_channel;
    for (std::uint32_t channels = link.waiting; channels; channels &= ~(1u << c)) {
        c = next_in_turn(channels, c);
        Link::Channel &channel = link.channel[c];
        unsigned input = channel.next_input;
        for (std::uint32_t inputs = channel.waiting; inputs; inputs &= ~(1u << input)) {
            input = next_in_turn(inputs, input);
            Fifo<Waiting> &queue = channel.queue[input];
            const Waiting head = queue.front();
            const bool data = head.message->carries_data;
            if (!link.has_credit(channel, data))
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
                const Tick possible = link.credit(channel, data) - common_.latency;
                channel.credit_stall += std::max<Tick>(0, possible - channel.blocked_since);
                channel.blocked_since = kNever;
                --link.blocked;
            }
            link.wake_at = link.waiting ? now + channel.serialization[data] : kNever;
            g = {head.message, &link, &channel, input, head.slot, now};
            return true;
        }
        if (channel.blocked_since == kNever) {
            channel.blocked_since = now;
            ++link.blocked;
        }
    }
    const Tick credit = link.returning.front_tick();
    link.wake_at = credit == kNever ? kNever : credit - common_.latency;
    return false;
}

[[gnu::always_inline]] inline void Router::carry_out(const Grant &g) {
    send(g.message, *g.link, *g.channel, g.at);
    part_left(*g.message, g.input, g.slot, g.at);
}

void Router::credit_returned(Link &link, Tick usable) {
    const Tick t = std::max({usable - common_.latency, link.free_at, queue().now()});
    if (t < link.wake_at) {
        link.wake_at = t;
        service_ = std::min(service_, t);
        ingress.wake(t + slack_);
    }
}

} // namespace moscope::ruby
