# SPDX-License-Identifier: BSD-3-Clause
"""Seconds and host memory that points took, by kind, and seconds that sweeps took besides their points; estimates are based on them.
The user's cache holds those of this host. For kinds that have not run here, `recorded.json` has those of another host.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moscope import paths
from moscope.aside import write_whole

if TYPE_CHECKING:
    from moscope.sweeps.points import Point

RECORDED = Path(__file__).with_name("recorded.json")
WITH_CORES = re.compile(r"(.*) with (\d+) cores")


def file() -> Path:
    return paths.cache_dir() / "sweep" / "speeds.json"


def known() -> dict[str, dict[str, float]]:
    try:
        found: dict[str, dict[str, float]] = json.loads(file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def record(made: Iterable[tuple["Point", dict[str, Any]]]) -> None:
    """Adds the seconds of points that this start has made; older points count less than newer ones."""
    speeds = known()
    for point, result in made:
        entry = speeds.setdefault(point.planned.kind, {"seconds": 0.0, "work": 0.0})
        if entry["work"] > 50 * point.planned.work:
            entry["seconds"], entry["work"] = entry["seconds"] / 2, entry["work"] / 2
        entry["seconds"] += float(result["seconds"])
        entry["work"] += point.planned.work
        if (kept := kept_bytes_per_ms(point, result["figures"])) is not None:
            entry["kept_bytes_per_ms"] = max(kept, entry.get("kept_bytes_per_ms", 0.0))
    if speeds:
        _keep(speeds)


def record_besides(job: str, parts: int, seconds: float) -> None:
    """Adds the seconds that a start of a sweep took besides its points. `parts`: one for Snakemake and the report, and one for each boot.
    The last start counts as much as all before, since the first one may install Snakemake."""
    speeds = known()
    earlier = speeds.get(besides(job), {"seconds": seconds, "work": float(parts)})
    speeds[besides(job)] = {"seconds": (earlier["seconds"] / earlier["work"] + seconds / parts) / 2, "work": 1.0}
    _keep(speeds)


def besides(job: str) -> str:
    return f"sweep of {job}"


def _keep(speeds: dict[str, dict[str, float]]) -> None:
    file().parent.mkdir(parents=True, exist_ok=True)
    write_whole(file(), json.dumps(speeds, sort_keys=True, indent=1) + "\n")


def kept_bytes_per_ms(point: "Point", figures: dict[str, Any]) -> float | None:
    """Host memory of a run for each ms of its windows, beyond that of the machine; None for points that are not runs."""
    ms = (figures.get("windows") or 0) * (figures.get("window_ms") or 0.0)
    if not ms or not figures.get("host_bytes"):
        return None
    return float(max(0, figures["host_bytes"] - (point.planned.boot_memory_mb << 20)) / ms)


def kept_bytes(kind: str) -> float | None:
    """The largest amount of host memory per ms of windows that points of this kind have used, on this host or else on another;
    None if unknown."""
    for speeds in (known(), recorded()):
        if "kept_bytes_per_ms" in speeds.get(kind, {}):
            return speeds[kind]["kept_bytes_per_ms"]
    return None


@dataclass(frozen=True)
class Estimate:
    """The `seconds` that points take one after the other, and those that the sweep takes `besides`. For `elsewhere` of the points,
    the estimate uses times on another host. `unknown` points are left out, because no points have been recorded between which theirs
    could be interpolated."""

    seconds: float
    elsewhere: int
    unknown: int
    besides: float = 0.0

    def with_jobs(self, count: int) -> float:
        """The seconds that it takes if `count` points run at once."""
        return self.seconds / max(1, count) + self.besides


def estimate(points: Iterable[tuple[str, float]]) -> Estimate:
    """The estimate for points of these kinds, with this work."""
    here, there = rates(known()), rates(recorded())
    seconds, elsewhere, unknown = 0.0, 0, 0
    for kind, work in points:
        rate = here.get(kind)
        if rate is None:
            rate = like(kind, there)
            elsewhere += rate is not None
        if rate is None:
            rate = like(kind, here)
        unknown += rate is None
        seconds += (rate or 0.0) * work
    return Estimate(seconds, elsewhere, unknown)


def estimate_sweep(job: str, points: Iterable[tuple[str, float]], boots: int) -> Estimate:
    """The estimate for a sweep over points of these kinds, which boots so many guests first."""
    kind = besides(job)
    rate = rates(known()).get(kind) or rates(recorded()).get(kind) or 0.0
    return replace(estimate(points), besides=rate * (1 + boots))


def recorded() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = json.loads(RECORDED.read_text(encoding="utf-8"))["kinds"]
    return found


def rates(speeds: dict[str, dict[str, float]]) -> dict[str, float]:
    """By kind, the seconds for a unit of work."""
    return {kind: entry["seconds"] / entry["work"] for kind, entry in speeds.items()}


def like(kind: str, known: dict[str, float]) -> float | None:
    """The rate of a kind. If it is unknown, the rate is interpolated between the same workload with fewer and with more cores; None if
    that is not possible, as other workloads say nothing about this one."""
    if kind in known:
        return known[kind]
    subject, cores = parts(kind)
    return between({c: rate for k, rate in known.items() for s, c in [parts(k)] if s == subject and c}, cores)


def between(by_cores: dict[int, float], cores: int) -> float | None:
    """The rate by linear interpolation between the nearest numbers of cores on either side; None if one side has none."""
    if cores in by_cores:
        return by_cores[cores]
    low, high = max((c for c in by_cores if c < cores), default=None), min((c for c in by_cores if c > cores), default=None)
    if low is None or high is None:
        return None
    return by_cores[low] + (by_cores[high] - by_cores[low]) * (cores - low) / (high - low)


def parts(kind: str) -> tuple[str, int]:
    """The subject of a kind and its number of cores, 0 if it has none."""
    found = WITH_CORES.fullmatch(kind)
    return (found[1], int(found[2])) if found else (kind, 0)


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
