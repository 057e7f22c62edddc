// SPDX-License-Identifier: BSD-3-Clause
// Construction of a channel, refreshes of its ranks, and closing of rows.
#include "mem/dram/channel.hh"

#include <algorithm>
#include <bit>

namespace moscope::dram {

namespace {

constexpr Cycle kLongAgo = -(Cycle{1} << 40);

} // namespace

Channel::Channel(const DramParams &p, unsigned index)
    : tck_(p.tCK_fs),
      backend_(p.backend_fs),
      index_(index),
      ranks_(p.ranks),
      banks_(p.banks),
      depth_(p.scheduler_depth),
      // The channels share the node's write entries. When all are in use, one channel holds at least its share, and
      // must begin to write.
      write_high_(std::min(p.write_high, std::max(1u, p.write_entries / p.bus_channels()))),
      write_low_(std::min(p.write_low, write_high_ - 1)),
      bypass_max_(p.bypass_max),
      policy_(p.page_policy),
      last_column_(kLongAgo) {
    const auto cycles = [&](Tick t) { return (t + p.tCK_fs - 1) / p.tCK_fs; };
    cl_ = cycles(p.t.tCL), cwl_ = cycles(p.t.tCWL), rcd_ = cycles(p.t.tRCD), rp_ = cycles(p.t.tRP);
    ras_ = cycles(p.t.tRAS), rc_ = cycles(p.t.tRC), wr_ = cycles(p.t.tWR), wtr_ = cycles(p.t.tWTR);
    rtp_ = cycles(p.t.tRTP), rrd_ = cycles(p.t.tRRD), faw_ = cycles(p.t.tFAW), ccd_ = cycles(p.t.tCCD);
    rtrs_ = cycles(p.t.tRTRS), rtw_ = cycles(p.t.tRTW), refi_ = cycles(p.t.tREFI), rfc_ = cycles(p.t.tRFC);
    idle_close_ = cycles(p.idle_close_fs);
    burst_ = p.burst_length() / 2;
    done_after_ = p.critical_word_first ? 1 : burst_;

    pool_.resize(p.read_entries + p.write_entries);
    for (unsigned i = 0; i < pool_.size(); ++i)
        put_free(static_cast<Index>(i));
    bank_.resize(ranks_ * banks_);
    for (unsigned b = 0; b < bank_.size(); ++b)
        bank_[b].rank = static_cast<std::uint8_t>(b / banks_);
    rank_.resize(ranks_);
    refresh_due_ = kNeverCycle;
    for (unsigned r = 0; r < ranks_; ++r) {
        std::fill_n(rank_[r].activates, 4, kLongAgo);
        // Staggered, so that the ranks of a channel are not refreshed at the same time.
        rank_[r].refresh_due = refi_ ? refi_ * (r + 1) / ranks_ : kNeverCycle;
        refresh_due_ = std::min(refresh_due_, rank_[r].refresh_due);
    }
    bus_[0] = bus_times(cl_, 0);
}

void Channel::choose_refresh(Choice &best) const {
    for (unsigned r = 0; r < ranks_; ++r) {
        if (rank_[r].refresh_due > clock_)
            continue;
        Choice c{clock_, 0, Do::refresh, static_cast<std::uint8_t>(r), kNone};
        bool open = false;
        Cycle close = clock_, quiet = clock_;
        for (unsigned b = r * banks_; b < (r + 1) * banks_; ++b) {
            open |= bank_[b].row >= 0;
            close = std::max(close, bank_[b].next_pre); // also of banks that precharge themselves
            quiet = std::max(quiet, bank_[b].next_act);
        }
        if (open) {
            c.what = Do::precharge_rank;
            c.when = close;
        } else {
            c.when = quiet;
        }
        if (c.better_than(best))
            best = c;
    }
}

void Channel::choose_idle_close(Choice &best) const {
    for (std::uint64_t open = open_; open; open &= open - 1) {
        const unsigned at = static_cast<unsigned>(std::countr_zero(open));
        const Bank &b = bank_[at];
        if (b.hit[0] != kNone || b.hit[1] != kNone || rank_[b.rank].refresh_due <= clock_)
            continue;
        const Choice c{std::max({b.next_pre, b.last_use + idle_close_, clock_}), 0, Do::close,
                       static_cast<std::uint8_t>(at), kNone};
        if (c.better_than(best))
            best = c;
    }
}

/// Closes the row at clock `when`; wanted_by: 2 if a request wants another row of the bank, else 0.
void Channel::close(unsigned at, Cycle when, std::uint8_t wanted_by) {
    Bank &b = bank_[at];
    b.row = -1;
    b.hit[0] = b.hit[1] = kNone;
    b.history = wanted_by;
    open_ &= ~(std::uint64_t{1} << at);
    if (when + rp_ >= b.next_act) {
        b.next_act = when + rp_;
        b.act_reason = Lost::precharge;
    }
}

void Channel::issue_refresh(unsigned rank) {
    report(CommandKind::refresh, rank * banks_, 0, 0, false);
    ++stats_.refreshes;
    stats_.refreshing += rfc_;
    for (unsigned b = rank * banks_; b < (rank + 1) * banks_; ++b) {
        bank_[b].next_act = clock_ + rfc_;
        bank_[b].act_reason = Lost::refresh;
    }
    rank_[rank].refresh_due += refi_;
    refresh_due_ = kNeverCycle;
    for (const Rank &r : rank_)
        refresh_due_ = std::min(refresh_due_, r.refresh_due);
}

} // namespace moscope::dram
