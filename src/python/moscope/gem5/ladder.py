# SPDX-License-Identifier: BSD-3-Clause
"""The latency table on gem5: the same walks as the embedded engine's (latencies/rows.py), played as a script. gem5 records no
segments, so rows have none. The trace of a row is the file of its accesses with their times."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope.experiment import Subject
from moscope.gem5 import binary, job
from moscope.gem5.job import Answer, ScriptedAccess
from moscope.latencies.rows import LOADS, ROUNDS, Level, measuring_core, ranges_of
from moscope.schema.constants import LINE

# Time between loads. A walk over a few homes returns to each home at regular intervals, which must not coincide with
# its refresh (every 7.8 us): with 5 us, walks over three homes met a refresh at almost every load.
SETTLE_FS = 3 * 10**9


@dataclass(frozen=True)
class Row:
    """One line of the table, in core cycles."""

    level: Level
    measured: float
    shortest: float
    longest: float


def walk(ranges: list[list[int]], count: int) -> list[int]:
    """Addresses line by line, from the ranges in turn; at the end of the ranges the walk starts again."""
    lines = [[base + LINE * n for n in range(size // LINE)] for base, size in ranges]
    return [lines[n % len(lines)][n // len(lines) % len(lines[n % len(lines)])] for n in range(count)]


def accesses(subject: Subject, level: Level) -> list[ScriptedAccess]:
    """The accesses of a row, one after the other: for a buffer, first the rounds that bring it into its level; then the loads
    that count."""
    core = measuring_core(subject.machine)
    ranges = ranges_of(subject, level, core)
    warm = ROUNDS * sum(size for _, size in ranges) // LINE if level.buffer else 0
    return [ScriptedAccess(step, core, "ld", address) for step, address in enumerate(walk(ranges, warm + LOADS))]


def middle_half(made: list[ScriptedAccess], answers: list[Answer], node_bytes: int) -> list[int]:
    """The latencies without the fastest and the slowest quarter of each home, as for the embedded engine."""
    homes: dict[int, list[int]] = {}
    for access, answer in zip(made, answers, strict=True):
        homes.setdefault(access.address // node_bytes, []).append(answer.latency_fs)
    kept: list[int] = []
    for those in homes.values():
        cut = len(those) // 4
        kept += sorted(those)[cut: len(those) - cut]
    return kept


def measure(subject: Subject, gem5: binary.Gem5, level: Level, folder: Path) -> Row:
    made = accesses(subject, level)
    answers = job.play(gem5, subject.elaborated, subject.interface, made, folder, settle_fs=SETTLE_FS)[-LOADS:]
    middle = middle_half(made[-LOADS:], answers, subject.machine.memory_per_node.bytes)
    every = [a.latency_fs for a in answers]
    return Row(level, subject.cycles(sum(middle)) / len(middle), subject.cycles(min(every)), subject.cycles(max(every)))


def row_json(row: Row, trace: str) -> dict[str, Any]:
    return {
        "name": row.level.name, "reference": row.level.reference, "source": row.level.source,
        "measured": round(row.measured, 3), "unit": "cycles", "trace": trace,
        "shortest": round(row.shortest, 3), "longest": round(row.longest, 3),
    }
