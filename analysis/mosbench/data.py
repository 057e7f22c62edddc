# SPDX-License-Identifier: BSD-3-Clause
"""The folder of `moscope mosbench` in memory: for each application the points of its curves."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import parquet

from analysis import paper
from analysis.mosbench import names
from analysis.mosbench.account import SHARED_BY_NAME
from analysis.run_directory import Point, Run, RunDirectoryError


@dataclass
class Curve:
    """`points`: in order of cores."""

    label: str
    kernel: str
    points: list[Point]

    @property
    def ends(self) -> tuple[Point, Point] | None:
        """The points of one core and of the most cores; None if either lacks, or did nothing."""
        first, last = (self.points[0], self.points[-1]) if self.points else (None, None)
        if first is None or last is None or first.cores != 1 or last.cores == 1 or not first.throughput or not last.throughput:
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
    path: Path
    machine: str
    applications: list[Application]
    failed: list[dict[str, Any]]
    of_paper: bool

    @property
    def most_cores(self) -> int:
        return max((p.cores for a in self.applications for c in a.curves for p in c.points), default=0)


def load(path: Path) -> Results:
    try:
        described = json.loads((path / "mosbench.json").read_text(encoding="utf-8"))
        rows = parquet.read_table(path / "table.parquet").to_pylist()
        sweep = json.loads((path / "sweep.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{path}: cannot be read ({str(error).splitlines()[0]}): expected the folder of moscope mosbench"
                                ) from error
    fixed = sweep["config"]["fixed"]
    sets = [f"{key}={value}" for key, value in fixed.items() if "." in key]
    record = {"machine": described["machine"], "config": {"set": sets}}
    found = [_application(one, [{**fixed, **r} for r in rows if r["status"] == "done"], path, record) for one in described["applications"]]
    return Results(path, described["machine"], found, sweep.get("failed", []), paper.is_of(record))


def _application(one: dict[str, Any], rows: list[dict[str, Any]], path: Path, record: dict[str, Any]) -> Application:
    curves = []
    for curve in one["curves"]:
        mine = [_point(path / "points" / r["point"], one["name"], curve["label"], paper.is_of(record))
                for r in rows if (r["workload"], r["kernel"]) == (curve["workload"], curve["kernel"])]
        curves.append(Curve(curve["label"], curve["kernel"], sorted(mine, key=lambda p: p.cores)))
    run = Run(path, record, [p for c in curves for p in c.points], [])
    return Application(one["name"], one["title"], one["figure"], one["limit"], curves, run)


def _point(folder: Path, application: str, label: str, of_paper: bool) -> Point:
    documents = []
    for name in ("point.json", "stats.json"):
        try:
            documents.append(json.loads((folder / name).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise RunDirectoryError(f"{folder / name}: cannot be read ({str(error).splitlines()[0]}): expected a finished point") from error
    return Point(folder.name, {**documents[0], "workload": application, "kernel": label}, documents[1],
                 made={SHARED_BY_NAME: names.shared(folder)}, of_paper=of_paper)
