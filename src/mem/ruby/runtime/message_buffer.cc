// SPDX-License-Identifier: BSD-3-Clause
// Message buffers: entry, and the return of stalled messages.
#include "mem/ruby/runtime/message_buffer.hh"

#include "mem/ruby/runtime/controller.hh"

namespace moscope::ruby {

void Ingress::push(Message *m, Tick ready) {
    m->entry = entry++;
    if (AbstractController *const c = same_chip[m->to]) {
        c->enter_crossing(m, ready);
    } else if (__builtin_expect(m->to == kMaxNodes, 0)) {
        push_to_several(m, ready);
    } else {
        note_routed(*m);
        queue.insert(ready, m);
        router->schedule_no_later_than(ready + slack);
    }
}

/// To several controllers, or, at a memory, to none.
[[gnu::noinline]] void Ingress::push_to_several(Message *m, Tick ready) {
    if (direct && m->dest_offset && split(*this, m, ready))
        return;
    note_routed(*m);
    queue.insert(ready, m);
    prompt = std::max(prompt, ready);
    router->schedule_no_later_than(ready);
}

void MessageBuffer::enqueue(Message *m, Tick arrival) {
    if (ingress) {
        ++in_network_entry;
        ingress->push(m, arrival);
    } else {
        put(m, arrival);
    }
}

void MessageBuffer::deliver(Message *m, Tick arrival) {
    // The controller will look the line up when it wakes: by then the host's caches have what it needs.
    if (consumer)
        consumer->prefetch(m->line, m->carries_data);
    put(m, arrival);
}

[[gnu::noinline]] void MessageBuffer::put(Message *m, Tick arrival) {
    queue_.insert(arrival, m);
    note_head();
    if (consumer && queue_.front_tick() == arrival)
        consumer->arrive(arrival);
}

bool MessageBuffer::wake(Addr line, Tick now) {
    // From the youngest, each put before the earlier ones of its tick, so that they come back in their order; what
    // stays is closed up at the end.
    std::size_t kept = stalled_.size();
    for (std::size_t i = stalled_.size(); i-- > 0;) {
        if (stalled_[i].line == line)
            queue_.insert_early(stalled_[i].tick, stalled_[i].message);
        else
            stalled_[--kept] = stalled_[i];
    }
    const bool any = kept > 0;
    note_head();
    stalled_.erase(stalled_.begin(), stalled_.begin() + static_cast<std::ptrdiff_t>(kept));
    if (any && consumer)
        consumer->arrive(now);
    return any;
}

bool MessageBuffer::wake_all(Tick now) {
    const bool any = !stalled_.empty();
    for (std::size_t i = stalled_.size(); i-- > 0;)
        queue_.insert_early(stalled_[i].tick, stalled_[i].message);
    stalled_.clear();
    note_head();
    if (any && consumer)
        consumer->arrive(now);
    return any;
}

} // namespace moscope::ruby
