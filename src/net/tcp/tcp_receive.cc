// SPDX-License-Identifier: BSD-3-Clause
// What a received segment does (RFC 9293, section 3.10.7).
#include <algorithm>

#include "net/tcp/tcp.hh"

namespace moscope::net {

namespace {

/// Whether sequence number a is before b.
bool before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

constexpr unsigned kEqualAcknowledgements = 3;

} // namespace

void Tcp::receive(const Ipv4 &p, Tick now) {
    if (const auto s = segment_of(p))
        receive(*s, now);
    else
        ++counts_.bad;
}

void Tcp::receive(const Segment &s, Tick now) {
    ++counts_.segments_in;
    const auto at = by_pair_.find({s.destination, s.source});
    if (at != by_pair_.end()) {
        const ConnectionId id = at->second;
        C &c = *connections_.at(id);
        process(id, c, s, now);
        output(id, c, now);
    } else if (s.has(Segment::kSyn) && !s.has(Segment::kAck) && !s.has(Segment::kRst) &&
               listeners_.contains(s.destination.port)) {
        accept(s, now);
    } else {
        refuse(s, now);
    }
    clean();
}

/// The bytes that a segment may have, by the option of the other side's SYN, or without it (section 3.7.1).
std::uint16_t Tcp::largest_for(const Segment &syn) const {
    return std::min(p_.largest, syn.largest ? syn.largest : std::uint16_t{536});
}

void Tcp::accept(const Segment &s, Tick now) {
    const auto [id, c] = make(listeners_.at(s.destination.port), s.destination, s.source, now);
    ++counts_.accepted;
    c->state = C::kSynReceived;
    c->expected = s.sequence + 1;
    c->start_window(s);
    c->largest = largest_for(s);
    output(id, *c, now);
}

void Tcp::refuse(const Segment &s, Tick now) {
    if (s.has(Segment::kRst))
        return;
    Segment r{s.destination, s.source, 0, 0, Segment::kRst, 0, 0, {}};
    if (s.has(Segment::kAck)) {
        r.sequence = s.acknowledgement;
    } else {
        r.flags |= Segment::kAck;
        r.acknowledgement = s.sequence + s.length();
    }
    ++counts_.segments_out;
    emit_(r, now);
}

void Tcp::answer_to_syn(ConnectionId id, C &c, const Segment &s, Tick now) {
    if (s.has(Segment::kAck) && s.acknowledgement != c.oldest + 1) {
        refuse(s, now);
        return;
    }
    if (s.has(Segment::kRst)) {
        if (s.has(Segment::kAck))
            end(id, c, TcpEnd::refused, now);
        return;
    }
    if (!s.has(Segment::kSyn) || !s.has(Segment::kAck))
        return; // no simultaneous opening
    c.expected = s.sequence + 1;
    c.oldest = c.next = c.highest = s.acknowledgement;
    c.start_window(s);
    c.largest = largest_for(s);
    c.repeats = 0;
    c.state = c.finish ? C::kFinWait1 : C::kEstablished;
    set_deadline(id, c, kNever);
    emit(c, c.next, Segment::kAck, {}, now);
    users_[c.user]->connected(id, now);
}

void Tcp::process(ConnectionId id, C &c, const Segment &s, Tick now) {
    if (c.state == C::kSynSent) {
        answer_to_syn(id, c, s, now);
        return;
    }
    const std::uint32_t offset = s.sequence - c.expected; // from the start of the window, modulo 2^32
    const bool begins_within = offset < p_.window, ends_within = s.length() && offset + s.length() - 1 < p_.window;
    if (!begins_within && !ends_within) {
        c.acknowledge = !s.has(Segment::kRst);
        if (c.state == C::kTimeWait && s.has(Segment::kFin))
            set_deadline(id, c, now + p_.time_wait);
        return;
    }
    if (s.has(Segment::kRst)) {
        if (s.sequence != c.expected)
            c.acknowledge = true; // RFC 5961, section 3.2
        else
            end(id, c, TcpEnd::reset, now, c.state != C::kTimeWait);
        return;
    }
    if (s.has(Segment::kSyn)) {
        c.acknowledge = true;
        return;
    }
    if (!s.has(Segment::kAck) || !acknowledged(id, c, s, now))
        return;
    take(id, c, s, now);
}

/// Takes a segment's acknowledgement and window. False: the segment has no further effect.
bool Tcp::acknowledged(ConnectionId id, C &c, const Segment &s, Tick now) {
    const std::uint32_t ack = s.acknowledgement;
    if (before(c.highest, ack)) {
        if (c.state == C::kSynReceived)
            refuse(s, now);
        else
            c.acknowledge = true; // it acknowledges bytes that were never sent
        return false;
    }
    if (before(c.oldest, ack)) {
        std::uint32_t n = ack - c.oldest;
        if (c.state == C::kSynReceived) {
            c.state = c.finish ? C::kFinWait1 : C::kEstablished;
            ++c.oldest;
            --n;
            users_[c.user]->connected(id, now);
            if (c.state == C::kGone)
                return false;
        }
        const bool fin = n > c.unacknowledged.size();
        n = std::min<std::uint32_t>(n, static_cast<std::uint32_t>(c.unacknowledged.size()));
        c.unacknowledged.erase(c.unacknowledged.begin(), c.unacknowledged.begin() + n);
        c.oldest = ack;
        if (before(c.next, c.oldest))
            c.next = c.oldest;
        c.repeats = c.duplicates = 0;
        set_deadline(id, c, c.next == c.oldest && c.highest == c.oldest ? kNever : now + time_out(c));
        if (fin) {
            if (c.state == C::kFinWait1) {
                c.state = C::kFinWait2;
            } else if (c.state == C::kClosing) {
                c.state = C::kTimeWait;
                set_deadline(id, c, now + p_.time_wait);
                ++counts_.finished;
                users_[c.user]->ended(id, TcpEnd::finished, now);
            } else if (c.state == C::kLastAck) {
                end(id, c, TcpEnd::finished, now);
                return false;
            }
        }
    } else if (ack == c.oldest && s.length() == 0 && s.window == c.window && s.window && c.next != c.oldest &&
               ++c.duplicates == kEqualAcknowledgements) {
        repeat_first(c, now);
    }
    if (!before(ack, c.oldest)) {
        const bool closed = c.window == 0;
        c.take_window(s);
        if (closed && ack == c.oldest && c.repeats) // it answers a probe of its closed window
            answers_probe(id, c, c.window > 0, now);
    }
    return c.state != C::kGone;
}

/// Section 3.8.6.1: while the other side answers probes, the connection stays, and probes go on at the longest
/// interval. An answered probe therefore lowers `repeats` to the fewest time-outs that give this interval.
void Tcp::answers_probe(ConnectionId id, C &c, bool opens, Tick now) {
    if (!opens) {
        while (c.repeats > 1 && p_.time_out << (c.repeats - 1) >= p_.longest_time_out)
            --c.repeats;
        return;
    }
    c.repeats = c.duplicates = 0;
    c.next = c.oldest; // the closed window has refused the probe's byte
    set_deadline(id, c, now + time_out(c));
}

void Tcp::take(ConnectionId id, C &c, const Segment &s, Tick now) {
    if (s.length() == 0)
        return;
    c.acknowledge = true;
    if (c.state != C::kEstablished && c.state != C::kFinWait1 && c.state != C::kFinWait2)
        return; // the other side has finished
    const std::int64_t offset = static_cast<std::int32_t>(s.sequence - c.expected);
    Bytes payload = s.payload;
    if (s.has(Segment::kFin))
        c.end = c.position + static_cast<std::uint64_t>(offset + static_cast<std::int64_t>(payload.size()));
    if (offset > 0) {
        ++counts_.out_of_order;
        const auto room = static_cast<std::size_t>(std::max<std::int64_t>(p_.window - offset, 0));
        payload = payload.first(std::min(payload.size(), room));
        auto &early = c.early[c.position + static_cast<std::uint64_t>(offset)];
        if (early.size() < payload.size())
            early.assign(payload.begin(), payload.end());
    } else if (static_cast<std::size_t>(-offset) < payload.size()) {
        deliver(id, c, payload.subspan(static_cast<std::size_t>(-offset)), now);
        while (c.state != C::kGone && !c.early.empty() && c.early.begin()->first <= c.position) {
            const auto [at, bytes] = std::move(*c.early.begin());
            c.early.erase(c.early.begin());
            if (at + bytes.size() > c.position)
                deliver(id, c, Bytes(bytes).subspan(c.position - at), now);
        }
    }
    if (c.state != C::kGone && c.position == c.end)
        finished_by_other(id, c, now);
}

void Tcp::deliver(ConnectionId id, C &c, Bytes bytes, Tick now) {
    c.expected += static_cast<std::uint32_t>(bytes.size());
    c.position += bytes.size();
    c.acknowledge = true; // what the user sent after earlier bytes does not acknowledge these
    users_[c.user]->received(id, bytes, now);
}

void Tcp::finished_by_other(ConnectionId id, C &c, Tick now) {
    ++c.expected;
    emit(c, c.next, Segment::kAck, {}, now);
    if (c.state == C::kEstablished) {
        c.state = C::kCloseWait;
    } else if (c.state == C::kFinWait1) {
        c.state = C::kClosing; // our FIN is not acknowledged yet
    } else {
        c.state = C::kTimeWait;
        set_deadline(id, c, now + p_.time_wait);
    }
    users_[c.user]->finished(id, now);
    if (c.state == C::kTimeWait) {
        ++counts_.finished;
        users_[c.user]->ended(id, TcpEnd::finished, now);
    }
}

} // namespace moscope::net
