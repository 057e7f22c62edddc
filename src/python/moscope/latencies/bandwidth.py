# SPDX-License-Identifier: BSD-3-Clause
"""Bandwidths of a loaded machine, and the mechanism that limits each, derived from the machine's counters.

Every active core reads memory line by line, with as many misses in flight as the machine description allows. Pages of
4 KiB follow each other in random order, as an operating system allocates them: regions that are contiguous in physical
memory would conflict in the same sets of the filters for the whole run, or never. Counts are those of the steady state
(latencies/steady.py), as in any long run. `node`: the cores of one chip read their own
node's memory; `machine`: all cores, each reads its own node; `XFIRE`: every core reads the memory of all nodes evenly.
A core's region is the same part of each node's memory that it reads, so that regions never overlap. Loads on own nodes therefore
read a small part of each node, which may lie in one of several ranks (docs/calibration.md).
GB/s are 10^9 bytes of lines per second.
"""

import math
from dataclasses import dataclass
from typing import Any

from moscope.errors import UserError
from moscope.experiment import Subject
from moscope.latencies import steady
from moscope.latencies.references import bandwidth_references
from moscope.latencies.steady import cached_lines, lines_to_fill
from moscope.schema.constants import LINE
from moscope.schema.counters import LOST, LOST_FOR_LACK_OF_REQUESTS
from moscope.wording import decimals, percent

PAGE = 4096
MIB = 1 << 20
# A core comes back to a line after this many times the lines that its caches hold. With random replacement, a line is then still
# there with a probability of exp(-5).
APART = 5
# A resource that is in use for this share of the time counts as the limit.
SATURATED = 0.85


@dataclass(frozen=True)
class Load:
    """Which cores read which nodes."""

    name: str
    cores: tuple[int, ...]
    nodes: tuple[tuple[int, ...], ...]  # per core
    in_flight: int
    reference: float | None
    source: str | None


@dataclass(frozen=True)
class Limit:
    """The limiting mechanism, and the figures from which it was derived."""

    name: str
    why: str
    shares: dict[str, float]
    waiting: float = 0.0  # mean number of requests or messages that wait for it


@dataclass(frozen=True)
class Bandwidth:
    load: Load
    measured: float  # GB/s
    latency: float  # mean of a miss under this load, core cycles
    limit: Limit


