// SPDX-License-Identifier: BSD-3-Clause
// The scheduler of a channel. Order of preference among the commands that may be issued at a clock: a refresh that
// is due, a row hit, an activate, a precharge; the older request first. A request that has been overtaken
// bypass_max times is not overtaken again: until its burst, other requests may only prepare their banks.
#include "mem/dram/channel.hh"

#include <algorithm>
#include <bit>
#include <utility>

namespace moscope::dram {

template <Channel::Link Channel::Entry::*link> void Channel::remove(List &l, Index i) {
    const Link e = pool_[i].*link;
    (e.prev == kNone ? l.head : (pool_[e.prev].*link).next) = e.next;
    (e.next == kNone ? l.tail : (pool_[e.next].*link).prev) = e.prev;
}

inline void Channel::pop(List &l) {
    l.head = pool_[l.head].queue.next;
    (l.head == kNone ? l.tail : pool_[l.head].queue.prev) = kNone;
}

void Channel::enter(Index i) {
    Entry &e = pool_[i];
    const unsigned d = e.request.write;
    Bank &b = bank_[e.at];
    e.entered = clock_;
    append<&Entry::queue>(queue_[d], i);
    append<&Entry::bank>(b.queue[d], i);
    ++queued_[d];
    work_[d] |= std::uint64_t{1} << e.at;
    if (b.row == static_cast<std::int32_t>(e.row) && b.hit[d] == kNone)
        b.hit[d] = i;
}

/// Moves requests that the scheduler sees by now into its queues: all writes, and reads as far as its depth has room.
inline void Channel::admit() {
    if (input_.head != kNone || waiting_.head != kNone)
        admit_all();
}

[[gnu::noinline]] void Channel::admit_all() {
    while (input_.head != kNone && pool_[input_.head].seen <= clock_) {
        const Index i = input_.head;
        pop(input_);
        if (pool_[i].request.write || (waiting_.head == kNone && queued_[0] < depth_))
            enter(i);
        else
            append<&Entry::queue>(waiting_, i);
    }
    while (waiting_.head != kNone && queued_[0] < depth_) {
        const Index i = waiting_.head;
        pop(waiting_);
        enter(i);
    }
}

inline void Channel::choose_direction() {
    if (queued_[1]) {
        choose_direction_for_writes();
        return;
    }
    // The usual case of the other function.
    draining_ = false;
    direction_ = 0;
}

[[gnu::noinline]] void Channel::choose_direction_for_writes() {
    if (queued_[1] <= write_low_) {
        draining_ = false;
    } else if (!draining_ && queued_[1] >= write_high_ && owed_ == 0) {
        draining_ = true;
        drained_ = 0;
    }
    direction_ = queued_[1] && (draining_ || !queued_[0]);
    if (direction_)
        bus_[1] = bus_times(cwl_, last_direction_ ? 0 : rtw_);
}

/// Chooses among the requests of the present direction, of which there is at least one. kReads: they are reads, and the
/// oldest may be overtaken.
template <bool kReads> [[gnu::noinline]] void Channel::choose(Choice &best, Nearest &nearest) const {
    const unsigned d = kReads ? 0 : direction_;
    const Index oldest = queue_[d].head;
    const bool strict = !kReads && overtaken_[d] >= bypass_max_;
    const unsigned first = strict ? pool_[oldest].at : ~0u; // the bank that must serve the oldest first
    for (std::uint64_t work = work_[d]; work; work &= work - 1) {
        const unsigned at = static_cast<unsigned>(std::countr_zero(work));
        const Bank &b = bank_[at];
        if (rank_[b.rank].refresh_due <= clock_)
            continue;
        Index entry = b.hit[d];
        if (at == first)
            entry = b.row == static_cast<std::int32_t>(pool_[oldest].row) ? oldest : kNone;
        Do what;
        Cycle when, burst;
        bool held = false;
        if (entry != kNone) {
            what = Do::column;
            when = burst = std::max(column_time(b, d), clock_);
            held = strict && entry != oldest;
        } else {
            entry = at == first ? oldest : b.queue[d].head;
            if (b.row >= 0) {
                what = Do::precharge;
                when = std::max(b.next_pre, clock_);
                burst = when + rp_ + rcd_;
            } else {
                what = Do::activate;
                when = std::max(act_time(b), clock_);
                burst = when + rcd_;
            }
        }
        if (burst < nearest.burst)
            nearest = {burst, static_cast<int>(at), held};
        if (held || when > best.when)
            continue;
        const Choice c{when, pool_[entry].age, what, static_cast<std::uint8_t>(at), entry};
        if (c.better_than(best))
            best = c;
    }
}

/// The same if only one request is queued: no other can overtake it or get in its way.
[[gnu::always_inline]] inline void Channel::choose_only(Index i, Choice &best, Nearest &nearest) const {
    const Entry &e = pool_[i];
    const Bank &b = bank_[e.at];
    const Rank &r = rank_[b.rank];
    if (r.refresh_due <= clock_)
        return;
    best = {0, e.age, Do::column, e.at, i};
    nearest = {0, e.at, false};
    if (b.row == static_cast<std::int32_t>(e.row)) {
        best.when = nearest.burst = std::max(column_time(b, direction_), clock_);
    } else if (b.row >= 0) {
        best.what = Do::precharge;
        best.when = std::max(b.next_pre, clock_);
        nearest.burst = best.when + rp_ + rcd_;
    } else {
        best.what = Do::activate;
        best.when = std::max(act_time(b), clock_);
        nearest.burst = best.when + rcd_;
    }
}

/// Accounts for the clocks up to `to`, in which no column command is issued.
inline void Channel::pass(Cycle to, const Nearest &n) {
    const Cycle from = std::max(clock_, column_free_);
    if (to > from)
        lose(reason(n), to - from);
    clock_ = to;
}

/// Whether the scheduler sees a single read and no write, and the read's bank has no other row open. All that happens
/// to the read until its burst is then known at once, unless something else comes first (Alone::change).
[[gnu::always_inline]] inline bool Channel::find_alone(Alone &a) const {
    if (queued_[1] != 0 || queued_[0] > 1 || waiting_.head != kNone)
        return false;
    const bool queued = queued_[0] != 0;
    a.entry = queued ? queue_[0].head : input_.head;
    if (a.entry == kNone)
        return false;
    const Entry &e = pool_[a.entry];
    const Bank &b = bank_[e.at];
    a.open = b.row == static_cast<std::int32_t>(e.row);
    if (e.request.write || (!a.open && b.row >= 0))
        return false;
    const Index next = queued ? input_.head : e.queue.next;
    a.change = next == kNone ? refresh_due_ : std::min(refresh_due_, pool_[next].seen);
    a.seen = std::max(clock_, e.seen);
    a.could_open = act_time(b);
    a.opened = std::max(a.could_open, a.seen);
    a.ready = std::max(column_time(b, 0), a.open ? a.seen : a.opened + rcd_);
    return true;
}

[[gnu::always_inline]] inline void Channel::serve(const Alone &a) {
    Entry &e = pool_[a.entry];
    Bank &b = bank_[e.at];
    draining_ = false;
    direction_ = 0;
    if (queued_[0]) {
        queue_[0] = b.queue[0] = {};
        queued_[0] = 0;
        work_[0] = 0;
        b.hit[0] = kNone;
    } else {
        pop(input_);
        pass(a.seen, Lost::no_request);
        e.entered = a.seen;
    }
    if (!a.open)
        open_row(b, a, e);
    pass(a.ready, column_reason(b, a.ready));
    hint_ = a.ready;
    stats_.forced += overtaken_[0] >= bypass_max_;
    overtaken_[0] = 0;
    owed_ -= owed_ != 0;
    transfer(a.entry, 0);
    ++clock_; // one command a clock
}

inline void Channel::open_row(Bank &b, const Alone &a, const Entry &e) {
    pass(a.opened, b.next_act == a.could_open ? b.act_reason : Lost::activate_rate);
    open_row(b, e.at, e);
}

/// Opens the row of a read that is alone until then, but not until its burst.
inline void Channel::open_for(const Alone &a) {
    const Entry &e = pool_[a.entry];
    Bank &b = bank_[e.at];
    draining_ = false;
    direction_ = 0;
    if (!queued_[0]) {
        pop(input_);
        pass(a.seen, Lost::no_request);
        enter(a.entry);
    }
    open_row(b, a, e);
    b.hit[0] = a.entry;
    pass(a.change, column_reason(b, a.ready));
}

/// Serves reads that are alone, up to `end`. True: nothing more before `end` could matter to a read.
[[gnu::always_inline]] inline bool Channel::serve_alone(Cycle end, bool reads_only) {
    Alone a;
    while (find_alone(a)) {
        if (a.ready >= a.change) {
            if (!a.open && a.opened < a.change && a.change < end)
                open_for(a);
            return false;
        }
        if (a.ready >= end) {
            if (!reads_only || a.seen >= end)
                return false;
            read_hint_ = std::min(a.open || a.opened < end ? a.ready : a.opened + rcd_, a.change);
            return true;
        }
        serve(a);
    }
    return false;
}

void Channel::decide(Cycle end, bool reads_only) {
    // The choice that the last call ended with holds until something new is seen: all its times lie ahead.
    bool choose_again =
        !choice_holds_ || refresh_due_ <= clock_ || (input_.head != kNone && pool_[input_.head].seen <= clock_);
    choice_holds_ = false;
    bool look_for_alone = policy_ != PagePolicy::idle;
    Choice &best = best_;
    Nearest &nearest = nearest_;
    while (true) {
        if (look_for_alone) {
            const Cycle before = clock_;
            if (serve_alone(end, reads_only)) {
                asked_ = end;
                return;
            }
            if (reads_ + writes_ == 0 && refresh_due_ > end) {
                rest(end);
                return;
            }
            choose_again |= clock_ != before;
            look_for_alone = false; // until a read has left
        }
        if (choose_again)
            choose_command();
        choose_again = true;

        // What else can change the choice before it is due?
        Cycle change = input_.head == kNone ? kNeverCycle : pool_[input_.head].seen;
        if (refresh_due_ > clock_)
            change = std::min(change, refresh_due_);
        hint_ = std::min(best.when, change);
        if (hint_ >= end) {
            pass(end, nearest);
            read_hint_ = reads_ ? hint_ : kNeverCycle;
            if (reads_ && direction_ == 0 && nearest.bank >= 0 && refresh_due_ > clock_)
                read_hint_ = std::max(hint_, std::min(nearest.burst, change));
            // If bypass_max_ holds requests back, or idle rows are closed, a time of the choice may have passed.
            choice_holds_ = overtaken_[direction_] < bypass_max_ && policy_ != PagePolicy::idle;
            return;
        }
        if (hint_ > clock_)
            pass(hint_, nearest);
        if (change == hint_)
            continue;
        if (best.what == Do::column) {
            issue_column(best);
            look_for_alone = policy_ != PagePolicy::idle;
        } else {
            issue(best);
        }
        pass(clock_ + 1, nearest); // one command a clock
    }
}

/// Passes the time up to `end` when there is nothing to decide before.
inline void Channel::rest(Cycle end) {
    draining_ = false;
    direction_ = 0;
    choose_nothing();
    pass(end, Lost::no_request);
    hint_ = refresh_due_;
    read_hint_ = kNeverCycle;
    choice_holds_ = overtaken_[0] < bypass_max_;
}

inline void Channel::choose_nothing() {
    best_ = {kNeverCycle, 0, Do::close, 0, kNone};
    nearest_ = {kNeverCycle, -1, false};
}

inline void Channel::choose_command() {
    admit();
    choose_direction();
    choose_nothing();
    if (work_[direction_]) {
        const Index oldest = queue_[direction_].head;
        if (pool_[oldest].queue.next == kNone)
            choose_only(oldest, best_, nearest_);
        else if (direction_ == 0 && overtaken_[0] < bypass_max_)
            choose<true>(best_, nearest_);
        else
            choose<false>(best_, nearest_);
    }
    if (refresh_due_ <= clock_)
        choose_refresh(best_);
    if (policy_ == PagePolicy::idle)
        choose_idle_close(best_);
}

void Channel::issue(const Choice &c) {
    switch (c.what) {
    case Do::refresh: issue_refresh(c.at); break;
    case Do::precharge_rank:
        report(CommandKind::precharge_all, c.at * banks_, 0, 0, false);
        ++stats_.precharges;
        for (unsigned b = c.at * banks_; b < (c.at + 1) * banks_; ++b)
            if (bank_[b].row >= 0)
                close(b, clock_, 0);
        break;
    case Do::column: issue_column(c); break;
    case Do::activate: issue_activate(c); break;
    case Do::precharge:
    case Do::close:
        report(CommandKind::precharge, c.at, 0, 0, false);
        ++stats_.precharges;
        close(c.at, clock_, c.what == Do::precharge ? 2 : 0);
        break;
    }
}

void Channel::issue_activate(const Choice &c) {
    Bank &b = bank_[c.at];
    open_row(b, c.at, pool_[c.entry]);
    for (unsigned d = 0; d < 2; ++d)
        b.hit[d] = next_hit(b.queue[d].head, static_cast<unsigned>(b.row));
}

/// Opens the row that the request wants.
inline void Channel::open_row(Bank &b, unsigned at, const Entry &e) {
    Rank &r = rank_[b.rank];
    // When could the row have been opened if only this bank's earlier commands counted?
    const Cycle ready = std::max(b.next_act, e.entered);
    b.opening.rank = clock_ - ready;
    b.opening.rank_reason = Lost::activate_rate;
    b.opening.bank = ready - e.entered;
    b.opening.beyond_depth = e.entered - e.seen;
    if (b.act_reason == Lost::refresh) {
        b.opening.rank += b.opening.bank;
        b.opening.bank = 0;
        b.opening.rank_reason = Lost::refresh;
    } else if (b.history == 2 && b.opening.bank <= rp_) {
        b.opening.bank = 0; // it waited only for the precharge, which nothing delayed
    }
    report(CommandKind::activate, at, e.row, 0, false);
    ++stats_.activates;
    b.row = static_cast<std::int32_t>(e.row);
    b.next_col = clock_ + rcd_;
    b.next_pre = clock_ + ras_;
    b.next_act = clock_ + rc_;
    b.act_reason = Lost::row_cycle;
    b.last_use = clock_;
    b.history = std::max<std::uint8_t>(b.history, 1);
    open_ |= std::uint64_t{1} << at;
    r.next_act = clock_ + rrd_;
    r.activates[r.oldest_activate] = clock_;
    r.oldest_activate = (r.oldest_activate + 1) & 3;
}

Channel::Index Channel::next_hit(Index from, unsigned row) const {
    while (from != kNone && pool_[from].row != row)
        from = pool_[from].bank.next;
    return from;
}

void Channel::issue_column(const Choice &c) {
    const unsigned d = direction_;
    Bank &b = bank_[c.at];
    const Index i = c.entry;
    const Entry &e = pool_[i];
    if (queue_[d].head == i) {
        stats_.forced += overtaken_[d] >= bypass_max_;
        overtaken_[d] = 0;
    } else {
        ++overtaken_[d];
    }
    b.hit[d] = next_hit(e.bank.next, e.row);
    remove<&Entry::bank>(b.queue[d], i);
    remove<&Entry::queue>(queue_[d], i);
    --queued_[d];
    if (!d) {
        owed_ -= owed_ != 0;
    } else if (draining_ && queued_[0] && ++drained_ == write_high_) { // new writes come as fast as they are served
        draining_ = false;
        owed_ = std::min(queued_[0], write_high_); // no more: each may cause a new write
    }
    if (b.queue[d].head == kNone)
        work_[d] &= ~(std::uint64_t{1} << c.at);
    transfer(i, d);
}

/// Charges the idle clocks before a burst to the reasons recorded since the last burst. Reasons are recorded by clocks
/// of commands. As reads and writes differ in the latency from command to data, the sums differ after a change of
/// direction, and are adjusted.
[[gnu::always_inline]] inline void Channel::account_burst(Cycle start) {
    Cycle gap = start - bus_free_ - pending_sum_;
    if (gap > 0)
        lose(bus_free_ == 0 ? Lost::no_request : Lost::turnaround, gap);
    while (gap < 0) {
        const auto most = std::max_element(pending_.begin(), pending_.end());
        const Cycle n = std::min(*most, -gap);
        MOSCOPE_CHECK(n > 0);
        *most -= n;
        gap += n;
    }
    for (unsigned bits = reasons_; bits; bits &= bits - 1) {
        const auto r = static_cast<unsigned>(std::countr_zero(bits));
        stats_.lost[r] += std::exchange(pending_[r], 0);
    }
    reasons_ = 0;
    pending_sum_ = 0;
    stats_.busy += burst_;
}

/// The column command and the burst of a request that has left the queues.
[[gnu::always_inline]] inline void Channel::transfer(Index i, unsigned d) {
    Entry &e = pool_[i];
    Bank &b = bank_[e.at];
    const Cycle data = clock_ + (d ? cwl_ : cl_);
    if (b.history)
        blame_opening(b.opening);
    account_burst(data);
    ++(b.history == 0 ? stats_.row_hits : b.history == 1 ? stats_.row_misses : stats_.row_conflicts);
    b.history = 0;
    stats_.turnarounds += d != last_direction_;
    last_direction_ = d;
    last_rank_ = b.rank;
    last_column_ = clock_;
    column_free_ = clock_ + burst_;
    bus_free_ = data + burst_;
    bus_[0] = bus_times(cl_, 0);
    b.last_use = clock_;
    if (d) {
        b.next_pre = std::max(b.next_pre, bus_free_ + wr_);
        rank_[b.rank].next_read = std::max(rank_[b.rank].next_read, bus_free_ + wtr_);
    } else {
        b.next_pre = std::max(b.next_pre, clock_ + rtp_);
    }
    const bool last_use =
        policy_ == PagePolicy::forced || (policy_ == PagePolicy::closed && b.hit[0] == kNone && b.hit[1] == kNone);
    report(d ? CommandKind::write : CommandKind::read, e.at, e.row, e.column, last_use);
    if (last_use)
        close(e.at, b.next_pre, 0);

    const DramRequest done = e.request;
    put_free(i);
    if (d) {
        ++stats_.writes;
        --writes_;
        stats_.write_queue += clock_;
        --write_filter_[filter_index(line_of(done.addr))];
    } else {
        ++stats_.reads;
        --reads_;
        stats_.read_queue += clock_;
        const Tick when = read_complete(clock_);
        stats_.read_latency_fs += when - done.arrival;
        if (read_done_)
            read_done_(done_owner_, done, when); // last: it may add requests
    }
}

} // namespace moscope::dram
