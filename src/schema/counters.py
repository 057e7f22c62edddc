# SPDX-License-Identifier: BSD-3-Clause
"""What the machine counts. A window is the difference of two snapshots."""

from moscope.schema.describe import Counter, Counters, Enumeration, Member

LOST = Enumeration("Lost", "LostReasons", "Why the data bus carried nothing before a burst: the rule that held the burst's own request "
                   "longest, for it is this that would have to be faster. Waits that ended before the bus fell idle do not count.", {
    "no_request": Member("nothing to do", "nothing to do"),
    "row_cycle": Member("same bank: its row was in use or just closed (tRAS, tRC, tRTP, tWR and what follows)",
                        "a bank whose row is in use or just closed (tRAS, tRC, tWR)"),
    "precharge": Member("tRP of a request that came too late for it to be hidden",
                        "closing rows that requests of other streams left open (tRP)"),
    "activate": Member("tRCD of a request that came too late for it to be hidden", "opening rows (tRCD)"),
    "activate_rate": Member("activates of the rank too close: tRRD, tFAW", "activates too close together (tRRD, tFAW)"),
    "turnaround": Member("bus changes direction: tWTR, tRTW", "the bus changing direction (tWTR)"),
    "rank_switch": Member("bus changes rank: tRTRS", "the bus changing rank"),
    "refresh": Member("rank is refreshed or prepared for it: tRFC", "refresh (tRFC)"),
    "order": Member("a ready row hit was held back because the oldest request had been overtaken bypass_max times",
                    "row hits held back for requests that have waited long"),
    "scheduler_depth": Member("the request was held, but behind those among which the scheduler chooses",
                              "requests beyond the scheduler's depth"),
    "command": Member("command slot taken, tCCD longer than a burst", "command slots (tCCD)"),
}, counted=False, namespace="moscope::dram")

CHANNEL = Counters("ChannelStats", "What a DRAM channel counts. Every clock of the data bus is either busy or lost to exactly one reason, "
                   "so `busy` and `lost` add up to `accounted`.", (
    Counter("reads", "bursts", "bursts on the data bus"),
    Counter("writes", "bursts", "bursts on the data bus"),
    Counter("forwarded", "reads", "reads served from a queued write"),
    Counter("merged", "writes", "writes that replaced a queued write of the same line", internal=True),
    Counter("row_hits", "accesses", "the row was open"),
    Counter("row_misses", "accesses", "the bank was closed"),
    Counter("row_conflicts", "accesses", "another row had to be closed first"),
    Counter("activates", "commands", "rows opened"),
    Counter("precharges", "commands", "rows closed", internal=True),
    Counter("refreshes", "commands", "refreshes of a rank"),
    Counter("turnarounds", "changes", "changes of the bus's direction"),
    Counter("forced", "bursts", "bursts of a request that could not be overtaken any more", internal=True),
    Counter("busy", "clocks", "clocks with data", signed=True),
    Counter("accounted", "clocks", "clocks that busy and lost cover", signed=True),
    Counter("lost", "clocks", "clocks without data, by reason", signed=True, each=LOST),
    Counter("refreshing", "rank-clocks", "ranks in tRFC, summed over clocks", signed=True, internal=True),
    Counter("read_queue", "reads x clocks", "reads held, summed over clocks", signed=True),
    Counter("write_queue", "writes x clocks", "writes held, summed over clocks", signed=True),
    Counter("clocks", "clocks", "clocks that the two sums cover", signed=True),
    Counter("read_latency_fs", "fs", "arrival to completion, summed over reads from DRAM", signed=True),
), namespace="moscope::dram")

LINK_CHANNEL = Counters("LinkChannelStats", "What one channel of one direction of a link counts. Bytes are those on the wires.", (
    Counter("packets", "packets", "packets sent"),
    Counter("data_packets", "packets", "those of `packets` that carried a line"),
    Counter("bytes", "bytes", "bytes sent, packet overhead included"),
    Counter("busy_fs", "fs", "serialization time", signed=True),
    Counter("wait_fs", "fs", "from arrival at the router to the grant of the link, summed over packets", signed=True),
    Counter("credit_stall_fs", "fs", "the link could have taken the channel's next packet, but no buffer was free behind it", signed=True),
), namespace="moscope::ruby")

DESCRIPTIONS = (LOST, CHANNEL, LINK_CHANNEL)
