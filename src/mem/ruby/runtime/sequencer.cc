// SPDX-License-Identifier: BSD-3-Clause
// Issue, coalescing and completion of a core's accesses.
#include "mem/ruby/runtime/sequencer.hh"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace moscope::ruby {

namespace {

bool needs_write(AccessKind k) { return k == AccessKind::store || k == AccessKind::rmw || k == AccessKind::nt_store; }

/// Whether a grant to an access of kind `first` also serves `next` to the same line.
bool same_grant(AccessKind first, bool granted_write, AccessKind next) {
    if (first == AccessKind::flush || first == AccessKind::nt_store || first == AccessKind::uncached_load)
        return false;
    if (next == AccessKind::load)
        return first != AccessKind::fetch;
    if (next == AccessKind::fetch)
        return first == AccessKind::fetch;
    return (next == AccessKind::store || next == AccessKind::rmw) && granted_write;
}

} // namespace

Sequencer::Sequencer(Params p, AbstractController &c, MessageBuffer &mandatory, std::byte *guest_memory,
                     bool checks_data)
    : p_(p),
      c_(c),
      mandatory_(mandatory),
      memory_(guest_memory),
      checks_data_(checks_data),
      last_txn_((static_cast<TxnId>(p.core) + 1) << 40) {
    port_.memory_ = this;
    if (!checks_data && guest_memory)
        port_.lines_lie_at(guest_memory);
    port_.issue_ = issue_entry;
    port_.probe_ = probe_entry;
    port_.hit_done_ = hit_done_entry;
    port_.quiet_ = quiet_entry;
    port_.flushes_ = p.flushes;
    port_.used_before_ = used_before_entry;
    const auto type = [this](AccessKind k) -> RubyRequestType & { return types_[static_cast<unsigned>(k)]; };
    type(AccessKind::load) = RubyRequestType_LD;
    type(AccessKind::fetch) = RubyRequestType_IFETCH;
    type(AccessKind::store) = type(AccessKind::rmw) = RubyRequestType_ST;
    type(AccessKind::flush) = RubyRequestType_FLUSH;
    type(AccessKind::nt_store) = p.nt_store_type;
    type(AccessKind::uncached_load) = p.uncached_load_type;
}

void Sequencer::lacks_type(AccessKind k) const {
    throw ProtocolError(c_.name() + ": the protocol has no " +
                        (k == AccessKind::nt_store ? "non-temporal stores" : "uncached loads"));
}

[[gnu::always_inline]] inline void Sequencer::issue(Access &a) {
    const Access *const before = enter(a);
    if (L1Prefetcher *const p = prefetcher(a.kind))
        p->demanded(a, before);
}

void Sequencer::prefetch(Access &a) {
    enter(a);
    // The prefetch may change the caches before the end of the core's lookahead.
    if (port_.core_lookahead_)
        *port_.core_lookahead_ = std::min(*port_.core_lookahead_, c_.next_wake());
}

[[gnu::always_inline]] inline const Access *Sequencer::enter(Access &a) {
    MOSCOPE_CHECK(line_offset(a.addr.value) + a.size <= kLineBytes);
    const Addr line = protocol_line(a.addr.value);
    a.next = nullptr;
    a.supplier_state =
        Access::kUnknown; // set later if the grant is for this access; for others, no controller sent anything
    a.supplier_number = a.supplier_chip = Access::kUnknown16;
    a.probes = 0;
    a.held = a.secondary = false;
    ++in_flight_;
    for (Line &l : lines())
        if (l.line == line) {
            l.tail->next = &a;
            l.tail = &a;
            return l.head;
        }
    if (__builtin_expect(port_.lines_in_flight_ == lines_.size(), 0))
        make_room();
    lines_[port_.lines_in_flight_++].begin(line, &a, &a);
    start(a, line, a.issued);
    return nullptr;
}

[[gnu::always_inline]] inline void Sequencer::start(Access &a, Addr line, Tick now) {
    const RubyRequestType type = type_of(a.kind);
    if (__builtin_expect(type == RubyRequestType_NULL, 0))
        lacks_type(a.kind);
    a.held =
        (a.kind == AccessKind::store || a.kind == AccessKind::rmw) && c_.permission(line) == AccessPermission_Read_Only;
    port_.forget_own(line);
    c_.stores.prefetch(line);
    // Read before the message is made, so that its fields are written once.
    const Addr at = a.addr.value, pc = a.pc;
    const unsigned size = a.size;
    const Tick issued = a.issued;
    const NodeIndex node = c_.node;
    const std::uint16_t core = p_.core;
    auto *m = message_pool().make_without_history<RubyRequest>();
    m->type = RubyRequest::kType;
    m->line = line;
    m->LineAddress = line;
    m->PhysicalAddress = line + line_offset(at);
    m->Type = type;
    m->ProgramCounter = pc;
    m->Size = static_cast<int>(size);
    m->contextId = core;
    m->source = node;
    m->vnet = 0xff;
    if (a.kind == AccessKind::nt_store && a.data) {
        m->writeMask.setMask(static_cast<int>(line_offset(a.addr.value)), a.size);
        std::memcpy(m->WTData.bytes() + line_offset(a.addr.value), a.data, a.size);
    }
    m->txn = a.txn = ++last_txn_;
    m->txn_core = core;
    m->txn_hops = 0;
    // Waiting behind another access to the line counts as queueing.
    const ClockCursor::Edge edge = c_.edge_itself_from(now, p_.hit_latency);
    const Tick arrival = edge.tick;
    std::memset(m->path.in.data(), 0, sizeof m->path.in);
    m->path.in[static_cast<unsigned>(Segment::queue)] = now - issued;
    m->path.in[static_cast<unsigned>(Segment::cache)] = arrival - now;
    m->stamp = arrival;
    if (__builtin_expect(c_.trace != nullptr, 0))
        c_.trace->sent(c_, now, *m, arrival, nullptr);
    mandatory_.enqueue_at_edge(m, edge);
}

