# SPDX-License-Identifier: BSD-3-Clause
"""What the machine counts. A window is the difference of two snapshots."""

from moscope.schema.describe import Counter, Counters, Enumeration, Member

LOST = Enumeration("Lost", "LostReasons", "Why the data bus was idle before a burst: the rule that delayed the burst's own request "
                   "longest. If this rule took less time, the burst would begin earlier. Waits that ended before the bus became idle do "
                   "not count.", {
    "no_request": Member("the channel had no request", "nothing to do"),
    "row_cycle": Member("the bank's row was in use or had just been closed: tRAS, tRC, tRTP, tWR, and the tRP and tRCD after them",
                        "a bank whose row is in use or just closed (tRAS, tRC, tWR)"),
    "precharge": Member("tRP of a request that came too late for its precharge to overlap with other bursts",
                        "closing rows that requests of other streams left open (tRP)"),
    "activate": Member("tRCD of a request that came too late for its activate to overlap with other bursts", "opening rows (tRCD)"),
    "activate_rate": Member("activates of one rank must be some time apart: tRRD, tFAW", "activates too close together (tRRD, tFAW)"),
    "turnaround": Member("the bus changed direction: tWTR, tRTW", "the bus changing direction (tWTR)"),
    "rank_switch": Member("the bus changed to another rank: tRTRS", "the bus changing rank"),
    "refresh": Member("the rank was in refresh or waited for its refresh: tRFC", "refresh (tRFC)"),
    "order": Member("a ready row hit was held back because the oldest request had been overtaken bypass_max times",
                    "row hits held back for older requests"),
    "scheduler_depth": Member("the request was queued, but was not among the `scheduler_depth` oldest, from which the scheduler chooses",
                              "requests beyond the scheduler's depth"),
    "command": Member("another command occupied the command bus, or tCCD is longer than a burst", "command slots (tCCD)"),
}, counted=False, namespace="moscope::dram")

# The reasons for which a bus is idle because no request had come in time: more requests in flight would use these clocks.
LOST_FOR_LACK_OF_REQUESTS = ("no_request", "precharge", "activate")

CHANNEL = Counters("ChannelStats", "What a DRAM channel counts. Every clock of the data bus is either busy or lost to exactly one reason, "
                   "so `busy` and `lost` add up to `accounted`.", (
    Counter("reads", "bursts", "read bursts on the data bus"),
    Counter("writes", "bursts", "write bursts on the data bus"),
    Counter("forwarded", "reads", "reads served from a queued write"),
    Counter("merged", "writes", "writes that replaced a queued write of the same line", internal=True),
    Counter("row_hits", "accesses", "accesses that found their row open"),
    Counter("row_misses", "accesses", "accesses that found no row open in their bank"),
    Counter("row_conflicts", "accesses", "accesses that found another row open in their bank"),
    Counter("activates", "commands", "rows opened"),
    Counter("precharges", "commands", "rows closed", internal=True),
    Counter("refreshes", "commands", "refreshes of a rank"),
    Counter("turnarounds", "changes", "changes of the bus's direction"),
    Counter("forced", "bursts", "bursts of a request that could not be overtaken any more", internal=True),
    Counter("busy", "clocks", "clocks with data", signed=True),
    Counter("accounted", "clocks", "sum of `busy` and `lost`", signed=True),
    Counter("lost", "clocks", "clocks without data, by reason", signed=True, each=LOST),
    Counter("refreshing", "rank-clocks", "ranks in tRFC, summed over clocks", signed=True, internal=True),
    Counter("read_queue", "reads x clocks", "reads in the queue, summed over clocks", signed=True),
    Counter("write_queue", "writes x clocks", "writes in the queue, summed over clocks", signed=True),
    Counter("clocks", "clocks", "clocks over which `read_queue` and `write_queue` are summed", signed=True),
    Counter("read_latency_fs", "fs", "time from arrival to completion, summed over reads from DRAM", signed=True),
), namespace="moscope::dram")

LINK_CHANNEL = Counters("LinkChannelStats", "What one channel of one direction of a link counts. Bytes are those on the wires.", (
    Counter("packets", "packets", "packets sent"),
    Counter("data_packets", "packets", "those of `packets` that carried a line"),
    Counter("bytes", "bytes", "bytes sent, packet overhead included"),
    Counter("busy_fs", "fs", "serialization time", signed=True),
    Counter("wait_fs", "fs", "from arrival at the router to the grant of the link, summed over packets", signed=True),
    Counter("credit_stall_fs", "fs", "time in which the link could have taken the channel's next packet, but no buffer at the link's far "
            "end was free", signed=True),
), namespace="moscope::ruby")

DESCRIPTIONS = (LOST, CHANNEL, LINK_CHANNEL)
