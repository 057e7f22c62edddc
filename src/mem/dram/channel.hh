// SPDX-License-Identifier: BSD-3-Clause
// One DRAM channel: banks, ranks, the two buses, and the first-ready, first-come-first-served scheduler with its
// write queue. Model of a family 10h DRAM controller (AMD 31116) in front of JEDEC DDR2/DDR3 parts. Time inside is
// counted in DRAM clocks; one command fits in a clock.
//
// Commands are decided lazily, but exactly: `run(end)` issues every command of the clocks before `end`, jumping from
// one clock at which something can happen to the next. Each request comes with the clock from which the scheduler sees
// it. That clock lies after the moment of the call, so results do not depend on when `run` is called. A lone read may
// stay undecided until something depends on it (`run_reads`); statistics count it once `run` has been called.
// Requests live in a fixed pool and in lists linked through it: nothing is allocated after construction.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/error.hh"
#include "mem/dram/address_map.hh"
#include "mem/dram/params.hh"
#include "schema/counters.hh"

namespace moscope::dram {

using Cycle = std::int64_t; ///< DRAM clocks since tick zero
inline constexpr Cycle kNeverCycle = std::numeric_limits<Cycle>::max();

struct DramRequest {
    Addr addr = 0;
    bool write = false;
    Tick arrival = 0;
    void *context = nullptr;
};

enum class CommandKind : std::uint8_t { activate, precharge, precharge_all, read, write, refresh };

/// A command on the bus, for checkers and traces.
struct DramCommand {
    CommandKind kind;
    bool auto_precharge;
    unsigned channel, rank, bank, row, column;
    Cycle cycle;
};

class Channel {
  public:
    using ReadFn = void (*)(void *owner, const DramRequest &, Tick when);
    using TraceFn = void (*)(void *owner, const DramCommand &);

    Channel(const DramParams &p, unsigned index);

    void set_read_done(ReadFn fn, void *owner) { read_done_ = fn, done_owner_ = owner; }
    void set_trace(TraceFn fn, void *owner) { trace_ = fn, trace_owner_ = owner; }

    /// A request that the scheduler sees from clock `seen` on. Calls come in the order of `seen`.
    void add(const DramRequest &r, const Location &at, Cycle seen);

    /// Whether a write to this line is queued. Exact after run().
    bool has_write(Addr line) const {
        for (const List *l : {&queue_[1], &input_})
            for (Index i = l->head; i != kNone; i = pool_[i].queue.next)
                if (pool_[i].request.write && line_of(pool_[i].request.addr) == line)
                    return true;
        return false;
    }
    /// A filter for has_write(): false only if no write to this line is held.
    bool may_have_write(Addr line) const { return write_filter_[filter_index(line)] != 0; }

    /// Decides all clocks before `end`.
    void run(Cycle end) {
        if (end <= clock_)
            return;
        // The usual case: since the last call there has been nothing to decide, and there is nothing now.
        if (choice_holds_ && reads_ + writes_ == 0 && refresh_due_ >= end)
            pass(end, Lost::no_request);
        else
            decide(end, false);
    }
    /// The same, but a lone read whose command comes at `end` or later may be left undecided until the next call.
    void run_reads(Cycle end) {
        if (reads_ == 0)
            run(end);
        else if (end > clock_)
            decide(end, true);
    }

    unsigned reads() const { return reads_; } ///< held, from add() to their command
    unsigned writes() const { return writes_; }
    /// No command is issued before this clock.
    Cycle next_command() const { return hint_; }
    /// No read command is issued before this clock.
    Cycle next_read() const { return read_hint_; }
    /// A read whose command is at clock c is complete at this tick.
    Tick read_complete(Cycle c) const { return (c + cl_ + done_after_) * tck_ + backend_; }

    ChannelStats stats() const;

  private:
    using Index = std::uint16_t;
    static constexpr Index kNone = 0xffff;

