# SPDX-License-Identifier: BSD-3-Clause
"""Transactions beyond L1 by class of miss."""

from analysis.run_directory import Run
from analysis.tables.base import Table, key, table, us


def misses(run: Run) -> Table:
    """One row per class of miss."""
    return table(("class", "count", "stall_us"), (
        (*key(p), k, int(v.get("count", 0)), us(int(v.get("stall", 0))))
        for p in run.points for k, v in (p.attribution.get("classes") or {}).items()))


TABLES = {"misses": misses}