std::byte *Sequencer::probe(AccessKind k, Addr at, Tick when) {
    if (k != AccessKind::load && k != AccessKind::store && k != AccessKind::fetch && k != AccessKind::rmw)
        return nullptr;
    const Addr line = line_of(at);
    if (__builtin_expect(what_if_ != nullptr, 0))
        if (const WhatIf::Way way = what_if_->way(at); way.other)
            return probe_otherwise(way, k, at, when);
    if (port_.lines_in_flight_ && busy(line))
        return nullptr;
    // Only the protocol knows whether a line that may be written may also be read: ask for the other right, too.
    const RubyRequestType other = k == AccessKind::fetch ? RubyRequestType_NULL
                                  : needs_write(k)       ? RubyRequestType_LD
                                                         : RubyRequestType_ST;
    HitInfo hit;
    if (!c_.probe_hit(line, type_of(k), other, hit))
        return nullptr;
    std::byte *bytes = checks_data_ ? hit.bytes : memory_ + line;
    if (hit.stamp) {
        const unsigned rights = hit.other        ? Port::right_load | Port::right_store
                                : needs_write(k) ? Port::right_store
                                                 : Port::right_load;
        port_.fill(k == AccessKind::fetch, line, rights, hit.stamp, bytes);
        *hit.stamp = when;
    }
    ++port_.inline_hits;
    if (L1Prefetcher *const p = prefetcher(k))
        p->hit(line, when);
    return bytes;
}

/// probe() for a line that the what-if run treats differently. No slot remembers it, so each of its accesses comes
/// here.
std::byte *Sequencer::probe_otherwise(const WhatIf::Way &way, AccessKind k, Addr at, Tick when) {
    if (!way.free) {
        HitInfo hit;
        if ((port_.lines_in_flight_ && busy(way.line)) ||
            !c_.probe_hit(way.line, type_of(k), RubyRequestType_NULL, hit))
            return nullptr;
        if (hit.stamp)
            *hit.stamp = when;
    }
    ++port_.inline_hits;
    return memory_ + line_of(at);
}

Sequencer::Line *Sequencer::in_flight(Addr line, TxnId txn) {
    for (Line &l : lines())
        if (l.line == line)
            return l.head->txn == txn ? &l : nullptr;
    return nullptr;
}

void Sequencer::sent_line(Addr line, TxnId txn, Sender by) {
    Line *l = in_flight(line, txn);
    if (!l)
        return;
    unsigned i = 0;
    while (i < l->senders_known && l->senders[i].type != by.type)
        ++i;
    if (i == l->senders.size())
        return;
    l->senders_known = static_cast<std::uint8_t>(std::max<unsigned>(l->senders_known, i + 1));
    l->senders[i] = by;
}

void Sequencer::Line::tell(Access &a, MachineType supplier) const {
    a.probes = probes;
    if (supplier == MachineType_NULL)
        return; // what was sent for a flush went to memory
    for (unsigned i = 0; i < senders_known; ++i) {
        const Sender &s = senders[i];
        if (s.type == supplier) {
            a.supplier_state = s.state;
            a.supplier_number = s.number;
            a.supplier_chip = s.chip;
            return;
        }
        // What a shared cache sends on of an answer that was not meant for this access: its chip is the supplier's.
        if (!s.from_memory)
            a.supplier_chip = s.chip;
    }
}

void Sequencer::sent_probes(Addr line, TxnId txn, unsigned to) {
    if (Line *l = in_flight(line, txn))
        l->probes = static_cast<std::uint16_t>(l->probes + to);
}