    struct List {
        Index head = kNone, tail = kNone;
    };
    struct Link {
        Index next = kNone, prev = kNone;
    };
    struct Entry {
        DramRequest request;
        Cycle seen = 0;    ///< clock from which the scheduler may know it
        Cycle entered = 0; ///< clock at which it came within the scheduler's depth
        std::uint64_t age = 0;
        Link queue, bank;
        unsigned row = 0, column = 0;
        std::uint8_t at = 0; ///< bank of the channel
    };
    /// The waits, in clocks, of the request for which a row was opened, until its activate.
    struct Opening {
        Cycle bank = 0;         ///< until its own bank allowed the activate; 0 if only tRP of an undelayed precharge
        Cycle rank = 0;         ///< from then until the activate; all of the wait, if for a refresh
        Cycle beyond_depth = 0; ///< to be among those that the scheduler chooses from
        Lost rank_reason = Lost::activate_rate;
    };
    struct Bank {
        Cycle next_act = 0, next_pre = 0, next_col = 0, last_use = 0;
        List queue[2];                 ///< reads, writes in order of age
        Index hit[2] = {kNone, kNone}; ///< oldest read, write that wants the open row
        std::int32_t row = -1;         ///< open row, -1: none
        std::uint8_t rank = 0;
        Lost act_reason = Lost::row_cycle; ///< what set next_act
        Opening opening;                   ///< how the open row came to be open
        std::uint8_t history = 0; ///< since the last column access: 1: activated; 2: a row in the way was closed
    };
    struct Rank {
        Cycle next_act = 0, next_read = 0, refresh_due = 0;
        Cycle activates[4];
        unsigned oldest_activate = 0;
    };
    enum class Do : std::uint8_t { refresh, precharge_rank, column, activate, precharge, close }; ///< best first
    struct Choice {
        Cycle when;
        std::uint64_t age;
        Do what;
        std::uint8_t at; ///< bank, or rank for refresh and precharge_rank
        Index entry;
        bool better_than(const Choice &o) const {
            if (when != o.when)
                return when < o.when;
            if (what != o.what)
                return what < o.what;
            return age < o.age;
        }
    };
    /// A read that nothing but its bank and the buses delay.
    struct Alone {
        Index entry;
        bool open;        ///< whether its row is open
        Cycle seen;       ///< clock at which it is in the queue
        Cycle could_open; ///< from which bank and rank allow an activate
        Cycle opened;     ///< clock of its activate, if the row is not open
        Cycle ready;      ///< clock of its column command
        Cycle change;     ///< clock at which the scheduler sees another request, or a refresh is due
    };
    /// The request whose column command could come first; it gives idle clocks their reason.
    struct Nearest {
        Cycle burst; ///< clock at which a column command could follow if nothing else came in between
        int bank;    ///< -1: no request
        bool held;   ///< ready but held back by bypass_max
    };

    /// Earliest column command for which the data bus and tCCD leave room.
    struct BusTimes {
        Cycle same_rank = 0, other_rank = 0;
    };

    static unsigned filter_index(Addr line) {
        return static_cast<unsigned>((line >> kLineBits) * 0x9e3779b97f4a7c15ull >> 54);
    }

    template <Link Entry::*link> void append(List &l, Index i);
    template <Link Entry::*link> void remove(List &l, Index i);

    void pop(List &l); ///< by Entry::queue
    void put_free(Index i) {
        pool_[i].queue.next = free_;
        free_ = i;
    }
    void admit();
    void admit_all();
    void enter(Index i);
    void choose_command();
    void choose_nothing();
    void rest(Cycle end);
    void decide(Cycle end, bool reads_only);
    bool find_alone(Alone &a) const;
    void serve(const Alone &a);
    void open_for(const Alone &a);
    bool serve_alone(Cycle end, bool reads_only);
    void choose_direction();
    void choose_direction_for_writes();
    BusTimes bus_times(Cycle latency, Cycle turn) const {
        const Cycle after = last_column_ + ccd_;
        return {std::max(after, bus_free_ + turn - latency),
                std::max(after, bus_free_ + std::max(turn, rtrs_) - latency)};
    }
    template <bool kReads> void choose(Choice &best, Nearest &nearest) const;
    void choose_only(Index i, Choice &best, Nearest &nearest) const;
    void choose_refresh(Choice &best) const;
    void choose_idle_close(Choice &best) const;
    Lost reason(const Nearest &n) const;
    /// Why a column command that could be issued at `when` is not issued now.
    Lost column_reason(const Bank &b, Cycle when) const {
        if (when <= clock_)
            return Lost::command;
        if (b.next_col == when)
            return Lost::activate;
        if (direction_ != last_direction_ || (direction_ == 0 && rank_[b.rank].next_read == when))
            return Lost::turnaround;
        return b.rank != last_rank_ ? Lost::rank_switch : Lost::command;
    }
    void pass(Cycle to, const Nearest &n);
    void pass(Cycle to, Lost why) {
        const Cycle from = clock_ > column_free_ ? clock_ : column_free_;
        if (to > from)
            lose(why, to - from);
        clock_ = to;
    }
    void issue(const Choice &c);
    void issue_column(const Choice &c);
    void issue_activate(const Choice &c);
    void open_row(Bank &b, unsigned at, const Entry &e);
    void open_row(Bank &b, const Alone &a, const Entry &e);
    void transfer(Index i, unsigned d);
    void close(unsigned at, Cycle when, std::uint8_t wanted_by);
    void issue_refresh(unsigned rank);
    Index next_hit(Index from, unsigned row) const;
    void lose(Lost why, Cycle clocks) {
        pending_[static_cast<unsigned>(why)] += clocks;
        reasons_ |= 1u << static_cast<unsigned>(why);
        pending_sum_ += clocks;
    }
    void blame_opening(const Opening &o);
    void account_burst(Cycle start);
    /// `at`: the bank; for a command to a whole rank, the rank's first bank.
    void report(CommandKind kind, unsigned at, unsigned row, unsigned column, bool auto_precharge) {
        if (__builtin_expect(trace_ != nullptr, 0))
            trace_(trace_owner_, {kind, auto_precharge, index_, at / banks_, at % banks_, row, column, clock_});
    }

