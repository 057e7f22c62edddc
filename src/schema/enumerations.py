# SPDX-License-Identifier: BSD-3-Clause
"""Enumerations that the engine computes and files name. C++, JSON Schemas, reference pages, figures and reports follow from them."""

from moscope.schema.describe import Enumeration, Member

SEGMENT = Enumeration("Segment", "Segments", "Where a transaction's latency goes.", {
    "queue": Member("waiting for buffers, link arbitration and credits", "waiting for buffers and links",
                    colours=("#bab0ac", "#bab0ac")),
    "cache": Member("lookups and transfers in the requestor's cache hierarchy", "caches of the requestor",
                    colours=("#4e79a7", "#4e79a7")),
    "crossbar": Member("transit through the crossbars of the chips", "crossbars of the chips", colours=("#76b7b2", "#76b7b2")),
    "link": Member("serialization and flight on HyperTransport links", "HyperTransport links", colours=("#f28e2b", "#f28e2b")),
    "home_queue": Member("waiting at the home node", "waiting at the home node", colours=("#9c755f", "#9c755f")),
    "probe_filter": Member("request handling and probe filter lookup in the home agent", "home agent and probe filter",
                           colours=("#b07aa1", "#b07aa1")),
    "dram": Member("DRAM access, including the wait in the DRAM queue", "DRAM access", colours=("#59a14f", "#59a14f")),
    "responder": Member("caches that answer probes", "caches that answer probes", colours=("#e15759", "#e15759")),
})

# Groups of miss classes.
SIZE = "size"  # no other core matters: a larger cache would have held the line, or no core has had it before
SHARED = "shared"  # another core has written the line
PERMISSION = "permission"  # the core has the line, but may not write it
OLDER = "older"  # the core has requested the line before: the access has no cause of its own

MISS_CLASS = Enumeration("MissClass", "MissClasses", "Why the core missed the line; `count` stands for no class.", {
    "cold": Member("the core has not had the line before", noun="cold misses", colours=("#e3d28a", "#8c7f44"), rank=5, group=SIZE),
    "capacity": Member("the core had the line and replaced it", noun="capacity misses", colours=("#999933", "#b9b955"), rank=4,
                       group=SIZE),
    "upgrade": Member("the core had the line without permission to write it", noun="upgrades", colours=("#aa3377", "#cf5f9d"), rank=3,
                      group=PERMISSION),
    "secondary": Member("an older miss or a prefetch of the core had already requested the line; the class of the older miss, if "
                        "there is one, says why the line was absent",
                        noun="secondary misses", colours=("#667788", "#93a5b8"), rank=3, group=OLDER),
    "true_sharing": Member("another core has written bytes of this access since the core had the line",
                           colours=("#cc3311", "#e8573a"), rank=1, group=SHARED),
    "false_sharing": Member("another core has written other bytes since the core had the line", colours=("#ee8833", "#f5a04f"),
                            rank=2, group=SHARED),
})

SPIN = "spin"
WAIT = Enumeration("Wait", "Waits", "What a core waits for at a line: a miss of some class, or another core's write.", {
    **MISS_CLASS.members,
    SPIN: Member("the core iterates a loop around a PAUSE that reads the line", "spinning", noun="spinning on it",
                   colours=("#44aa99", "#3d9586"), rank=6, group=SPIN),
}, engine=False)

TIME_KIND = Enumeration("TimeKind", "TimeKinds", "What a core's time is charged to; each tick is charged once.", {
    "busy": Member("instructions execute", colours=("#4477ab", "#6c9fd1"), rank=1),
    "idle": Member("the core halts", colours=("#eceff1", "#252b31"), rank=4),
    "core": Member("the core stalls without a memory transaction: long operations, device registers", "core stall",
                   colours=("#8c8fa3", "#7a7e94"), rank=2),
    "memory": Member("the core stalls for a memory transaction", "memory stall", colours=("#cc3312", "#e8573b"), rank=3),
})

ACCESS_KIND = Enumeration("AccessKind", "AccessKinds", "What an access through the memory port does.", {
    "load": "reads data",
    "store": "writes data",
    "fetch": "reads instructions",
    "rmw": "reads and writes in one step: a locked operation",
    "flush": "writes the line back and drops it from all caches (CLFLUSH)",
    "nt_store": "writes past the caches",
    "uncached_load": "reads past the caches",
}, counted=False)
# Those that write data.
WRITES = ("store", "rmw", "nt_store")
# In place of a writer's core.
DEVICE = 254

DESCRIPTIONS = (SEGMENT, MISS_CLASS, WAIT, TIME_KIND, ACCESS_KIND)
