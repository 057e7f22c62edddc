# SPDX-License-Identifier: BSD-3-Clause
"""The latency table: chains of dependent loads on an idle machine, one row for each level of the caches and for DRAM
at each distance.

Each row puts its lines where they are to be found with accesses of the core itself: a buffer larger than all that
lies in front of a level, and well within it, is walked until every load is served there; DRAM rows load lines that
nobody has touched. The figure is the mean of a chain; then a few more loads of the same kind are recorded with every
message, as the row's trace. Both agree, and in both the segments of each access add up to its latency.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from moscope.config import Machine
from moscope.errors import SimulatorBug
from moscope.experiment import Phase, Subject, check_segments
from moscope.trace_document import document, script_phase
from moscope.trace_script import ScriptAccess

LINE = 64
TRACED = 8  # loads recorded with every message
DRAM_LOADS = 256
ROUNDS = 3  # before a buffer has come to rest in its level
CHAIN = 4096  # loads of a cache row, at most
# Chain and trace may differ by what a chain meets on its way and eight loads do not: refreshes, open rows.
AGREE = 0.02


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


@dataclass(frozen=True)
class Level:
    """Where the loads of a row find their lines: in a buffer walked again and again, or in untouched memory."""

    name: str
    reference: float | None
    source: str | None
    buffer: int = 0  # bytes; 0: untouched memory of `nodes`
    nodes: tuple[int, ...] = ()


def cache_sizes(subject: Subject) -> list[tuple[str, int]]:
    """Levels that the protocol has, with the bytes that one core can hold there; exclusive levels add up."""
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
        sizes.append(("L1", min(int(a["bytes"]) for a in arrays)))
    return sizes


def measuring_core(machine: Machine) -> int:
    """A core from which some node is as far away as the machine has it; the first one."""
    hops = machine.hops()
    chip = max(range(len(hops)), key=lambda c: (max(hops[c]), -c))
    return chip * int(machine.cores_per_chip)


def levels(subject: Subject) -> list[Level]:
    """The rows of the table, nearest first."""
    machine, rows = subject.machine, []
    references = machine.references
    published = {"L1": references.l1, "L2": references.l2, "L3": references.l3}
    inner = 0
    for name, size in cache_sizes(subject):
        reference = published[name]
        # Half of the first level; of a further one the geometric middle between it and what lies in front of it.
        buffer = size // 2 if inner == 0 else int(math.sqrt(inner * size))
        rows.append(Level(name, _count(reference), "published" if reference else None, max(LINE, buffer // LINE * LINE)))
        inner += size
    distances = machine.hops()[measuring_core(machine) // int(machine.cores_per_chip)]
    farthest = max(distances)
    for h in range(farthest + 1):
        nodes = tuple(n for n, d in enumerate(distances) if d == h)
        reference, source = _dram_reference(machine, h, farthest)
        if nodes:
            rows.append(Level(f"DRAM {h} hop{'' if h == 1 else 's'}", reference, source, 0, nodes))
    return rows


def _count(cycles: Any) -> float | None:
    return None if cycles is None else float(cycles.count)


def _dram_reference(machine: Machine, hops: int, farthest: int) -> tuple[float | None, str | None]:
    local, per_hop = _count(machine.references.dram), _count(machine.references.dram_hop)
    if local is None or (hops and per_hop is None):
        return None, None
    # Published are the nearest and the farthest; what lies between is the line through them.
    return local + hops * (per_hop or 0.0), "published" if hops in (0, farthest) else "derived"


def measure(subject: Subject, level: Level) -> Row:
    core = measuring_core(subject.machine)
    phase, probes = _buffer(subject, level, core) if level.buffer else _untouched(subject, level, core)
    accesses = [ScriptAccess(core, "ld", a, f"{a:#x}") for a in probes]
    chain, traced = subject.run([phase, script_phase([[a] for a in accesses])])
    seen = chain["streams"][0]
    check_segments(f"latency: {level.name}", seen["latency_fs"], seen["segments"])
    script = "; ".join(a.text for a in accesses)
    trace = document(subject, accesses, script, traced)
    loads = seen["done"]
    row = Row(
        level.name, level.reference, level.source,
        measured=subject.cycles(seen["latency_fs"]) / loads,
        recomputed=sum(s["cycles"] for a in trace["accesses"] for s in a["segments"]) / len(accesses),
        suppliers=seen["suppliers"],
        segments=[{"name": s["name"], "cycles": subject.cycles(s["fs"]) / loads} for s in seen["segments"]],
        trace=trace,
        shortest=subject.cycles(seen["shortest_fs"]), longest=subject.cycles(seen["longest_fs"]),
    )
    if abs(row.recomputed - row.measured) > max(1.0, AGREE * row.measured):
        raise SimulatorBug(f"latency: {level.name}: {row.measured:.1f} cycles in a chain of loads, {row.recomputed:.1f} "
                           "by the segments of the trace of such loads")
    return row


def _buffer(subject: Subject, level: Level, core: int) -> tuple[Phase, list[int]]:
    chip = core // int(subject.machine.cores_per_chip)
    base = chip * subject.machine.memory_per_node.bytes
    lines = level.buffer // LINE
    # Whole rounds, so that what is recorded afterwards begins with the buffer's first line.
    rounds = max(1, CHAIN // lines)
    stream = {"core": core, "ranges": [[base, level.buffer]]}
    return ({"kind": "loads", "streams": [stream], "warm": ROUNDS * lines, "accesses": rounds * lines},
            [base + LINE * i % level.buffer for i in range(TRACED)])


def _untouched(subject: Subject, level: Level, core: int) -> tuple[Phase, list[int]]:
    size = subject.machine.memory_per_node.bytes
    area = min(size // 2, 256 << 20) // LINE * LINE
    each = max(1, DRAM_LOADS // len(level.nodes))
    # Far enough apart that a DRAM row is seldom met twice; one line more each time, for other sets and banks.
    step = max(LINE, area // each // LINE * LINE - LINE)
    ranges = [[n * size, step * each] for n in level.nodes]
    stream = {"core": core, "ranges": ranges, "step": step, "order": "random", "seed": subject.seed}
    after = [n * size + area + i * (step // 2 // LINE * LINE + LINE) % (size - area)
             for i in range(TRACED) for n in level.nodes][:TRACED]
    return {"kind": "loads", "streams": [stream], "accesses": each * len(level.nodes)}, after
