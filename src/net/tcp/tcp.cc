// SPDX-License-Identifier: BSD-3-Clause
// Opening, closing, sending, timing; received segments are in tcp_receive.cc.
#include "net/tcp/tcp.hh"

#include <algorithm>

#include "base/error.hh"

namespace moscope::net {

std::pair<ConnectionId, TcpConnection *> Tcp::make(unsigned user, const Endpoint &local, const Endpoint &remote,
                                                   Tick now) {
    const ConnectionId id = ++last_;
    C *const c = (connections_[id] = std::make_unique<C>()).get();
    by_pair_[{local, remote}] = id;
    c->user = static_cast<std::uint8_t>(user);
    c->local = local;
    c->remote = remote;
    // Initial sequence number (section 3.4.1): a clock of 4 us, and a part that depends on the pair alone. A later
    // connection of the pair begins higher, so that a server that remembers the pair in TIME-WAIT accepts it.
    c->oldest = c->next = c->highest = static_cast<std::uint32_t>(now / (4000 * kTicksPerNs)) +
                                       static_cast<std::uint32_t>(Hash{}({local, remote}) >> 32);
    return {id, c};
}

ConnectionId Tcp::connect(unsigned user, const Endpoint &local, const Endpoint &remote, Tick now) {
    if (by_pair_.contains({local, remote}))
        return 0;
    const auto [id, c] = make(user, local, remote, now);
    ++counts_.opened;
    output(id, *c, now);
    return id;
}

void Tcp::send(ConnectionId id, Bytes bytes, Tick now) {
    C *const c = find(id);
    if (!c || !c->may_send() || c->finish)
        return;
    c->unacknowledged.insert(c->unacknowledged.end(), bytes.begin(), bytes.end());
    output(id, *c, now);
}

void Tcp::finish(ConnectionId id, Tick now) {
    C *const c = find(id);
    if (!c || !c->may_send() || c->finish)
        return;
    c->finish = true;
    if (c->state == C::kEstablished)
        c->state = C::kFinWait1;
    else if (c->state == C::kCloseWait)
        c->state = C::kLastAck;
    output(id, *c, now);
}

void Tcp::abort(ConnectionId id, Tick now) {
    C *const c = find(id);
    if (!c)
        return;
    if (c->state != C::kSynSent && c->state != C::kTimeWait)
        emit(*c, c->highest, Segment::kRst | Segment::kAck, {}, now);
    end(id, *c, TcpEnd::reset, now, false);
}

Endpoint Tcp::local(ConnectionId id) const {
    const C *const c = find(id);
    return c ? c->local : Endpoint{};
}

Endpoint Tcp::remote(ConnectionId id) const {
    const C *const c = find(id);
    return c ? c->remote : Endpoint{};
}

// --- sending ------------------------------------------------------------------------------------------------------

void Tcp::emit(C &c, std::uint32_t sequence, std::uint8_t flags, Bytes payload, Tick now) {
    Segment s{c.local, c.remote, sequence, 0, flags, p_.window, 0, payload};
    if (flags & Segment::kAck)
        s.acknowledgement = c.expected;
    if (flags & Segment::kSyn)
        s.largest = p_.largest;
    c.acknowledge = false;
    ++counts_.segments_out;
    emit_(s, now);
}

void Tcp::output(ConnectionId id, C &c, Tick now) {
    if (c.state == C::kSynSent || c.state == C::kSynReceived) {
        if (c.next == c.oldest) {
            emit(c, c.next++, c.state == C::kSynSent ? Segment::kSyn : Segment::kSyn | Segment::kAck, {}, now);
            c.highest = c.next;
            set_deadline(id, c, now + time_out(c));
        }
        return;
    }
    if (c.state == C::kGone)
        return;
    const Bytes all = c.unacknowledged;
    // A window of zero is probed with one byte at each time-out.
    const std::uint32_t room = std::max<std::uint32_t>(c.window, c.repeats ? 1 : 0);
    while (c.synchronized() && c.state != C::kFinWait2) { // there the FIN is acknowledged
        const std::uint32_t sent = c.next - c.oldest;
        if (sent > all.size())
            break; // the FIN was sent, too
        const std::size_t left = all.size() - sent, fits = room > sent ? room - sent : 0;
        const std::size_t n = std::min({left, fits, std::size_t{c.largest}});
        const bool last = c.finish && n == left;
        if (n == 0 && !last)
            break;
        const std::uint8_t flags = static_cast<std::uint8_t>(Segment::kAck | (n ? unsigned{Segment::kPsh} : 0) |
                                                             (last ? unsigned{Segment::kFin} : 0));
        emit(c, c.next, flags, all.subspan(sent, n), now);
        c.next += static_cast<std::uint32_t>(n) + last;
        if (static_cast<std::int32_t>(c.next - c.highest) > 0)
            c.highest = c.next;
        if (c.deadline == kNever)
            set_deadline(id, c, now + time_out(c));
    }
    if (c.deadline == kNever && c.synchronized() && !all.empty())
        set_deadline(id, c, now + time_out(c)); // the window is closed
    if (c.acknowledge)
        emit(c, c.next, Segment::kAck, {}, now);
}

/// After three equal acknowledgements: sends the first segment again, and no other. Bytes that were never sent stay out:
/// the other side's window may have no room for them, and a receiver that takes them nevertheless acknowledges them.
void Tcp::repeat_first(C &c, Tick now) {
    ++counts_.repeated;
    const Bytes all = c.unacknowledged;
    const std::size_t n = std::min({all.size(), std::size_t{c.largest}, std::size_t{c.highest - c.oldest}});
    const bool last = c.finish && n == all.size() && c.fin_sent();
    emit(c, c.oldest, static_cast<std::uint8_t>(Segment::kAck | (last ? unsigned{Segment::kFin} : 0)), all.first(n),
         now);
}

// --- time ---------------------------------------------------------------------------------------------------------

Tick Tcp::time_out(const C &c) const {
    return std::min(p_.time_out << std::min<unsigned>(c.repeats, 20), p_.longest_time_out);
}

void Tcp::set_deadline(ConnectionId id, C &c, Tick t) {
    if (c.deadline != kNever)
        deadlines_.erase({c.deadline, id});
    c.deadline = t;
    if (t != kNever)
        deadlines_.insert({t, id});
}

void Tcp::run(Tick now) {
    while (next() <= now) {
        const ConnectionId id = deadlines_.begin()->second;
        C &c = *connections_.at(id);
        set_deadline(id, c, kNever);
        if (c.state == C::kTimeWait) {
            end(id, c, TcpEnd::finished, now, false);
        } else if (++c.repeats > p_.repeats) {
            end(id, c, TcpEnd::stalled, now);
        } else {
            ++counts_.repeated;
            c.next = c.oldest;
            output(id, c, now);
        }
        clean();
    }
}

/// `tell`: whether to call the user's ended() and to count the ending.
void Tcp::end(ConnectionId id, C &c, TcpEnd why, Tick now, bool tell) {
    if (c.state == C::kGone)
        return;
    c.state = C::kGone;
    set_deadline(id, c, kNever);
    by_pair_.erase({c.local, c.remote});
    gone_.push_back(id);
    if (!tell)
        return;
    std::uint64_t *const counts[] = {&counts_.finished, &counts_.refused, &counts_.reset, &counts_.stalled};
    ++*counts[static_cast<unsigned>(why)];
    users_[c.user]->ended(id, why, now);
}

void Tcp::clean() {
    for (const ConnectionId id : gone_)
        connections_.erase(id);
    gone_.clear();
}

void Tcp::archive(Archive &a) {
    a.section("tcp");
    clean();
    std::vector<ConnectionId> ids;
    for (const auto &[id, c] : connections_)
        ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    a(ids, last_, counts_);
    if (a.loading()) {
        connections_.clear();
        by_pair_.clear();
        deadlines_.clear();
    }
    for (const ConnectionId id : ids) {
        std::unique_ptr<C> &c = connections_[id];
        if (a.loading())
            c = std::make_unique<C>();
        a(*c);
        if (!a.loading())
            continue;
        if (c->user >= users_.size() || c->state >= C::kGone || c->highest - c->oldest > c->unacknowledged.size() + 1)
            throw UserError("checkpoint: a connection in an impossible state: expected the file as it was written");
        by_pair_[{c->local, c->remote}] = id;
        if (c->deadline != kNever)
            deadlines_.insert({c->deadline, id});
    }
}

} // namespace moscope::net
