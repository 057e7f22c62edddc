# SPDX-License-Identifier: BSD-3-Clause
"""Reads a run directory (docs/run-directory.md), whole or partial. Points that cannot be read are left out and listed in
`Run.problems`; the others are not affected. Times in the files are femtoseconds.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis import paper
from analysis.database import FILES, Database, readable
from analysis.described import FS_PER_MS
from moscope import jsonio
from moscope.errors import MOST_NAMES
from moscope.failures import expected
from moscope.runs import shape
from moscope.runs.point_name import point_name


class RunDirectoryError(ValueError):
    """Reads `file: problem: expected ...`."""


def unwritable(error: OSError, folder: Path) -> RunDirectoryError:
    """The error of a report that could not be written into a folder."""
    return RunDirectoryError(f"{error.filename or folder}: {error.strerror}: expected {expected(error, 'a writable folder')}")


@dataclass
class Point:
    """One workload on one kernel with one number of cores."""

    name: str
    record: dict[str, Any]
    stats: dict[str, Any] = field(default_factory=dict)
    # The database of the whole run; this point's rows have its name in the column `point`.
    database: Database = field(default_factory=lambda: Database({}), repr=False, compare=False)
    # Results of tables: figures, page and CSV files need the same ones.
    made: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    config: dict[str, Any] = field(default_factory=dict, repr=False)  # of the run
    of_paper: bool = False  # on the machine that the paper's figures were measured on

    @property
    def workload(self) -> str:
        return str(self.record.get("workload") or "unknown")

    @property
    def kernel(self) -> str:
        return str(self.record.get("kernel") or "unknown")

    @property
    def cores(self) -> int:
        return int(self.record.get("cores") or len(self.stats.get("cores", [])))

    @property
    def cores_per_chip(self) -> int | None:
        """None: the machine is not known, as in a run that has not ended, which has no run.json."""
        return int(self.config.get("cores_per_chip") or 0) or None

    @property
    def core_hz(self) -> int:
        return int(self.config.get("core_hz") or 0)

    @property
    def operations(self) -> str:
        """What the workload counts, in one word (its first: the record's "messages delivered" are messages)."""
        return next(iter(str(self.record.get("operation") or "").split()), "operations")

    @property
    def attribution(self) -> dict[str, Any]:
        return self.stats.get("attribution") or {}

    @property
    def machine(self) -> dict[str, Any]:
        """Statistics of network, DRAM and controllers (docs/statistics.md)."""
        return self.stats.get("machine") or {}

    @property
    def window_fs(self) -> int:
        """Simulated time that the statistics cover."""
        windows = [int(c.get("window", 0)) for c in self.stats.get("cores", [])]
        return max(windows, default=0) or int(float(self.record.get("window_ms") or 0) * FS_PER_MS)

    @property
    def waitable_fs(self) -> int:
        """The most that the cores can have waited: all time but that in which they execute user code other than spin loops."""
        def user(spent: dict[str, Any]) -> int:
            return sum(int((spent.get(kind) or {}).get("user", 0)) for kind in ("busy", "core"))

        return sum(int(core.get("window", 0)) - user(core) + user(core.get("spin") or {}) for core in self.stats.get("cores") or [])

    @property
    def memory_stall_fs(self) -> int:
        """Exposed stall of all cores, with that for transactions that had not ended with the last window, which no line has."""
        return int(self.attribution.get("exposed") or 0) + sum(int(core.get("unreported") or 0) for core in self.stats.get("cores", []))

    @property
    def spin_fs(self) -> int:
        """Time of all cores in loops that read a line until another core writes it."""
        return int(self.attribution.get("spin") or 0)

    @property
    def waiting_fs(self) -> int:
        """Memory stall and spinning: the whole of shares of waiting."""
        return self.memory_stall_fs + self.spin_fs

    @property
    def throughput(self) -> float | None:
        """Operations per second; None of a program that counts none."""
        return self.number("throughput_per_s") if self.number("ops") else None

    def number(self, key: str) -> float | None:
        """A figure of the record; None where there is none."""
        value = self.record.get(key)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


@dataclass
class Run:
    """A run directory in memory; points by workload and kernel, in the order in which the run was given them, and by cores."""

    path: Path
    record: dict[str, Any]
    points: list[Point]
    problems: list[str]
    # Lines, pairs and transfers of all points, to be queried (analysis/database.py).
    database: Database = field(default_factory=lambda: Database({}), repr=False, compare=False)
    left_out: list[str] = field(default_factory=list)  # what the report lacks although the run is whole, and why

    @property
    def machine(self) -> str:
        return str(self.record.get("machine") or next((p.machine["machine"] for p in self.points if p.machine.get("machine")),
                                                      "unknown machine"))

    @property
    def engine(self) -> str:
        """Name and version, of an engine other than moscope's own; else empty."""
        return str(self.record.get("engine") or "")

    @property
    def of_paper(self) -> bool:
        """Whether the machine is the one that the paper's figures were measured on."""
        return paper.is_of(self.record)

    @property
    def kernels(self) -> list[str]:
        """In the order of the points. A kernel has one colour in figures of kernels, by its place here (`style.series`)."""
        return list(dict.fromkeys(p.kernel for p in self.points))

    def series(self) -> dict[tuple[str, str], list[Point]]:
        """Points by (workload, kernel), each in order of cores."""
        found: dict[tuple[str, str], list[Point]] = {}
        for p in self.points:
            found.setdefault((p.workload, p.kernel), []).append(p)
        return found


def load(path: str | Path, copied: bool = True) -> Run:
    """The run at `path`, or one point, whose folder it is; raises RunDirectoryError if there is no run. `copied`: as in `Database`."""
    path = Path(path)
    if not path.is_dir():
        why = "is a file" if path.exists() else "no such folder"
        raise RunDirectoryError(f"{path}: {why}: expected the folder that `moscope run --out` wrote")
    if is_sweep(path):
        raise RunDirectoryError(f"{path}: holds a sweep: expected a run directory, or the folder of one point: {_points_of_sweep(path)}")
    problems: list[str] = []
    record = None
    alone = is_point(path)
    if alone:
        pass
    elif (path / "run.json").exists():
        record = _object(path / "run.json", problems)
        if record is not None and (fault := shape.fault(record)):
            problems.append(f"run.json is left out: {fault}")
            record = None
    else:
        problems.append("run.json is missing: the run has not ended")
    listed = [_key(r) for r in (record or {}).get("points") or [] if isinstance(r, dict)]
    points = []
    folders: dict[str, Path] = {}
    for folder in [path.absolute()] if alone else sorted(f for f in (path / "points").glob("*") if f.is_dir() and f.name[0] != "."):
        point = _point(folder, problems, counted="engine" not in (record or {}))
        if point is None:
            continue
        if record is None or _key(point.record) in listed:
            points.append(point)
            if "engine" not in (record or {}) and _has_tables(folder, problems):
                folders[point.name] = folder
        else:
            problems.append(f"points/{folder.name} is left out: its inputs are not those in run.json, or run.json does not "
                            "list it yet; the same `moscope run` measures it again")
    if not points:
        # Without the folders of the points, run.json still has the results.
        points = [Point(point_name(r.get("workload", ""), r.get("kernel", ""), r.get("cores", 0), "engine" in (record or {})), r)
                  for r in (record or {}).get("points") or [] if isinstance(r, dict) and _is_point(r, "run.json", problems)]
        if points:
            problems.append("the folders of the points are missing: only the results in run.json are known")
    if record is None and not points:
        raise RunDirectoryError(f"{path}: has neither run.json nor a finished point: expected the folder that `moscope run --out` wrote")
    workloads, kernels = ([str(key[n]) for key in listed] for n in (0, 1))
    points.sort(key=lambda p: (_place(p.workload, workloads), _place(p.kernel, kernels), p.cores))
    database = Database(folders, copied)
    for p in points:
        p.database, p.of_paper, p.config = database, paper.is_of(record or {}), (record or {}).get("config") or {}
    return Run(path, record or {}, points, problems, database)


def is_sweep(path: Path) -> bool:
    return (path / "sweep.json").is_file() and not (path / "run.json").exists()


def is_point(path: Path) -> bool:
    return (path / "point.json").is_file() and not (path / "run.json").exists()


def _points_of_sweep(path: Path) -> str:
    found = sorted(str(file.parent) for file in path.glob("points/*/point.json"))
    return ", ".join(found[:MOST_NAMES]) + (" ..." if len(found) > MOST_NAMES else "") if found else "it has no points of `moscope run`"


def _place(name: str, given: list[str]) -> tuple[int, str]:
    """Sorts names in the order in which they were given, and behind them those that were not, by the alphabet."""
    return given.index(name) if name in given else len(given), name


def _key(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record.get(k) for k in ("workload", "kernel", "cores"))


def _point(folder: Path, problems: list[str], counted: bool) -> Point | None:
    """`counted`: the point is of moscope's own engine, which writes statistics by line. Other engines write point.json only."""
    record = _object(folder / "point.json", problems)
    if record is None or not _is_point(record, f"{folder.name}/point.json", problems):
        return None
    point = Point(folder.name, record)
    if not counted:
        return point
    stats = _object(folder / "stats.json", problems) or {}
    if fault := shape.fault_of_stats(stats):
        problems.append(f"{folder.name}/stats.json is left out: {fault}")
    else:
        point.stats = stats
    return point


def of_point(file: Path) -> dict[str, Any]:
    """A JSON object in the folder of a finished point. Raises RunDirectoryError."""
    try:
        document = jsonio.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{file}: cannot be read ({str(error).splitlines()[0]}): expected a finished point") from error
    if not isinstance(document, dict):
        raise RunDirectoryError(f"{file}: is not a JSON object: expected a finished point")
    return document


def finished(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record and the statistics of a point, outside of a run. RunDirectoryError for a file that cannot be read, or is not as a run
    writes it."""
    found = []
    for name, fault_of in (("point.json", shape.fault_of_point), ("stats.json", shape.fault_of_stats)):
        document = of_point(folder / name)
        if fault := fault_of(document):
            raise RunDirectoryError(f"{folder / name}: {fault}")
        found.append(document)
    return found[0], found[1]


def _has_tables(folder: Path, problems: list[str]) -> bool:
    faults = [f"{folder.name}/{name}.parquet" + (f" cannot be read ({why})" if (folder / f"{name}.parquet").exists() else " is missing")
              for name in FILES if (why := readable(folder / f"{name}.parquet"))]
    more = [file for file in sorted(folder.glob("*.parquet")) if file.stem not in FILES]  # a run without them is whole, too
    problems += faults + [f"{folder.name}/{file.name} cannot be read ({why})" for file in more if (why := readable(file))]
    return not faults


def _is_point(record: dict[str, Any], file: str, problems: list[str]) -> bool:
    """Whether the record is as a run writes it, with a number of cores, by which points are sorted."""
    cores = record.get("cores")
    if cores is None or isinstance(cores, int) and not isinstance(cores, bool):
        fault = shape.fault_of_point(record)
    else:
        fault = f"its cores are {json.dumps(cores)}, not a number"
    if fault:
        problems.append(f"{file} is left out: {fault}")
    return not fault


def _object(file: Path, problems: list[str]) -> dict[str, Any] | None:
    name = file.name if file.name == "run.json" else f"{file.parent.name}/{file.name}"
    try:
        document = jsonio.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problems.append(f"{name} is missing")
    except (OSError, ValueError) as error:
        problems.append(f"{name} cannot be read ({str(error).splitlines()[0]})")
    else:
        if isinstance(document, dict):
            return document
        problems.append(f"{name} is not a JSON object")
    return None
