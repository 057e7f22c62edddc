// SPDX-License-Identifier: BSD-3-Clause
// What a channel counts. Times are DRAM clocks. Every clock of the data bus since tick zero is either busy or lost
// to exactly one reason, so `busy` and `lost` add up to `accounted`; windows are differences of two snapshots.
#pragma once

#include <array>
#include <cstdint>

namespace moscope::dram {

/// Why the data bus carried nothing before a burst: the rule that held the burst's own request longest, for it is
/// this that would have to be faster. Waits that ended before the bus fell idle do not count.
enum class Lost : std::uint8_t {
    no_request,      ///< nothing to do
    row_cycle,       ///< same bank: its row was in use or just closed (tRAS, tRC, tRTP, tWR and what follows)
    precharge,       ///< tRP of a request that came too late for it to be hidden
    activate,        ///< tRCD of a request that came too late for it to be hidden
    activate_window, ///< activates of the rank too close: tRRD, tFAW
    turnaround,      ///< bus changes direction: tWTR, tRTW
    rank_switch,     ///< bus changes rank: tRTRS
    refresh,         ///< rank is refreshed or prepared for it: tRFC
    order,           ///< a ready row hit was held back because the oldest request had been overtaken bypass_max times
    window,          ///< the request was held, but behind those among which the scheduler chooses
    command          ///< command slot taken, tCCD longer than a burst
};
inline constexpr unsigned kLostReasons = 11;
inline constexpr std::array<const char *, kLostReasons> kLostNames = {
    "no_request",  "row_cycle", "precharge", "activate", "activate_window", "turnaround",
    "rank_switch", "refresh",   "order",     "window",   "command"};

struct ChannelStats {
    std::uint64_t reads = 0, writes = 0; ///< bursts on the data bus
    std::uint64_t forwarded = 0;         ///< reads served from a queued write
    std::uint64_t merged = 0;            ///< writes that replaced a queued write of the same line
    std::uint64_t row_hits = 0;          ///< row was open
    std::uint64_t row_misses = 0;        ///< bank was closed
    std::uint64_t row_conflicts = 0;     ///< another row had to be closed first
    std::uint64_t activates = 0, precharges = 0, refreshes = 0;
    std::uint64_t turnarounds = 0; ///< changes of direction
    std::uint64_t forced = 0;      ///< bursts of a request that could not be overtaken any more
    std::int64_t busy = 0;         ///< clocks with data
    std::array<std::int64_t, kLostReasons> lost{};
    std::int64_t accounted = 0;    ///< clocks that busy and lost cover
    std::int64_t refreshing = 0;   ///< rank-clocks in tRFC
    std::int64_t read_queue = 0;   ///< reads held, summed over clocks
    std::int64_t write_queue = 0;  ///< writes held, summed over clocks
    std::int64_t clocks = 0;       ///< clocks that the two sums cover
    std::int64_t read_latency = 0; ///< fs, arrival to completion, summed over reads from DRAM
};

} // namespace moscope::dram
