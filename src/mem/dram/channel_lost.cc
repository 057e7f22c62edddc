// SPDX-License-Identifier: BSD-3-Clause
// Counts the idle clocks of a channel's data bus, each for one reason.
#include "mem/dram/channel.hh"

#include <algorithm>
#include <bit>
#include <utility>

namespace moscope::dram {

Lost Channel::reason(const Nearest &n) const {
    if (n.bank < 0)
        return work_[direction_] ? Lost::refresh : Lost::no_request;
    if (n.held)
        return Lost::order;
    const Bank &b = bank_[n.bank];
    const auto closing = [&] { // for the oldest request, although another wants the open row
        if (overtaken_[direction_] < bypass_max_)
            return false;
        const Entry &oldest = pool_[queue_[direction_].head];
        return oldest.at == n.bank && b.row != static_cast<std::int32_t>(oldest.row);
    };
    if (b.hit[direction_] != kNone && !closing())
        return column_reason(b, column_time(b, direction_));
    if (b.row >= 0)
        return b.next_pre > clock_ ? Lost::row_cycle : Lost::command;
    const Cycle when = act_time(b);
    if (when <= clock_)
        return Lost::command;
    return b.next_act == when ? b.act_reason : Lost::activate_rate;
}

/// Charges the idle clocks in which the burst's row was being opened to the waits that delayed the opening: without
/// them, the clocks would not have been idle. Only the rest is the latency of the opening itself.
void Channel::blame_opening(const Opening &o) {
    constexpr auto bit = [](Lost r) { return 1u << static_cast<unsigned>(r); };
    constexpr unsigned kOpening = bit(Lost::row_cycle) | bit(Lost::precharge) | bit(Lost::activate) |
                                  bit(Lost::activate_rate) | bit(Lost::refresh);
    // The usual case: nothing delayed the opening, and its latency has been counted as what it was.
    if ((reasons_ & kOpening) == bit(Lost::activate) && (o.rank | o.bank | o.beyond_depth) == 0 &&
        pending_[static_cast<unsigned>(Lost::activate)] <= rcd_)
        return;
    Cycle clocks = 0;
    for (unsigned r = reasons_ & kOpening; r; r &= r - 1)
        clocks += std::exchange(pending_[static_cast<unsigned>(std::countr_zero(r))], 0);
    if (clocks == 0)
        return;
    pending_sum_ -= clocks;
    const auto give = [&](Lost r, Cycle most) {
        const Cycle n = std::min(clocks, most);
        if (n == 0)
            return;
        lose(r, n);
        clocks -= n;
    };
    give(o.rank_reason, o.rank);
    give(Lost::row_cycle, o.bank);
    give(Lost::scheduler_depth, o.beyond_depth);
    give(Lost::activate, rcd_);
    give(Lost::precharge, rp_);
    give(Lost::row_cycle, clocks);
}

ChannelStats Channel::stats() const {
    ChannelStats s = stats_;
    s.accounted = bus_free_;
    s.clocks = clock_;
    s.read_queue += clock_ * reads_;
    s.write_queue += clock_ * writes_;
    for (unsigned r = 0; r < kLostReasons; ++r) {
        s.lost[r] += pending_[r];
        s.accounted += pending_[r];
    }
    return s;
}

} // namespace moscope::dram
