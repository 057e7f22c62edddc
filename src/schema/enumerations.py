# SPDX-License-Identifier: BSD-3-Clause
"""Enumerations that the engine computes and files name."""

from moscope.schema.describe import Enumeration

SEGMENT = Enumeration("Segment", "Segments", "Where a transaction's latency goes.", {
    "queue": "waiting: buffers, link arbitration and credits",
    "cache": "lookups and transfers in the requester's cache hierarchy",
    "crossbar": "on-chip crossbar",
    "link": "HyperTransport links: serialization and flight",
    "home_queue": "waiting at the home node",
    "probe_filter": "the home agent: request handling and probe filter lookup",
    "dram": "DRAM, its queue included",
    "responder": "caches that answer probes",
}, words={
    "queue": "waiting for buffers and links",
    "cache": "caches of the requester",
    "crossbar": "crossbars of the chips",
    "link": "HyperTransport links",
    "home_queue": "waiting at the home node",
    "probe_filter": "home agent and probe filter",
    "dram": "DRAM",
    "responder": "caches that answer probes",
})

MISS_CLASS = Enumeration("MissClass", "MissClasses", "Why a line was not there; `count` stands for no class.", {
    "cold": "the core has not had the line before",
    "capacity": "the core had the line and replaced it",
    "upgrade": "the core had the line, but could not write it",
    "true_sharing": "another core wrote bytes that this access uses",
    "false_sharing": "another core wrote other bytes of the line",
})

TIME_KIND = Enumeration("TimeKind", "TimeKinds", "What a core's time is charged to; each tick is charged once.", {
    "busy": "instructions execute",
    "idle": "the core halts",
    "core": "the core stalls without a memory transaction: long operations, device registers",
    "memory": "the core stalls for a memory transaction",
}, words={"core": "core stall", "memory": "memory stall"})

ACCESS_KIND = Enumeration("AccessKind", "AccessKinds", "What an access through the memory port does.", {
    "load": "reads data",
    "store": "writes data",
    "fetch": "reads instructions",
    "rmw": "reads and writes in one step: a locked operation",
    "flush": "writes the line back and drops it from all caches (CLFLUSH)",
    "nt_store": "writes past the caches",
    "uncached_load": "reads past the caches",
}, counted=False)

DESCRIPTIONS = (SEGMENT, MISS_CLASS, TIME_KIND, ACCESS_KIND)
