# SPDX-License-Identifier: BSD-3-Clause
"""Windows of detailed simulation, and the figures of a point computed from them. The engine's counters run through all
windows. A window is the difference of two snapshots, and the windows add up to the engine's final counts.

`cycles` are fractions of core time: busy, idle, core (stalls other than memory), memory (stalls on memory). `spin_cycles` is
the fraction in spin loops, a part of busy and core.
"""

import functools
import math
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from moscope.errors import UserError
from moscope.runs.statistics import confidence, trend
from moscope.schema.constants import FS_PER_MS, FS_PER_NS, FS_PER_S, FS_PER_US
from moscope.schema.enumerations import TIME_KIND
from moscope.wording import number, percent

KINDS = TIME_KIND.names


class HostTime(NamedTuple):
    """Host time in seconds."""

    elapsed: float
    cpu: float  # of this process


def host_time() -> HostTime:
    return HostTime(time.monotonic(), time.process_time())


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Counts since the end of the warm-up; times in femtoseconds, added up over all cores. `spent[kind, "kernel" or "user"]`."""

    tick: int
    operations: int
    instructions: int
    spun: int
    spent: dict[tuple[str, str], int]
    host_s: float = 0.0
    cpu_s: float = 0.0  # of this process
    spin: int = 0  # the part of `spent` in spin loops

    def __sub__(self, before: "Moment") -> "Moment":
        return self._combined(before, operator.sub)

    def __add__(self, other: "Moment") -> "Moment":
        return self._combined(other, operator.add)

    def _combined(self, other: "Moment", combine: Callable[[Any, Any], Any]) -> "Moment":
        counts = {field.name: (getattr(self, field.name), getattr(other, field.name)) for field in fields(self)}
        mine, others = counts.pop("spent")
        return Moment(spent={key: combine(mine.get(key, 0), others.get(key, 0)) for key in {**mine, **others}},
                      **{name: combine(*both) for name, both in counts.items()})

    def at(self, host: HostTime) -> "Moment":
        """The same counts at another host time. The time that a snapshot takes belongs to no window."""
        return replace(self, host_s=host.elapsed, cpu_s=host.cpu)


def moment(tick: int, counts: dict[str, int], stats: dict[str, Any], host: HostTime) -> Moment:
    """`tick`: the requested end of the window; cores stop at most one operation later. `host`: host time at its end."""
    spent = {(kind, who): sum(int(core[kind][who]) for core in stats["cores"])
             for kind in KINDS for who in ("kernel", "user")}
    spin = sum(int(ticks) for core in stats["cores"] for who in core.get("spin", {}).values() for ticks in who.values())
    return replace(_counted(tick, counts), spent=spent, spin=spin).at(host)


def beginning(tick: int, counts: dict[str, int]) -> Moment:
    return _counted(tick, counts).at(host_time())


def _counted(tick: int, counts: dict[str, int]) -> Moment:
    return Moment(tick=tick, operations=int(counts["operations"]), instructions=int(counts["instructions"]), spun=int(counts["spun"]),
                  spent={})


def figures(window: Moment) -> dict[str, Any]:
    """The figures of one window, or of all together."""
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


def check_counted(windows: list[Moment], length: int) -> None:
    """UserError if no core counted any time in the windows, each of which should last `length`: there are no shares of it."""
    if not any(sum(window.spent.values()) for window in windows):
        raise UserError(f"--window: {length / FS_PER_NS:g}ns: no core counted any time in the windows: expected longer ones")


def standard_error(values: list[float]) -> float | None:
    """Standard error of the mean, from the spread of the windows; None for a single window."""
    n = len(values)
    if n < 2:
        return None
    mean = sum(values) / n
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)


def parts_of_the_work(windows: list[Moment], cycle: int | None) -> bool:
    """Whether windows differ because they are different parts of work that repeats every `cycle`: true if they cover less than
    two cycles."""
    return bool(cycle) and sum(w.tick for w in windows) < 2 * (cycle or 0)


def estimate(windows: list[Moment], cycle: int | None, amounts: list[float], per: list[float]) -> confidence.Mean:
    """As confidence.estimate, for operations or for amounts per operation. If the windows are different parts of the work, their
    spread says nothing about the error, so there is none."""
    mean = confidence.estimate(amounts, per, sum(w.operations for w in windows))
    return mean.without_error() if parts_of_the_work(windows, cycle) else mean


def throughput(windows: list[Moment], cycle: int | None = None) -> confidence.Mean:
    """Operations per second."""
    return estimate(windows, cycle, [float(w.operations) for w in windows], [w.tick / FS_PER_S for w in windows])


def changes(windows: list[Moment], cycle: int | None = None) -> dict[str, Any]:
    """`trend` of POINT, if throughput changes over the windows."""
    if parts_of_the_work(windows, cycle):
        return {}
    found = trend.of([float(w.operations) for w in windows], [w.tick / FS_PER_S for w in windows])
    return {"trend": found.document()} if found else {}


def enough(windows: list[Moment], relative: float | None, cycle: int | None = None) -> bool:
    """Whether the standard error of throughput is below a fraction of it; never without a fraction."""
    return relative is not None and throughput(windows, cycle).enough(relative)


def until(windows: list[Moment], wanted: float, limit: int, cycle: int | None = None) -> dict[str, Any]:
    """The result of `--until-error`."""
    mean = throughput(windows, cycle)
    known = mean.stderr is not None and mean.value
    return {"wanted": wanted, "reached": mean.relative if known else None, "met": mean.enough(wanted),
            "windows": len(windows), "limit": limit, "why": None if mean.enough(wanted) else unmet(windows, mean, wanted, limit, cycle)}


def unmet(windows: list[Moment], mean: confidence.Mean, wanted: float, limit: int, cycle: int | None) -> str:
    """Why an error is not known to be below a limit, and what the user can do."""
    if not any(w.operations for w in windows):
        return "no operations are counted: expected a program that counts them, or --count"
    if len(windows) < limit:
        return "the program ended: expected a program that runs longer"
    if parts_of_the_work(windows, cycle):
        periods = f"{(cycle or 0) / FS_PER_MS:g} ms"
        return f"the work repeats every {periods}, and windows that cover fewer than two periods give no error: expected a higher --windows"
    if mean.relative < wanted:
        few = number(max(1, round(confidence.independent_windows(len(windows), mean.correlation))), "independent window")
        return f"the windows are correlated ({mean.correlation:.2f}) and worth only {few}, " \
               f"so the error may be up to {percent(mean.upper, 1)}: " \
               "expected a higher --windows"
    return "expected a higher --windows"


def intervals(windows: list[Moment], cycle: int | None = None) -> dict[str, Any]:
    """The errors of a point's figures: `confidence` of POINT. Times per operation are core time, busy and stalled."""
    of_throughput = throughput(windows, cycle)
    found = {"throughput_per_s": of_throughput.document()}
    operations = [float(w.operations) for w in windows]
    if sum(operations):
        for key, who in (("user_us_per_op", ("user",)), ("system_us_per_op", ("kernel",)), ("us_per_op", ("user", "kernel"))):
            spent = [sum(t for (kind, w), t in one.spent.items() if w in who and kind != "idle") / FS_PER_US for one in windows]
            found[key] = estimate(windows, cycle, spent, operations).document()
    return {"level": confidence.LEVEL, "windows": len(windows), "batches": of_throughput.batches, "correlation": of_throughput.correlation,
            "figures": found}


def summary(windows: list[Moment], cycle: int | None = None) -> dict[str, Any]:
    """The figures of a point (POINT of the contracts) that windows determine. `cycle`: the period of the work, if it has one."""
    whole = functools.reduce(operator.add, windows)
    each = [figures(w) for w in windows]
    total = figures(whole)
    total["window_ms"] = windows[0].tick / FS_PER_MS
    mean = throughput(windows, cycle)
    total["stderr_per_s"] = mean.stderr
    if len(windows) < confidence.FEWEST_TO_CORRECT and mean.stderr is not None:
        spread = standard_error([w["throughput_per_s"] for w in each]) or 0.0
        total["stderr_per_s"] = max(spread, confidence.least_error(mean.value, whole.operations, whole.tick / FS_PER_S))
    total["host_s_per_ms"] = whole.host_s / (whole.tick / FS_PER_MS)
    total["windows"] = each
    total["confidence"] = intervals(windows, cycle)
    return {**total, **changes(windows, cycle)}
