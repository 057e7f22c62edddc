# SPDX-License-Identifier: BSD-3-Clause
"""Seconds that points took, by kind, in the user's cache: what estimates are made from."""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from moscope import paths
from moscope.sweeps.points import Point
from moscope.sweeps.store import write_whole


def file() -> Path:
    return paths.cache_dir() / "sweep" / "speeds.json"


def known() -> dict[str, dict[str, float]]:
    try:
        found: dict[str, dict[str, float]] = json.loads(file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def record(made: Iterable[tuple[Point, dict[str, Any]]]) -> None:
    """Adds the seconds of points that this start has made; of many, the older ones count less."""
    speeds = known()
    for point, result in made:
        entry = speeds.setdefault(point.planned.kind, {"seconds": 0.0, "work": 0.0})
        if entry["work"] > 50 * point.planned.work:
            entry["seconds"], entry["work"] = entry["seconds"] / 2, entry["work"] / 2
        entry["seconds"] += float(result["seconds"])
        entry["work"] += point.planned.work
    if speeds:
        file().parent.mkdir(parents=True, exist_ok=True)
        write_whole(file(), json.dumps(speeds, sort_keys=True, indent=1) + "\n")


def estimate(points: Iterable[Point]) -> tuple[float, int]:
    """Seconds that the points take one after the other, and how many of them have no recorded speed, even of a similar kind."""
    speeds = known()
    similar: dict[str, list[float]] = defaultdict(list)
    for kind, entry in speeds.items():
        similar[kind.split()[0]].append(entry["seconds"] / entry["work"])
    total, unknown = 0.0, 0
    for p in points:
        if recorded := speeds.get(p.planned.kind):
            total += recorded["seconds"] / recorded["work"] * p.planned.work
        elif rates := similar.get(p.planned.kind.split()[0]):
            total += sum(rates) / len(rates) * p.planned.work
        else:
            unknown += 1
    return total, unknown


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
