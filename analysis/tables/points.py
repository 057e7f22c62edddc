# SPDX-License-Identifier: BSD-3-Clause
"""The figures of each point, and of each of its windows."""

from analysis.described import FS_PER_MS
from analysis.run_directory import Run
from analysis.tables.base import Table, key, table


def points(run: Run) -> Table:
    """One row per point: its figures."""
    names = ("ops", "throughput_per_s", "stderr_per_s", "kernel_share", "user_us_per_op", "system_us_per_op", "instructions",
             "host_s", "host_s_per_ms")
    return table((*names, "throughput_per_core_per_s", "memory_share", "bottleneck"), (
        (*key(p), *(p.number(n) for n in names), None if p.throughput is None else p.throughput / max(p.cores, 1),
         (p.record.get("cycles") or {}).get("memory"), p.record.get("bottleneck")) for p in run.points))


def windows(run: Run) -> Table:
    """One row per repeated window."""
    return table(("window", "ops", "ms", "throughput_per_s"), (
        (*key(p), n, w.get("ops"), int(w.get("ticks") or 0) / FS_PER_MS, w.get("throughput_per_s"))
        for p in run.points for n, w in enumerate(p.record.get("windows") or [], 1)))


TABLES = {"points": points, "windows": windows}