    Cycle act_time(const Bank &b) const {
        const Rank &r = rank_[b.rank];
        Cycle c = b.next_act > r.next_act ? b.next_act : r.next_act;
        const Cycle fifth = r.activates[r.oldest_activate] + faw_;
        return c > fifth ? c : fifth;
    }
    Cycle column_time(const Bank &b, unsigned direction) const {
        const BusTimes &bus = bus_[direction];
        Cycle c = b.rank == last_rank_ ? bus.same_rank : bus.other_rank;
        c = c > b.next_col ? c : b.next_col;
        if (direction == 0 && c < rank_[b.rank].next_read)
            c = rank_[b.rank].next_read;
        return c;
    }

    // Parameters in clocks.
    Cycle cl_, cwl_, rcd_, rp_, ras_, rc_, wr_, wtr_, rtp_, rrd_, faw_, ccd_, rtrs_, rtw_, refi_, rfc_;
    Cycle burst_, done_after_, idle_close_;
    Tick tck_, backend_;
    unsigned index_, ranks_, banks_, depth_, write_high_, write_low_, bypass_max_;
    PagePolicy policy_;

    std::vector<Entry> pool_;
    std::vector<Bank> bank_;
    std::vector<Rank> rank_;
    Index free_ = kNone; ///< first free entry of pool_; the others follow by queue.next
    List input_, waiting_, queue_[2];
    std::uint64_t work_[2] = {0, 0}; ///< banks with queued reads, writes
    std::uint64_t open_ = 0;         ///< banks with an open row
    unsigned reads_ = 0, writes_ = 0, queued_[2] = {0, 0};
    std::array<std::uint16_t, 1024> write_filter_{};
    std::uint64_t next_age_ = 1;
    unsigned overtaken_[2] = {0, 0}; ///< times that the oldest read, write has been overtaken

    Cycle clock_ = 0; ///< first clock that is not decided
    Cycle asked_ =
        0; ///< clock up to which a run_reads() left a lone read undecided: later requests count from there, not from clock_
    Cycle hint_ = 0, read_hint_ = 0;
    Cycle refresh_due_ = 0;  ///< earliest of all ranks
    unsigned direction_ = 0; ///< 0: serving reads, 1: writes
    bool draining_ = false;  ///< writes although reads may wait
    unsigned drained_ = 0;   ///< writes of this drain that reads have waited for
    unsigned owed_ = 0;      ///< reads that go before the next drain: as many as the last one wrote, if they waited
    unsigned last_rank_ = 0, last_direction_ = 0;
    Cycle last_column_, bus_free_ = 0, column_free_ = 0;
    BusTimes bus_[2];                           ///< of reads; of writes, while they are being served
    std::array<Cycle, kLostReasons> pending_{}; ///< lost since the last burst
    unsigned reasons_ = 0;                      ///< elements of pending_ that may be nonzero, by bit
    Cycle pending_sum_ = 0;

    Choice best_{};
    Nearest nearest_{};
    bool choice_holds_ = false; ///< these are what choose_command() would find

    ReadFn read_done_ = nullptr;
    void *done_owner_ = nullptr;
    TraceFn trace_ = nullptr;
    void *trace_owner_ = nullptr;
    /// All counts except `clocks`, which is clock_. The sums read_queue and write_queue are complete for requests that
    /// have left; for each request that is still held, stats() adds clock_.
    ChannelStats stats_;
};

template <Channel::Link Channel::Entry::*link> void Channel::append(List &l, Index i) {
    Link &e = pool_[i].*link;
    e.next = kNone;
    e.prev = l.tail;
    (l.tail == kNone ? l.head : (pool_[l.tail].*link).next) = i;
    l.tail = i;
}

inline void Channel::add(const DramRequest &r, const Location &at, Cycle seen) {
    const Index i = free_;
    MOSCOPE_CHECK(i != kNone);
    Entry &e = pool_[i];
    free_ = e.queue.next;
    e.request = r;
    e.seen = std::max(seen, clock_);
    e.age = next_age_++;
    e.row = at.row;
    e.column = at.column;
    e.at = static_cast<std::uint8_t>(at.rank * banks_ + at.bank);
    append<&Entry::queue>(input_, i);
    if (r.write) {
        ++writes_;
        ++write_filter_[filter_index(line_of(r.addr))];
        stats_.write_queue -= std::max(clock_, asked_);
    } else {
        ++reads_;
        stats_.read_queue -= std::max(clock_, asked_);
    }
    hint_ = std::min(hint_, e.seen);
    // Alone in the channel, it has to open its row first.
    const bool opens = reads_ + writes_ == 1 && bank_[e.at].row != static_cast<std::int32_t>(e.row);
    read_hint_ = std::min(read_hint_, opens ? e.seen + rcd_ : e.seen);
}

} // namespace moscope::dram
