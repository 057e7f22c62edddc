# SPDX-License-Identifier: BSD-3-Clause
"""The latency table: chains of dependent loads on an idle machine, one row for each level of the caches and for DRAM
at each distance.

Each row brings its lines into their level with accesses of the core itself: it walks a buffer that is larger than
all levels in front, but much smaller than the level itself, until every load is served there. DRAM rows walk
untouched memory. Walks go line by line; nothing prefetches. The figure is the mean of the middle half of the loads
(one load in a hundred meets a refresh and takes four times as long), computed for each home if a row has several.
Then a few more loads of the walk are recorded with every message, as the row's trace, and the figure is computed
again from their segments. The segments of each access add up to its latency.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from moscope.config import Machine, References
from moscope.config.routing import route_hops
from moscope.errors import UserError
from moscope.experiment import Subject, check_segments, slowness_is_a_user_error
from moscope.latencies.references import latency_references
from moscope.schema.constants import LINE
from moscope.traces.document import walk_document

TRACED = 64  # loads recorded with every message
LOADS = 256
ROUNDS = 3  # walks over a buffer until its lines have settled in their level


@dataclass
class Row:
    """One line of the table; `reference` and `measured` in core cycles."""

    name: str
    reference: float | None
    source: str | None
    measured: float
    recomputed: float
    suppliers: dict[str, int]
    segments: list[dict[str, Any]]
    trace: dict[str, Any] = field(repr=False)
    shortest: float = 0.0
    longest: float = 0.0
    homes: dict[int, float] = field(default_factory=dict)  # `measured`, of the loads of each home node


@dataclass(frozen=True)
class Level:
    """Where the loads of a row find their lines: in a buffer walked again and again, or in untouched memory."""

    name: str
    reference: float | None
    source: str | None
    buffer: int = 0  # bytes; 0: untouched memory of `nodes`
    nodes: tuple[int, ...] = ()


def cache_sizes(subject: Subject) -> list[tuple[str, int]]:
    """The levels that the protocol has, with the bytes that one core can use in each; exclusive levels add up."""
    sizes: list[tuple[str, int]] = []
    names = {"L1": ("l1d", "dcache"), "L2": ("l2",), "L3": ("l3",)}
    for level, parts in names.items():
        for part in parts:
            found = subject.caches(part)
            if found:
                sizes.append((level, max(int(c["bytes"]) for c in found)))
                break
    if not sizes:  # a protocol with a single cache, whatever its name
        arrays = [p for c in subject.elaborated["controllers"] if "core" in c for p in c["params"].values() if isinstance(p, dict)]
        if not arrays:
            raise UserError(f"latency: the cores of {subject.interface['protocol']} have no caches: expected a protocol that has some")
        sizes.append(("L1", min(int(a["bytes"]) for a in arrays)))
    return sizes


def measuring_core(machine: Machine) -> int:
    """The first core that has a node at the greatest distance of the machine."""
    hops = machine.hops()
    chip = max(range(len(hops)), key=lambda c: (max(hops[c]), -c))
    return chip * int(machine.cores_per_chip)


def levels(subject: Subject) -> list[Level]:
    """The rows of the table, nearest first."""
    machine, rows = subject.machine, []
    references = latency_references(machine, subject.sets)
    published = {"L1": references.l1, "L2": references.l2, "L3": references.l3}
    inner = 0
    for name, size in cache_sizes(subject):
        reference = published[name]
        rows.append(Level(name, _count(reference), "published" if reference else None, max(LINE, buffer_in(size, inner) // LINE * LINE)))
        inner += size
    here = measuring_core(machine) // int(machine.cores_per_chip)
    distances, routed = machine.hops()[here], route_hops(machine.routes())
    farthest = max(distances)
    for h in range(farthest + 1):
        at = tuple(n for n, d in enumerate(distances) if d == h)
        nodes = tuple(n for n in at if routed[here][n] == routed[n][here] == h) or at  # without detours, if possible
        cycles, source = _dram_reference(references, h)
        if nodes:
            rows.append(Level(f"DRAM {h} hop{'' if h == 1 else 's'}", cycles, source, 0, nodes))
    return rows


def buffer_in(size: int, inner: int) -> int:
    """The bytes of a buffer that a level of `size` bytes serves, behind `inner` bytes of other levels. Half of the first level; for a
    further one, the geometric mean of both sizes. A level that is hardly larger than those in front serves such a buffer only if it
    is exclusive of them: its buffer exceeds them by half of the smaller one of both sizes."""
    return max(int(math.sqrt(inner * size)), inner + min(inner, size) // 2) if inner else size // 2


def served_elsewhere(rows: list[Row], home: str) -> dict[str, dict[str, int]]:
    """For each row of a cache, a quarter or more of whose loads other levels served: these levels, and the loads of each. Such loads
    affect the middle half. `home`: the machine type of the homes."""
    caches = [row for row in rows if not row.name.startswith("DRAM")]
    found: dict[str, dict[str, int]] = {}
    for n, row in enumerate(caches):
        in_front = {main_supplier(r): r.name for r in reversed(caches[:n]) if row.shortest <= r.longest}
        elsewhere = {in_front.get(s, "DRAM"): count for s, count in row.suppliers.items() if s in in_front or s == home}
        if 4 * sum(elsewhere.values()) >= sum(row.suppliers.values()):
            found[row.name] = elsewhere
    return found


def main_supplier(row: Row) -> str:
    """The supplier of most loads."""
    return max(row.suppliers, key=lambda supplier: row.suppliers[supplier])


def _count(cycles: Any) -> float | None:
    return None if cycles is None else float(cycles.count)


#: The distances, in hops, with a latency in the paper; the others are on the straight line through these.
PUBLISHED_HOPS = (0, 3)


def _dram_reference(references: References, hops: int) -> tuple[float | None, str | None]:
    local, per_hop = _count(references.dram), _count(references.dram_hop)
    if local is None or (hops and per_hop is None):
        return None, None
    return local + hops * (per_hop or 0.0), "published" if hops in PUBLISHED_HOPS else "derived"


def middle_half(accesses: list[dict[str, Any]], node_bytes: int) -> list[dict[str, Any]]:
    """The accesses without the fastest and the slowest quarter of each home node."""
    kept = []
    for those in _homes(accesses, node_bytes).values():
        cut = len(those) // 4
        kept += sorted(those, key=lambda a: int(a["latency_fs"]))[cut: len(those) - cut]
    return kept


def by_home(subject: Subject, accesses: list[dict[str, Any]]) -> dict[int, float]:
    """Mean latency in core cycles of the accesses to each home node."""
    homes = _homes(accesses, subject.machine.memory_per_node.bytes)
    return {home: mean_cycles(subject, those) for home, those in sorted(homes.items())}


def _homes(accesses: list[dict[str, Any]], node_bytes: int) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for access in accesses:
        found.setdefault(int(access["address"], 16) // node_bytes, []).append(access)
    return found


def mean_cycles(subject: Subject, accesses: list[dict[str, Any]]) -> float:
    """Mean latency in core cycles, from the segments."""
    return subject.cycles(sum(s["fs"] for a in accesses for s in a["segments"])) / len(accesses)


def mean_segments(subject: Subject, accesses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sums: dict[str, int] = {}
    for access in accesses:
        for s in access["segments"]:
            sums[s["name"]] = sums.get(s["name"], 0) + s["fs"]
    return [{"name": name, "cycles": subject.cycles(fs) / len(accesses)} for name, fs in sums.items()]


def measure(subject: Subject, level: Level) -> Row:
    core = measuring_core(subject.machine)
    ranges = ranges_of(subject, level, core)
    lines = sum(size for _, size in ranges) // LINE
    stream = {"core": core, "ranges": ranges}
    with slowness_is_a_user_error(f"latency: {level.name}"):
        walked, traced = subject.run([
            {"kind": "loads", "warm": ROUNDS * lines if level.buffer else 0, "accesses": LOADS,
             "streams": [{**stream, "log": LOADS}]},
            {"kind": "loads", "accesses": TRACED, "trace": True,
             "streams": [{**stream, "log": TRACED, "skip": LOADS % lines}]},
        ])
    seen = walked["streams"][0]
    check_segments(f"latency: {level.name}", seen["latency_fs"], seen["segments"])
    trace = walk_document(subject, core, traced)
    node_bytes = subject.machine.memory_per_node.bytes
    middle = middle_half(seen["log"], node_bytes)
    return Row(
        level.name, level.reference, level.source,
        measured=mean_cycles(subject, middle), recomputed=mean_cycles(subject, middle_half(trace["accesses"], node_bytes)),
        suppliers=seen["suppliers"], segments=mean_segments(subject, middle), trace=trace,
        shortest=subject.cycles(seen["shortest_fs"]), longest=subject.cycles(seen["longest_fs"]),
        homes=by_home(subject, middle),
    )


def ranges_of(subject: Subject, level: Level, core: int) -> list[list[int]]:
    """The ranges to walk: a buffer in the core's own node, or enough untouched memory, taken in turn from all nodes at the row's
    distance."""
    size = subject.machine.memory_per_node.bytes
    if level.buffer:
        return [[core // int(subject.machine.cores_per_chip) * size, level.buffer]]
    each = -(-(LOADS + TRACED) // len(level.nodes)) * LINE
    return [[n * size, each] for n in level.nodes]