/// carried: the line's bytes in the protocol; null: they are in guest memory.
[[gnu::always_inline]] inline void Sequencer::finish(Access &a, std::byte *carried, bool first, MachineType supplier) {
    const Tick now = c_.now();
    MOSCOPE_CHECK(now >= a.issued); // a core never acts beyond its lookahead
    std::byte *at = carried ? carried + line_offset(a.addr.value) : memory_ + a.addr.value;
    switch (a.kind) {
    case AccessKind::load:
    case AccessKind::uncached_load:
    case AccessKind::fetch:
        if (a.data)
            std::memcpy(a.data, at, a.size);
        break;
    case AccessKind::store:
    case AccessKind::nt_store:
        if (a.data)
            std::memcpy(at, a.data, a.size);
        break;
    case AccessKind::rmw:
        if (a.rmw)
            a.rmw(a.rmw_context, at);
        break;
    case AccessKind::flush: break;
    }
    a.done = now;
    a.supplier = static_cast<std::uint8_t>(supplier);
    const Tick latency = now - a.issued;
    const Message *const cause = first ? c_.caused_by() : nullptr;
    const L1Prefetcher *const p = prefetcher(a.kind);
    const bool demanded = !p || !p->owns(a);
    if (__builtin_expect(supplier == MachineType_NULL && cause && cause->type == RubyRequest::kType, 0)) {
        // The core's own request completed it, and no controller sent the line. If it is a write, the core held the line
        // clean and exclusive: all the time, or since an older access or a prefetch, for which it has waited, brought it
        // (`secondary`, see complete()). If it is a load or a fetch, a prefetch has brought the line since the core
        // looked for it.
        a.held |= a.kind == AccessKind::store || a.kind == AccessKind::rmw;
        a.secondary |= a.kind == AccessKind::load || a.kind == AccessKind::fetch;
    } else {
        a.secondary = !first;
    }
    a.hops = cause ? cause->txn_hops : std::uint16_t{0};
    // Every tick is accounted for once: what the segments miss is a bug of the bookkeeping.
    if (__builtin_expect(cause && cause->path.total() == latency, 1)) {
        a.path = cause->path;
        Tick *const __restrict sum = path_sum.in.data();
        for (unsigned i = 0; demanded && i < kSegments; ++i)
            sum[i] += cause->path.in[i];
    } else {
        // Served by the grant to an older access of the line, or by a path without a message, or by a message of another
        // transaction (a protocol may answer several at once).
        MOSCOPE_CHECK(!cause || cause->txn != a.txn);
        a.path = {};
        a.path.in[static_cast<unsigned>(Segment::queue)] = latency;
        path_sum.in[static_cast<unsigned>(Segment::queue)] += demanded ? latency : 0;
    }
    finished += demanded;
    latency_sum += demanded ? latency : 0;
    --in_flight_;
    if (a.on_done)
        a.on_done(a);
}

void Sequencer::finish_others(Access *first, std::byte *carried, MachineType supplier) {
    for (Access *a = first, *next; a; a = next) {
        next = a->next;
        finish(*a, carried, false, supplier);
    }
}

void Sequencer::wrong_callback(const char *what, Addr line, const char *why) const {
    std::ostringstream s;
    s << c_.name() << ": " << what << " 0x" << std::hex << line << why;
    throw ProtocolError(s.str(), line);
}

void Sequencer::complete(Addr addr, const std::byte *bytes, bool write, bool, MachineType supplier) {
    const Addr line = line_of(addr);
    Line *l = lines_.data(), *const end = l + port_.lines_in_flight_;
    while (l != end && l->line != line)
        ++l;
    if (l == end)
        wrong_callback("callback for line", line, " without a request in flight");
    Access *a = l->head;
    const AccessKind first = a->kind;
    if (needs_write(first) && !write)
        wrong_callback("read callback for a store to line", line, "");
    std::byte *carried = checks_data_ ? const_cast<std::byte *>(bytes) : nullptr;
    // Unlink the accesses that this grant serves before on_done is called, which may issue accesses to the same line.
    Access *rest = a->next;
    Access *last = a;
    while (rest && same_grant(first, write, rest->kind)) {
        last = rest;
        rest = rest->next;
    }
    last->next = nullptr;
    l->tell(*a, supplier);
    if (rest) {
        l->begin(line, rest, l->tail);
    } else {
        if (l + 1 != end)
            *l = end[-1];
        --port_.lines_in_flight_;
    }
    Access *const others = a->next;
    finish(*a, carried, true, supplier);
    if (others)
        finish_others(others, carried, supplier);
    if (rest) {
        start_again(*rest, c_.now());
        rest->secondary = first == AccessKind::load || first == AccessKind::fetch; // unless a request leaves the core
        // The controller still has the state of before the grant, so start() did not see that the line has just come.
        rest->held |= (rest->kind == AccessKind::store || rest->kind == AccessKind::rmw) &&
                      (first == AccessKind::load || first == AccessKind::fetch);
    }
}

Tick Sequencer::oldest() const {
    Tick t = kNever;
    for (const Line &l : lines())
        for (const Access *a = l.head; a; a = a->next)
            t = a->issued < t ? a->issued : t;
    return t;
}

} // namespace moscope::ruby
