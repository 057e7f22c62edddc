# SPDX-License-Identifier: BSD-3-Clause
"""The cores' time by what it was spent on."""

from analysis.described import CLASSES, SPIN, TIME_KIND
from analysis.run_directory import Point, Run
from analysis.tables.base import Table, key, table


def causes(p: Point) -> dict[str, float]:
    """Shares of the cores' time by cause: `user` and `kernel` (busy without spin loops), `core` (core stall without them), `spin`, memory
    stall by miss class, `without_class` (memory stall of transactions that had not ended with the last window), and `idle`. Where the
    run has less detail, `busy` and `memory` are not divided."""
    cores = p.stats.get("cores") or []
    whole = sum(int(c.get("window", 0)) for c in cores)
    if not whole:
        cycles = p.record.get("cycles") or {}
        return {k: float(cycles.get(k) or 0) for k in TIME_KIND.ranked} if cycles else {}

    def spent(kind: str, who: str) -> float:
        return sum(int((c.get(kind) or {}).get(who, 0)) for c in cores) / whole

    def spun(kind: str, who: str) -> float:
        return sum(int(((c.get("spin") or {}).get(kind) or {}).get(who, 0)) for c in cores) / whole

    found = {who: spent("busy", who) - spun("busy", who) for who in ("user", "kernel")}
    found["core"] = sum(spent("core", who) - spun("core", who) for who in ("user", "kernel"))
    found[SPIN] = sum(spun(kind, who) for kind in ("busy", "core") for who in ("user", "kernel"))
    memory = spent("memory", "user") + spent("memory", "kernel")
    by_class = {k: stall / whole for k, stall in class_stall(p).items()}
    if not any(by_class.values()):
        found["memory"] = memory
    else:
        found |= {k: by_class.get(k, 0.0) for k in CLASSES}
        rest = memory - sum(by_class.values())
        found["without_class"] = rest if rest > 1e-9 else 0.0
    found["idle"] = spent("idle", "user") + spent("idle", "kernel")
    return found


def class_stall(p: Point) -> dict[str, int]:
    """Exposed stall in fs by class."""
    classes = p.attribution.get("classes") or {}
    return {k: int((classes.get(k) or {}).get("stall", 0)) for k in CLASSES}


def time_split(run: Run) -> Table:
    """One row per point and cause."""
    return table(("cause", "share"), ((*key(p), k, v) for p in run.points for k, v in causes(p).items()))


TABLES = {"time_split": time_split}
