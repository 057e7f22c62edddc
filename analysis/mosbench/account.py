# SPDX-License-Identifier: BSD-3-Clause
"""The core time of an operation by cause: idle cores, computation, stalls inside cores, each name of lines that cores wait for because
of sharing or spinning, misses of lines that the caches did not hold, and the part of these misses' time that DRAM is busy for others.
"""

from collections.abc import Collection
from dataclasses import dataclass

from analysis.described import MISS_CLASS, OLDER, SHARED, SIZE
from analysis.run_directory import Point
from analysis.tables.time_split import causes

WORDS = {"idle": "idle cores: too little work reaches them",
         "user": "computation of the application", "kernel": "computation of the kernel",
         "core": "stalls inside the cores", "size": "cold and capacity misses: lines that the caches do not hold",
         "dram": "DRAM bandwidth: reads wait for other requests",
         "without_class": "transactions that had not ended"}
OTHERS = "other lines that cores share"
WAITS = "waits"  # in Point.made: names.Waits


@dataclass(frozen=True)
class Dram:
    """`read_fs`: mean time of a read in its channel. `occupied`: share of time in which channels transfer data or cannot for reasons of
    DRAM's own."""

    read_fs: float
    occupied: float


def dram(p: Point) -> Dram:
    channels = [c for node in p.machine.get("dram") or [] for c in node.get("channels") or []]
    reads = sum(int(c.get("reads", 0)) for c in channels)
    whole = sum(int(c.get("accounted", 0)) for c in channels)
    unused = sum(int(c["lost"].get("no_request", 0)) for c in channels) if whole else 0
    return Dram(sum(int(c.get("read_latency_fs", 0)) for c in channels) / reads if reads else 0.0, 1 - unused / whole if whole else 0.0)


def per_operation(p: Point, idle_read_fs: float, names: Collection[str]) -> dict[str, float]:
    """Core time of an operation in us by cause; sharing and spinning on lines of these names apart. `idle_read_fs`: the mean time of a
    read in a channel that few cores use."""
    waits, us = p.made[WAITS], 1e-9 / (p.number("ops") or 1.0)
    each = (p.number("window_ms") or 0.0) * 1e3 * p.cores * len(p.record.get("windows") or [1]) / (p.number("ops") or 1.0)
    time = {cause: share * each for cause, share in causes(p).items()}
    found = {cause: time.pop(cause) for cause in WORDS if cause in time}
    later, size = (sum(time.pop(c, 0.0) for c in MISS_CLASS.of(group)) for group in (OLDER, SIZE))
    shared = sum(time.get(c, 0.0) for c in MISS_CLASS.of(SHARED))
    # The misses that secondary ones wait for are loads, so not upgrades. They are divided as loads with a class are, by name where known.
    unlisted = max(0.0, later - waits.secondary * us)
    of_size = min(later, waits.of_size * us + (unlisted * size / (size + shared) if size + shared else 0.0))
    size, rest = size + of_size, sum(time.values()) + later - of_size
    if size:
        found["dram"] = size * queueing(p, idle_read_fs)
        found["size"] = size - found["dram"]
    for name in names:
        found[name] = min(waits.shared.get(name, 0.0) * us, rest)
        rest -= found[name]
    return {**found, OTHERS: rest}


def queueing(p: Point, idle_read_fs: float) -> float:
    """Share of the transactions' time outside queues in which DRAM works on other requests: the time that reads take beyond
    `idle_read_fs`. Queues are left out because most of their time is that of secondary misses, which have no transaction of their own.
    The share is of all transactions, so too small for those that read DRAM if many do not."""
    segments = {k: int(v) for k, v in (p.attribution.get("segments") or {}).items() if k != "queue"}
    whole, read = sum(segments.values()), dram(p).read_fs
    return segments.get("dram", 0) / whole * max(0.0, 1 - idle_read_fs / read) if whole and read and idle_read_fs else 0.0
