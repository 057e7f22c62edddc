# SPDX-License-Identifier: BSD-3-Clause
"""The folder of `moscope mosbench` in memory: for each application the points of its curves."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import parquet

from analysis import paper
from analysis.mosbench import names
from analysis.mosbench.account import WAITS
from analysis.run_directory import Point, Run, RunDirectoryError, finished
from moscope import jsonio


@dataclass
class Curve:
    """`points`: in order of cores. `most_cores`: of the points of all applications; the curve's ratio is of a point on so many."""

    label: str
    workload: str
    kernel: str
    points: list[Point]
    most_cores: int

    @property
    def ends(self) -> tuple[Point, Point] | None:
        """The points of one core and of the most cores; None if either lacks, or did nothing."""
        first, last = (self.points[0], self.points[-1]) if self.points else (None, None)
        if first is None or last is None or first.cores != 1 or last.cores != self.most_cores or last.cores == 1:
            return None
        if not first.throughput or not last.throughput:
            return None
        return first, last

    @property
    def ratio(self) -> float | None:
        """Throughput per core of the most cores, relative to one core."""
        if self.ends is None:
            return None
        first, last = self.ends
        return (last.throughput or 0.0) / last.cores / (first.throughput or 1.0)

    @property
    def ratio_stderr(self) -> float | None:
        """Standard error of `ratio`; None where a point has none."""
        if self.ends is None or self.ratio is None:
            return None
        errors = [p.number("stderr_per_s") for p in self.ends]
        parts = [e / (p.throughput or 1.0) for e, p in zip(errors, self.ends, strict=True) if e is not None]
        return self.ratio * math.hypot(*parts) if len(parts) == 2 else None


@dataclass
class Application:
    """`limit`: the paper's figure 12. `run`: the points with the application as workload and the curves' labels as kernels, for the
    figures of a run."""

    name: str
    title: str
    figure: int
    limit: str
    curves: list[Curve]
    run: Run

    @property
    def last(self) -> Curve | None:
        """The curve of the paper's figure 12."""
        return self.curves[-1] if self.curves else None


@dataclass
class Results:
    """`most_cores`: of all points."""

    path: Path
    machine: str
    applications: list[Application]
    failed: list[dict[str, Any]]
    of_paper: bool
    most_cores: int


def load(path: Path) -> Results:
    try:
        described = jsonio.loads((path / "mosbench.json").read_text(encoding="utf-8"))
        rows = parquet.read_table(path / "table.parquet", partitioning=None).to_pylist()
        sweep = jsonio.loads((path / "sweep.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{path}: cannot be read ({str(error).splitlines()[0]}): expected the folder of moscope mosbench"
                                ) from error
    fixed = sweep["config"]["fixed"]
    record = {"machine": described["machine"], "config": {"machine": described["machine"], "set": described["set"]}}
    done = [{**fixed, **r} for r in rows if r["status"] == "done"]
    measured = [[_points(one["name"], curve, done, path, record) for curve in one["curves"]] for one in described["applications"]]
    most_cores = max((p.cores for curves in measured for points in curves for p in points), default=0)
    found = [_application(one, curves, most_cores, path, record) for one, curves in zip(described["applications"], measured, strict=True)]
    return Results(path, described["machine"], found, sweep.get("failed", []), paper.is_of(record), most_cores)


def _points(application: str, curve: dict[str, Any], rows: list[dict[str, Any]], path: Path, record: dict[str, Any]) -> list[Point]:
    """Those of a curve, in order of cores."""
    mine = [_point(path / "points" / r["point"], application, curve["label"], paper.is_of(record))
            for r in rows if (r["workload"], r["kernel"]) == (curve["workload"], curve["kernel"])]
    return sorted(mine, key=lambda p: p.cores)


def _application(one: dict[str, Any], measured: list[list[Point]], most_cores: int, path: Path, record: dict[str, Any]) -> Application:
    curves = [Curve(c["label"], c["workload"], c["kernel"], points, most_cores) for c, points in zip(one["curves"], measured, strict=True)]
    run = Run(path, record, [p for c in curves for p in c.points], [])
    return Application(one["name"], one["title"], one["figure"], one["limit"], curves, run)


def _point(folder: Path, application: str, label: str, of_paper: bool) -> Point:
    measured, stats = finished(folder)
    return Point(folder.name, {**measured, "workload": application, "kernel": label}, stats, made={WAITS: names.waits(folder)},
                 of_paper=of_paper)