def loads(subject: Subject) -> list[Load]:
    machine = subject.machine
    per_chip, chips, cores = int(machine.cores_per_chip), int(machine.chips), machine.cores
    references = bandwidth_references(machine, subject.sets)
    everywhere = tuple(range(chips))

    def load(name: str, over: range, nodes: list[tuple[int, ...]]) -> Load:
        reference, source = references.get(name, (None, None))
        return Load(name, tuple(over), tuple(nodes), int(machine.outstanding_misses), reference, source)

    return [
        load("node", range(per_chip), [(0,)] * per_chip),
        load("machine", range(cores), [(c // per_chip,) for c in range(cores)]),
        load("XFIRE", range(cores), [everywhere] * cores),
    ]


def measure(subject: Subject, load: Load) -> Bandwidth:
    size, region = subject.machine.memory_per_node.bytes, region_bytes(subject, len(load.cores), 1, "a bandwidth")
    streams = []
    for core, nodes in zip(load.cores, load.nodes, strict=True):
        # Each core has its own region in every node, and begins at its own page of the region.
        at = core * region + scattered_page(subject.seed, core) % max(1, region // 4 // PAGE) * PAGE
        streams.append({"core": core, "in_flight": load.in_flight, "order": "pages", "seed": subject.seed * 1000 + core,
                        "ranges": [[n * size + at, region // 2] for n in nodes]})
    counted = steady.count(subject, f"bandwidth: {load.name}", streams, lines_to_fill(subject, len(load.cores)))
    latency = subject.cycles(counted.latency_fs)
    limit = find_limit(counted.statistics, counted.window_fs, load, latency, subject.elaborated["dram"])
    return Bandwidth(load, counted.gb_per_s, latency, limit)


def region_bytes(subject: Subject, cores: int, arrays: int, what: str) -> int:
    """The part of each node's memory for one of the arrays of a core, half of which the core reads. UserError unless the arrays of
    each of the `cores` in use have at least APART times the lines that its caches hold: otherwise the core finds lines there when it
    comes back to them."""
    machine = subject.machine
    shares = machine.cores * arrays
    region = machine.memory_per_node.bytes // shares // PAGE * PAGE
    pages = max(2, math.ceil(2 * APART * cached_lines(subject, cores) * LINE / arrays / PAGE))
    if region < pages * PAGE:
        least = math.ceil(pages * PAGE * shares / MIB)
        raise UserError(f"memory_per_node: {machine.memory_per_node}: expected {least}MiB or more for {what}")
    return region


def scattered_page(seed: int, core: int) -> int:
    """A fixed pseudo-random page, so that streams do not access the banks of a DRAM in step."""
    return ((seed * 0x9E3779B97F4A7C15 + core * 0xBF58476D1CE4E5B9) & (2**64 - 1)) >> 40


def find_limit(statistics: dict[str, Any], window_fs: int, load: Load, latency: float, dram: dict[str, Any]) -> Limit:
    """The limit is a resource that is in use nearly all the time. Of several, it is the one for which the most requests wait: the
    number of misses in flight is fixed, and they gather at the slowest resource. Without one, the misses in flight are the limit.
    `dram`: that of the elaborated machine."""
    candidates = [c for c in (_dram(statistics, dram), _links(statistics, window_fs), _ports(statistics, window_fs)) if c]
    shares = {name: share for c in candidates for name, share in c.shares.items()}
    saturated = [c for c in candidates if c.shares[c.name] >= SATURATED]
    if saturated:
        best = max(saturated, key=lambda c: c.waiting)
        return Limit(best.name, best.why, shares, best.waiting)
    busy = max(candidates, key=lambda c: c.shares[c.name], default=None)
    busiest = f"; the busiest resource is {busy.name}, in use {percent(busy.shares[busy.name])} of the time" if busy else ""
    return Limit("misses in flight", f"{load.in_flight} per core, each {latency:.0f} cycles under way{busiest}", shares)


def _dram(statistics: dict[str, Any], dram: dict[str, Any]) -> Limit | None:
    """How the DRAM data buses spend their time: they carry data, wait because of a DRAM rule, or are idle for lack of requests."""
    channels = [c for node in statistics.get("dram", []) for c in node["channels"] if c["reads"] + c["writes"]]
    accounted = sum(c["accounted"] for c in channels)
    if not accounted:
        return None
    busy = sum(c["busy"] for c in channels) / accounted
    lost = {reason: sum(c["lost"].get(reason, 0) for c in channels) / accounted for reason in LOST.members}
    losses = sorted(((share, r) for r, share in lost.items() if r != "no_request" and share), reverse=True)
    parts = [f"data bus busy {percent(busy)}"] + [f"lost to {LOST.label(r)} {percent(share)}" for share, r in losses[:3]]
    held = [(share, r) for share, r in losses if r not in LOST_FOR_LACK_OF_REQUESTS]
    name = f"DRAM {rule(held[0][1], dram)}" if held and held[0][0] > busy * 0.1 else "DRAM"
    taken = 1 - sum(lost[reason] for reason in LOST_FOR_LACK_OF_REQUESTS)
    return Limit(name, ", ".join(parts), {name: taken, "DRAM data bus": busy},
                 sum((c["read_queue"] + c["write_queue"]) / c["clocks"] for c in channels) / len(channels))


def rule(reason: str, dram: dict[str, Any]) -> str:
    """The name of a reason for lost clocks. Of the two rules for the activates of a rank, it is the one that allows fewer of them."""
    if reason != "activate_rate":
        return reason.replace("_", " ")
    clocks = {name: math.ceil(dram["timing_fs"][name] / dram["tCK_fs"]) for name in ("tRRD", "tFAW")}
    return "four-activate limit (tFAW)" if clocks["tFAW"] > 4 * clocks["tRRD"] else "minimum time between activates (tRRD)"


def _links(statistics: dict[str, Any], window_fs: int) -> Limit | None:
    """The busiest direction of a link: it carries packets, or holds one back for lack of a buffer at the receiver."""
    best: Limit | None = None
    for link in statistics["network"]["links"]:
        busy = sum(c["busy_fs"] for c in link["channels"].values()) / window_fs
        stalls = {n: c["credit_stall_fs"] / window_fs for n, c in link["channels"].items()}
        channel, stalled = max(stalls.items(), key=lambda item: item[1], default=("", 0.0))
        taken = min(1.0, busy + stalled)
        if best is None or taken > best.shares[best.name]:
            name = f"link {link['name']}" + (f", buffers of channel {channel}" if stalled > busy else "")
            best = Limit(name, f"carries packets {percent(busy)} of the time" + (
                f", waits for {channel} buffers {percent(stalled)}" if stalled > 0.01 else ""), {name: taken},
                sum(c["wait_fs"] for c in link["channels"].values()) / window_fs)
    return best


def _ports(statistics: dict[str, Any], window_fs: int) -> Limit | None:
    ports = statistics["network"]["ports"]
    if not ports:
        return None
    busiest = max(ports, key=lambda p: p["busy_fs"])
    share = busiest["busy_fs"] / window_fs
    name = f"crossbar port {busiest['name']}"
    return Limit(name, f"carries messages {percent(share)} of the time", {name: share}, busiest["wait_fs"] / window_fs)


def row_json(b: Bandwidth) -> dict[str, Any]:
    return {
        "name": b.load.name, "reference": b.load.reference, "source": b.load.source,
        "measured": round(b.measured, max(3, decimals(b.measured))),
        "unit": "GB/s", "trace": None, "in_flight": b.load.in_flight, "cores": len(b.load.cores),
        "loaded_latency_cycles": round(b.latency, 1),
        "limit": {"name": b.limit.name, "why": b.limit.why, "shares": {n: round(s, 4) for n, s in b.limit.shares.items()}},
    }
