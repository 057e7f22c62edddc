# SPDX-License-Identifier: BSD-3-Clause
"""Windows of detailed time, and the figures of a point made from them. The engine counts on through all windows, so a
window is the difference of two moments, and their sum is what the engine has at the end: nothing is counted twice.

`cycles` are fractions of the cores' time: busy, idle, core (stalled on other things than memory), memory (stalled on it).
`spin_cycles` is the fraction in spin loops, a part of busy and core.
"""

import math
import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from moscope.schema.enumerations import TIME_KIND

FS_PER_S, FS_PER_MS, FS_PER_US = 10**15, 10**12, 10**9
KINDS = TIME_KIND.names


class HostTime(NamedTuple):
    """Seconds."""

    elapsed: float
    cpu: float  # of this process


def host_time() -> HostTime:
    return HostTime(time.monotonic(), time.process_time())


@dataclass(frozen=True)
class Moment:
    """Counts since the warm-up's end; times in femtoseconds, of all cores together. `spent[kind, "kernel" or "user"]`."""

    tick: int
    operations: int
    instructions: int
    spun: int
    core_time: int
    spent: dict[tuple[str, str], int]
    host_s: float = 0.0
    cpu_s: float = 0.0  # of this process
    spin: int = 0  # of `spent`, in spin loops

    def __sub__(self, before: "Moment") -> "Moment":
        return Moment(self.tick - before.tick, self.operations - before.operations, self.instructions - before.instructions,
                      self.spun - before.spun, self.core_time - before.core_time,
                      {k: v - before.spent.get(k, 0) for k, v in self.spent.items()}, self.host_s - before.host_s,
                      self.cpu_s - before.cpu_s, self.spin - before.spin)

    def at(self, host: HostTime) -> "Moment":
        """The same counts at another time of the host: asking for them takes some, which is no window's."""
        return replace(self, host_s=host.elapsed, cpu_s=host.cpu)


def moment(tick: int, counts: dict[str, int], stats: dict[str, Any], host: HostTime) -> Moment:
    """`tick`: where the window was asked to end; cores stop at most one operation beyond. `host`: when it ended."""
    spent = {(kind, who): sum(int(core[kind][who]) for core in stats["cores"])
             for kind in KINDS for who in ("kernel", "user")}
    spin = sum(int(ticks) for core in stats["cores"] for who in core.get("spin", {}).values() for ticks in who.values())
    return Moment(tick, int(counts["operations"]), int(counts["instructions"]), int(counts["spun"]),
                  sum(int(core["window"]) for core in stats["cores"]), spent, host.elapsed, host.cpu, spin)


def beginning(tick: int, counts: dict[str, int]) -> Moment:
    return Moment(tick, int(counts["operations"]), int(counts["instructions"]), int(counts["spun"]), 0, {}).at(host_time())


def figures(window: Moment) -> dict[str, Any]:
    """Of one window, or of all together."""
    seconds = window.tick / FS_PER_S
    whole = max(sum(window.spent.values()), 1)
    active = {who: sum(t for (kind, w), t in window.spent.items() if w == who and kind != "idle") for who in ("kernel", "user")}
    ops = window.operations
    return {
        "ops": ops, "ticks": window.tick, "throughput_per_s": ops / seconds,
        "cycles": {kind: sum(t for (k, _), t in window.spent.items() if k == kind) / whole for kind in KINDS},
        "spin_cycles": window.spin / whole,
        "kernel_share": active["kernel"] / max(sum(active.values()), 1),
        "user_us_per_op": active["user"] / FS_PER_US / ops if ops else None,
        "system_us_per_op": active["kernel"] / FS_PER_US / ops if ops else None,
        "instructions": window.instructions - window.spun, "spin_instructions": window.spun,
        "host_s": round(window.host_s, 6), "host_cpu_s": round(window.cpu_s, 6),
    }


def standard_error(values: list[float]) -> float | None:
    """Of the mean, from the windows' spread; None of a single one."""
    n = len(values)
    if n < 2:
        return None
    mean = sum(values) / n
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)


def summary(windows: list[Moment]) -> dict[str, Any]:
    """The figures of a point (POINT of the contracts, so far as windows tell)."""
    whole = windows[0]
    for w in windows[1:]:
        whole = Moment(whole.tick + w.tick, whole.operations + w.operations, whole.instructions + w.instructions,
                       whole.spun + w.spun, whole.core_time + w.core_time,
                       {k: v + w.spent[k] for k, v in whole.spent.items()}, whole.host_s + w.host_s,
                       whole.cpu_s + w.cpu_s, whole.spin + w.spin)
    each = [figures(w) for w in windows]
    total = figures(whole)
    total["window_ms"] = windows[0].tick / FS_PER_MS
    total["stderr_per_s"] = standard_error([w["throughput_per_s"] for w in each])
    total["host_s_per_ms"] = whole.host_s / (whole.tick / FS_PER_MS)
    total["windows"] = each
    return total
