// SPDX-License-Identifier: BSD-3-Clause
// Message buffers: entry, the way across the chip, and the return of stalled messages.
#include "mem/ruby/runtime/message_buffer.hh"

#include <algorithm>

#include "mem/ruby/runtime/controller.hh"

namespace moscope::ruby {

[[gnu::always_inline]] inline void Ingress::push_inline(Message *m, Tick ready) {
    m->entry = entry++;
    if (AbstractController *const c = same_chip[m->to]) {
        c->enter_crossing_now(m, ready);
    } else if (__builtin_expect(m->to == kMaxNodes, 0)) {
        push_to_several(m, ready);
    } else {
        push_to_router(m, ready);
    }
}

void Ingress::push(Message *m, Tick ready) { push_inline(m, ready); }

[[gnu::noinline]] void Ingress::push_to_router(Message *m, Tick ready) {
    if (__builtin_expect(!noted(*m) || queue.full(), 0))
        return push_first_to_router(m, ready);
    // Otherwise the router wakes in time for an earlier message.
    if (queue.is_first(queue.insert(ready, m)))
        wake(ready + slack);
}

/// The same for the first message of its virtual network, or if the queue is full; separate, so that the hot path calls
/// nothing.
[[gnu::noinline]] void Ingress::push_first_to_router(Message *m, Tick ready) {
    note_routed(*m);
    queue.insert(ready, m);
    wake(ready + slack);
}

/// A message to several controllers, or, if it goes to memory, to none.
[[gnu::noinline]] void Ingress::push_to_several(Message *m, Tick ready) {
    if (direct && m->dest_offset && split(*this, m, ready))
        return;
    note_routed(*m);
    queue.insert(ready, m);
    prompt = std::max(prompt, ready);
    wake(ready);
}

void Crossing::grant_next() { grant_first(); }

void Crossing::grant_before(Tick before) {
    do
        grant_first();
    while (waiting.front_tick() < before);
}

/// Grants a message that is delayed, traced, a part of one to several controllers, or counted by the network.
[[gnu::noinline]] void Crossing::grant_otherwise(Message *m, Tick entry, MessageBuffer *buffer) {
    if (traced_ || m->hops >= kHops || !buffer)
        return grant_counted(*this, m, entry);
    pass(m, entry, *buffer, m->entered ? kParts : m->hops,
         [&](Tick earliest) { return jitter ? jitter->delay(*m, m->to, earliest) : earliest; });
}

Tick Crossing::earliest_behind(NodeIndex to, Tick free) const {
    for (unsigned i = 1; i < waiting.size(); ++i) {
        const auto &[entry, m] = waiting.at(i);
        const Tick start = std::max(entry, free);
        if (m->to == to)
            return start + latency;
        free = start + occupancy(*m);
    }
    return kNever;
}

/// earliest() where messages are delayed at random, so that one behind the first may arrive before it.
Tick Crossing::earliest_delayed(NodeIndex to) const {
    Tick first = kNever, free = free_at;
    for (unsigned i = 0; i < waiting.size(); ++i) {
        const auto &[entry, m] = waiting.at(i);
        const Tick start = std::max(entry, free);
        if (start + latency >= first) // as are all further ones
            break;
        if (m->to == to)
            first = std::min(first, start + latency + m->delay);
        free = start + occupancy(*m);
    }
    return first;
}

[[gnu::always_inline]] inline void MessageBuffer::put(Message *m, Tick arrival) {
    queue_.insert(arrival, m);
    note_head();
    if (consumer && queue_.front_tick() == arrival)
        consumer->arrive(arrival);
}

int MessageBuffer::getStallMapSize() const {
    int lines = 0;
    for (auto s = stalled_.begin(); s != stalled_.end(); ++s)
        lines += std::none_of(stalled_.begin(), s, [&](const auto &before) { return before.line == s->line; });
    return lines;
}

void MessageBuffer::put_back(Message *m, Tick arrival) { put(m, arrival); }

void MessageBuffer::enqueue(Message *m, Tick arrival) { // one call for each message sent
    if (!ingress)
        return put_back(m, arrival);
    ++in_network_entry;
    if (latest_.empty())
        return ingress->push_inline(m, arrival);
    if (__builtin_expect(m->to == kMaxNodes, 0))
        return enqueue_to_several(m, arrival);
    Tick &latest = latest_[m->to];
    if (__builtin_expect(arrival < latest, 0))
        m->account(Segment::queue, arrival = latest);
    latest = arrival;
    ingress->push_inline(m, arrival);
}

/// To several destinations, or none, where messages to each keep their order.
[[gnu::noinline]] void MessageBuffer::enqueue_to_several(Message *m, Tick arrival) {
    if (m->dest_offset) {
        m->destination().for_each([&](NodeIndex n) { arrival = std::max(arrival, latest_[n]); });
        m->destination().for_each([&](NodeIndex n) { latest_[n] = arrival; });
    }
    m->account(Segment::queue, arrival);
    ingress->push_inline(m, arrival);
}

void MessageBuffer::deliver(Message *m, Tick arrival) {
    if (consumer)
        consumer->stores.prefetch(m->line);
    put(m, arrival);
}

bool MessageBuffer::wake(Addr line) {
    // From the youngest to the oldest, each goes before all others of its tick, so that they come back in their order.
    // Messages that remain stalled move up to those that are younger than all woken ones; then the front is erased.
    const auto begin = stalled_.begin();
    auto at = stalled_.end();
    while (at != begin && at[-1].line != line)
        --at;
    if (at == begin)
        return false;
    auto kept = at;
    while (at != begin) {
        --at;
        if (at->line == line)
            queue_.insert_early(at->tick, at->message);
        else
            *--kept = *at;
    }
    note_head();
    stalled_.erase(begin, kept);
    if (stalled_.empty())
        *stalling_ &= ~bit_;
    if (consumer)
        consumer->woken();
    return true;
}

bool MessageBuffer::wake_all() {
    const bool any = !stalled_.empty();
    for (std::size_t i = stalled_.size(); i-- > 0;)
        queue_.insert_early(stalled_[i].tick, stalled_[i].message);
    *stalling_ &= ~bit_;
    stalled_.clear();
    note_head();
    if (any && consumer)
        consumer->woken();
    return any;
}

} // namespace moscope::ruby
