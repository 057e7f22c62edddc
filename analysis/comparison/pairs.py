# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of a comparison of two points, A and B. A difference is B - A.

Time is core time of all cores in use, divided by the operations finished, in microseconds; of programs that count none, by
simulated milliseconds. Three lists each add up to the difference of all core time: by kind of time, by name of line, by waiting
function. Errors are 95 % intervals of the difference from the windows' batch means (moscope.runs.statistics.confidence): the root of the
sum of the squares of both sides. Lines and functions have no windows of their own; they are marked if their difference is no
larger than the error of the whole."""

import math
from collections.abc import Sequence

from analysis import arrays
from analysis.comparison import bytes_of_lines, programs
from analysis.comparison.sides import Measured, differing
from analysis.described import CLASSES, FS_PER_MS, FS_PER_S, FS_PER_US, SPIN, TIME_KIND
from analysis.run_directory import Point
from analysis.tables.base import Row
from analysis.tables.differences import without_offset
from analysis.tables.time_split import causes
from moscope.runs.statistics import trend
from moscope.runs.statistics.confidence import Mean, of_point

MOST = 100  # rows of a list; the others are one row
ROUNDING = 1e-9  # a smaller relative difference is mere rounding, as in the windows' residuals
# Figures of a point: name, unit, and what they are.
FIGURES = {
    "throughput_per_s": ("per second", "operations finished per second"),
    "us_per_op": ("µs", "core time per operation, busy and stalled"),
    "user_us_per_op": ("µs", "of that, in user mode"),
    "system_us_per_op": ("µs", "of that, in the kernel"),
    "instructions_per_op": ("", "instructions per operation, spin loops left out"),
    **{kind: ("", f"share of core time: {TIME_KIND.label(kind)}") for kind in TIME_KIND.ranked},
    "spin_cycles": ("", "share of spin loops, part of busy and core stall"),
    "kernel_share": ("", "kernel's share of busy and stalled time"),
}
OF_THE_KERNEL = ("kernel_share", "system_us_per_op", "user_us_per_op")
WAITING = (SPIN, *CLASSES, "without_class", "memory")


def figure(p: Point, name: str, counts: bool = False) -> Mean | None:
    """A figure of a point with its error; None if it has none, as of a program that counts no operations. `counts`: the program counts
    them, though it may have finished none."""
    windows = [w for w in p.record.get("windows") or [p.record] if w.get("ticks")]  # a point of gem5 is one window
    if not windows or name in OF_THE_KERNEL and p.record.get("kernel_share") is None:
        return None
    ticks = [float(w["ticks"]) for w in windows]
    operations = [float(w.get("ops") or 0) for w in windows]
    shares = [w.get("cycles") or {} for w in windows]
    active = [(1 - float(s.get("idle") or 0)) * t * p.cores for s, t in zip(shares, ticks, strict=True)]
    kernel = [a * float(w.get("kernel_share") or 0) for a, w in zip(active, windows, strict=True)]
    seconds = [t / FS_PER_S for t in ticks]
    if name in TIME_KIND.names:
        return of_point(p.record, [float(s.get(name) or 0) * t for s, t in zip(shares, ticks, strict=True)], ticks)
    if name == "spin_cycles":
        return of_point(p.record, [float(w.get("spin_cycles") or 0) * t for w, t in zip(windows, ticks, strict=True)], ticks)
    if name == "kernel_share":
        return of_point(p.record, kernel, active) if sum(active) else None
    if not sum(operations) and not (counts and name == "throughput_per_s"):
        return None
    amounts = {"throughput_per_s": operations, "us_per_op": [a / FS_PER_US for a in active],
               "system_us_per_op": [k / FS_PER_US for k in kernel],
               "user_us_per_op": [(a - k) / FS_PER_US for a, k in zip(active, kernel, strict=True)],
               "instructions_per_op": [float(w.get("instructions") or 0) for w in windows]}[name]
    return of_point(p.record, amounts, seconds if name == "throughput_per_s" else operations, sum(operations))


def difference(a: Mean | None, b: Mean | None) -> Row | None:
    """Values, difference and its error, also as fractions of A; `within_error` is None if no error is known."""
    if a is None or b is None:
        return None
    gap = 0.0 if math.isclose(a.value, b.value, rel_tol=ROUNDING) else b.value - a.value
    half = None if a.half_width is None or b.half_width is None else math.hypot(a.half_width, b.half_width)
    return {"a": a.value, "b": b.value, "difference": gap, "half_width": half, "relative": gap / a.value if a.value else None,
            "relative_half_width": half / abs(a.value) if a.value and half is not None else None,
            "within_error": None if half is None else abs(gap) <= half}


def per(p: Point, both_count: bool) -> float:
    """What times in femtoseconds are divided by: operations and microseconds."""
    ops = (p.number("ops") or 0.0) if both_count else p.window_fs / FS_PER_MS
    return ops * FS_PER_US


def core_time(p: Point) -> int:
    """Of all cores in all windows, in femtoseconds."""
    return sum(int(c.get("window", 0)) for c in p.stats.get("cores") or []) or p.cores * int(p.number("ticks") or 0)


def by_kind(p: Point) -> dict[str, float]:
    """Core time by cause, in femtoseconds."""
    whole = core_time(p)
    return {cause: share * whole for cause, share in causes(p).items()}


def by_line(points: Sequence[Point], renamed: Sequence[programs.Renamed]) -> list[dict[str, Row]]:
    """Of both points, waiting by name of line, in femtoseconds; the same lock or line in both has one name, and so have the elements of
    an array that are one entry in either."""
    query = "SELECT name, kind, class, waiting FROM names WHERE point = ? ORDER BY waiting DESC, name, kind"
    listed = [p.database.rows(query, p.name) for p in points]
    names = [_common_name(one) for one in renamed]
    of_arrays = {arrays.whole(name(one["name"], one["kind"])) for name, rows in zip(names, listed, strict=True) for one in rows
                 if arrays.ANY in one["name"]}
    names = [_of_array(name, of_arrays) for name in names]
    found: list[dict[str, Row]] = []
    for name, of_names in zip(names, listed, strict=True):
        rows: dict[str, Row] = {}
        for one in of_names:
            mine = rows.setdefault(name(one["name"], one["kind"]), {"kind": one["kind"], "class": one["class"], "time": 0.0})
            mine["time"] += one["waiting"]
        found.append(rows)
    a, b = found
    in_a, in_b = map(bytes_of_lines.accessed, points, names)
    return [a, bytes_of_lines.aligned(a, b, in_a, in_b)]


def _common_name(renamed: programs.Renamed) -> programs.Renamed:
    return lambda name, kind: renamed(without_offset({"name": name, "kind": kind}), kind)


def _of_array(named: programs.Renamed, of_arrays: set[str]) -> programs.Renamed:
    def name(own: str, kind: str) -> str:
        element = named(own, kind)
        return entry if (entry := arrays.whole(element)) in of_arrays else element

    return name


def by_function(p: Point, renamed: programs.Renamed) -> dict[str, Row]:
    """Waiting by the function that waited, in femtoseconds."""
    rows = p.database.rows("""SELECT coalesce(waiter_function, 'unknown') AS name, sum(waiting)::BIGINT AS waiting
        FROM pairs WHERE point = ? GROUP BY ALL ORDER BY waiting DESC, name""", p.name)
    found: dict[str, Row] = {}
    for one in rows:
        found.setdefault(renamed(one["name"], "function"), {"kind": "function", "class": "", "time": 0.0})["time"] += one["waiting"]
    return found


def listed(sides: Sequence[dict[str, Row]], scale: Sequence[float], error: float | None, rest: list[Row]) -> list[Row]:
    """Rows with the largest difference first, of equal ones those with the most time on a side; then those that are not listed one by
    one as one row, then `rest`, so that all add up to the difference of all core time."""
    rows = []
    for name, about in {**sides[0], **sides[1]}.items():
        values = [(side[name]["time"] if name in side else 0.0) / divisor for side, divisor in zip(sides, scale, strict=True)]
        more = {"names_in_b": about["names_in_b"]} if "names_in_b" in about else {}
        rows.append({**_row(name, about["kind"], about["class"], values, error), **more})
    rows.sort(key=lambda row: (*_rank(row), row["name"]))
    left_out = rows[MOST:]
    if left_out:
        sums = [sum(row[side] for row in left_out) for side in ("a", "b")]
        rows[MOST:] = [_row(f"{len(left_out):,} more", "others", "", sums, error)]
    waited = [sum(row[side] for row in rows) for side in ("a", "b")]
    whole = [sum(row[side] for row in rest if row["name"] == "waiting") for side in ("a", "b")]
    left = [w - x for w, x in zip(whole, waited, strict=True)]
    if any(abs(x) > 1e-6 * (abs(w) + 1e-12) for x, w in zip(left, whole, strict=True)):
        rows.append(_row("waiting without a name", "others", "", left, error))
    return rows + [row for row in rest if row["name"] != "waiting"]


def _rank(row: Row) -> tuple[float, float]:
    return -abs(row["difference"]), -max(row["a"], row["b"])


def _row(name: str, kind: str, miss_class: str, values: Sequence[float], error: float | None) -> Row:
    return {"name": name, "kind": kind, "class": miss_class, **_values(values, error)}


def _values(values: Sequence[float], error: float | None) -> Row:
    a, b = values
    return {"a": a, "b": b, "difference": b - a, "within_error": None if error is None else abs(b - a) <= error}


def compared(a: Measured, b: Measured) -> Row:
    """Everything about one pair: the keys of `moscope.compare/1`."""
    points = (a.point, b.point)
    either = any(p.number("ops") for p in points)
    found = {name: difference(*(figure(p, name, either) for p in points)) for name in FIGURES}
    counts = all(p.number("ops") for p in points)
    scale = [per(p, counts) or 1.0 for p in points]
    error = _error(points, counts)
    kinds = [by_kind(p) for p in points]
    values = {cause: [k.get(cause, 0.0) / s for k, s in zip(kinds, scale, strict=True)] for cause in {**kinds[0], **kinds[1]}}
    time = sorted((_row(cause, "waiting" if cause in WAITING else "time", "", v, error) for cause, v in values.items()),
                  key=_rank)
    rest = [_row(name, "rest", "", [sum(v[n] for cause, v in values.items() if (cause in WAITING) == waits) for n in (0, 1)], error)
            for name, waits in (("waiting", True), ("busy, core stall and idle", False))]
    whole = [sum(v[n] for v in values.values()) for n in (0, 1)]
    own = [programs.of(p) for p in points]
    same = [programs.renamed(own[0], name) for name in own]
    configuration, lacking = differing(a, b)
    return {"a": a.title, "b": b.title, "unit": "µs of core time per operation" if counts else "µs of core time per simulated ms",
            "operation": a.point.operations if either else None,
            "configuration": configuration, "not_recorded": lacking,
            "throughput": found["throughput_per_s"], "figures": {name: row for name, row in found.items() if row is not None},
            "whole": {**_values(whole, error), "half_width": error}, "time": time,
            "programs": {"a": own[0], "b": own[1]} if all(own) and own[0] != own[1] else None,
            "lines": listed(by_line(points, same), scale, error, rest),
            "functions": listed([by_function(p, one) for p, one in zip(points, same, strict=True)], scale, error, rest),
            "alike": alike(found),
            "unsteady": [f"{side}: {trend.said(p.record)}" for side, p in zip("AB", points, strict=True) if "trend" in p.record]}


def _error(points: tuple[Point, Point], counts: bool) -> float | None:
    """Of the difference of core time, in the unit of the lists. Per simulated time it does not vary; then that of memory stall."""
    if counts:
        widths = [_core_time_per_operation(p).half_width for p in points]
    else:
        stalls = [figure(p, "memory") for p in points]
        widths = [m.half_width * p.cores * 1000 if m and m.half_width is not None else None for m, p in zip(stalls, points, strict=True)]
    return None if None in widths else math.hypot(*(w for w in widths if w is not None))


def _core_time_per_operation(p: Point) -> Mean:
    windows = p.record.get("windows") or []
    operations = [float(w.get("ops") or 0) for w in windows]
    return of_point(p.record, [float(w.get("ticks") or 0) * p.cores / FS_PER_US for w in windows], operations, sum(operations))


def alike(found: dict[str, Row | None]) -> bool | None:
    """Whether throughput and time per operation differ by no more than their errors; shares of time, if no operations are counted.
    None if no error is known."""
    names = ("throughput_per_s", "us_per_op") if found["throughput_per_s"] else ("memory", "busy")
    marks = [row["within_error"] for name in names if (row := found[name]) is not None]
    return None if not marks or None in marks else all(marks)
