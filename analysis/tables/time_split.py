# SPDX-License-Identifier: BSD-3-Clause
"""The cores' time by what it was spent on."""

from analysis.database import CLASSES
from analysis.run_directory import Point, Run
from analysis.tables.base import Table, key, table

# Busy and core stall without spin loops, the loops, memory stall by class of miss, and the memory stall that has no class: its transaction
# was under way when the last window ended.
CAUSES = ("user", "kernel", "core", "spin", *CLASSES, "without_class", "idle")


def causes(p: Point) -> dict[str, float]:
    """Shares of the cores' time by cause (CAUSES); `memory` undivided and `busy` where there is no more detail."""
    cores = p.stats.get("cores") or []
    whole = sum(int(c.get("window", 0)) for c in cores)
    if not whole:
        cycles = p.record.get("cycles") or {}
        return {k: float(cycles.get(k) or 0) for k in ("busy", "core", "memory", "idle")} if cycles else {}

    def spent(kind: str, who: str) -> float:
        return sum(int((c.get(kind) or {}).get(who, 0)) for c in cores) / whole

    def spun(kind: str, who: str) -> float:
        return sum(int(((c.get("spin") or {}).get(kind) or {}).get(who, 0)) for c in cores) / whole

    found = {who: spent("busy", who) - spun("busy", who) for who in ("user", "kernel")}
    found["core"] = sum(spent("core", who) - spun("core", who) for who in ("user", "kernel"))
    found["spin"] = sum(spun(kind, who) for kind in ("busy", "core") for who in ("user", "kernel"))
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
