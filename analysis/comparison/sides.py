# SPDX-License-Identifier: BSD-3-Clause
"""The two sides of a comparison: a run directory, a point in one, or a sweep of runs; and which points of them are compared."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from analysis.database import FILES, Database, readable
from analysis.run_directory import Point, RunDirectoryError, finished, load, of_point
from analysis.tables.base import Row
from moscope.parquet import pattern, scan
from moscope.sweeps.jobs.run import JOB

TABLE = "table.parquet"
RESULT, RESULT_SCHEMA = "result.json", "moscope.sweep.point/1"  # of a point of a sweep, with its parameters
RUN, SWEEP, POINT = "run.json", "the parameters of a sweep", "point.json"  # what a configuration was read from
RECORDED = ("workload", "kernel", "cores", "command", "begin", "warmup_ms", "window_ms", "windows")  # in every point.json
# Parameters that do not change the machine's description; the others are keys of it, and the memory of its nodes.
NOT_OF_MACHINE = {*RECORDED, "seed", *JOB.options} - {"memory_per_node"}
RIGHT = "expected a run directory, a folder in its points/, or the folder of a sweep of runs"


@dataclass
class Measured:
    """A point with all that determined it, by key: what may differ in configuration."""

    point: Point
    configuration: dict[str, str]
    source: str
    axes: dict[str, str] = field(default_factory=dict)  # what distinguishes it within a sweep, besides workload, kernel and cores

    @property
    def title(self) -> str:
        cores = f"{self.point.cores} core{'' if self.point.cores == 1 else 's'}"
        return f"{self.point.workload} on {self.point.kernel}, {cores}{''.join(f', {name}={value}' for name, value in self.axes.items())}"

    def recorded(self, parameter: str) -> str | None:
        return self.configuration.get(parameter, self.configuration.get(f"{parameter}_ms"))


@dataclass
class Side:
    path: Path
    points: list[Measured]
    problems: list[str] = field(default_factory=list)  # what could not be read


def side(path: Path) -> Side:
    """Raises RunDirectoryError if there is nothing to compare."""
    if not path.is_dir():
        raise RunDirectoryError(f"{path}: {'is a file' if path.exists() else 'no such folder'}: {RIGHT}")
    if (path / "point.json").is_file():
        whole = path.absolute().parents[1]
        in_points = path.absolute().parent.name == "points"
        if in_points and (whole / "run.json").is_file():
            run, name = _of_run(whole), path.absolute().name
            found = [one for one in run.points if one.point.name == name]
            if found:
                return Side(path, found, [problem for problem in run.problems if problem.startswith(("run.json ", f"{name}/"))])
        return Side(path, [_alone(path, _table(whole / TABLE)[2] if in_points and (whole / TABLE).is_file() else ())])
    if (path / TABLE).is_file():
        found = _of_sweep(path)
        if not found:
            raise RunDirectoryError(f"{path}: a sweep without points of `moscope run`: {RIGHT}")
        return Side(path, found)
    return _of_run(path)


def _of_run(path: Path) -> Side:
    run = load(path, copied=False)
    config = run.record.get("config") or {}
    return Side(path, [Measured(p, configuration(p.record, config), RUN if config else POINT) for p in run.points], run.problems)


def _of_sweep(path: Path) -> list[Measured]:
    """The finished points of a sweep (docs/sweeps.md): its table has their parameters, in the columns before `point`. Rows with the same
    inputs share a folder, whose result has the parameters of one of them."""
    columns, values, axes = _table(path / TABLE)
    parameters = columns[:columns.index("point")] if "point" in columns else []
    rows = [dict(zip(columns, one, strict=True)) for one in values]
    of_folder = Counter(row.get("point") for row in rows)
    found = []
    for row in rows:
        folder = path / "points" / str(row.get("point"))
        if (folder / "point.json").is_file():
            found.append(_alone(folder, axes, {name: row[name] for name in parameters}, of_folder[row.get("point")] > 1))
    return found


def _table(file: Path) -> tuple[list[str], list[tuple[Any, ...]], list[str]]:
    """Columns, rows and axes of the table of a sweep."""
    try:
        with duckdb.connect() as connection:
            table = connection.execute(f"SELECT * FROM {scan(file)}")
            columns, rows = [column[0] for column in table.description], table.fetchall()
            metadata = connection.execute("SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = 'axes'",
                                          [pattern(file)]).fetchall()
    except duckdb.Error as error:
        raise RunDirectoryError(f"{file}: {str(error).splitlines()[0]}: expected the table of a sweep") from error
    return columns, rows, metadata[0][0].split("\n") if metadata else []


def _alone(folder: Path, axes: Sequence[str] = (), parameters: dict[str, Any] | None = None, shared: bool = False) -> Measured:
    """A point without run.json. If it is one of a sweep, with its parameters: those of its result, or else `parameters`; the latter if
    other points share the folder."""
    record, stats = finished(folder)
    whole = all(not readable(folder / f"{name}.parquet") for name in FILES)
    name = folder.absolute().name
    point = Point(name, record, stats, Database({name: folder} if whole else {}, copied=False))
    one = Measured(point, configuration(record, {}), POINT)
    given = parameters if shared else _given(folder / RESULT, parameters)
    if given is not None:
        texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items() if value is not None}
        # Times are in the record, in another unit.
        one.configuration |= {name: text for name, text in texts.items() if f"{name}_ms" not in one.configuration}
        one.axes = {name: texts[name] for name in axes if name in texts and name not in ("workload", "kernel", "cores")}
        one.source = SWEEP
    return one


def _given(file: Path, otherwise: dict[str, Any] | None) -> dict[str, Any] | None:
    """The parameters in a point's result, if that is one of a sweep."""
    if not file.is_file() or (result := of_point(file)).get("schema") != RESULT_SCHEMA:
        return otherwise
    given = result.get("params")
    if not isinstance(given, dict):
        raise RunDirectoryError(f"{file}: its params: expected an object")
    return given


def configuration(record: dict[str, Any], config: dict[str, Any]) -> dict[str, str]:
    """All that determined a point, as text: options, versions, every value of the machine, digests of what it was made from."""
    found = {key: record.get(key) for key in RECORDED}
    found["windows"] = len(record.get("windows") or [])
    found |= {key: config.get(key) for key in ("machine", "set", "seed")}
    found |= {f"machine.{key}": value for key, value in (config.get("description") or {}).items() if key != "name"}
    found |= {f"versions.{key}": value for key, value in (config.get("versions") or {}).items()}
    found |= {f"made_from.{key}": value for key, value in (record.get("made_from") or {}).items()}
    return {key: " ".join(map(str, value)) if isinstance(value, list) else str(value) for key, value in found.items() if value is not None}


def differing(a: Measured, b: Measured) -> tuple[list[Row], dict[str, list[str]]]:
    """The keys whose values differ, and by side those that it does not record although the other does. A parameter that is missing on
    one of two sides of the same kind was not given, which is a difference. The digest of the machine is left out if a parameter of the
    machine differs, or if both sides have all of its values."""
    keys = [k for k in {**a.configuration, **b.configuration} if a.configuration.get(k) != b.configuration.get(k)]
    lacking = {name: [k for k in keys if a.source != b.source and k not in one.configuration and not k.startswith("made_from.")
                      and k not in RECORDED]
               for name, one in (("a", a), ("b", b))}
    described = all(any(k.startswith("machine.") for k in one.configuration) for one in (a, b))
    keys = [k for k in keys if k not in (*lacking["a"], *lacking["b"])]
    explained = any(not k.startswith(("made_from.", "versions.")) and k not in NOT_OF_MACHINE for k in keys)
    if described or explained:
        keys = [k for k in keys if k != "made_from.machine"]
    return [{"key": k, "a": a.configuration.get(k), "b": b.configuration.get(k)} for k in keys], lacking


Key = Callable[[Measured], tuple[Any, ...]]


def rules(a: Side, b: Side) -> tuple[Key, ...]:
    """What two points have to have in common to be compared, the strictest first; of values only those that both sides record. By the
    last rule, the last points on both sides are a pair."""
    both = sorted(_keys(a) & _keys(b))
    axes = {axis for one in (*a.points, *b.points) for axis in one.axes}
    of_both = sorted(axis for axis in axes if all(any(one.recorded(axis) is not None for one in side.points) for side in (a, b)))
    return (
        lambda one: (one.point.name if one.source == SWEEP else id(one),),  # the digest of all that determined it
        lambda one: tuple(one.configuration.get(key) for key in both),
        lambda one: (one.point.workload, one.point.kernel, one.point.cores, *(one.recorded(axis) for axis in of_both)),
        lambda one: (one.point.workload, one.point.kernel, one.point.cores),
        lambda one: (one.point.workload, one.point.cores),
        lambda one: (one.point.workload,),
        lambda one: (),
    )


STRICT = 4  # of the rules; a pair by one of the others is no counterpart where these found some


def _keys(side: Side) -> set[str]:
    return {key for one in side.points for key in one.configuration if not key.startswith(("versions.", "made_from."))}


def matched(a: Side, b: Side) -> tuple[list[tuple[Measured, Measured]], list[str]]:
    """The pairs to compare, and the points that have no counterpart. A point is paired by its digest or all of its configuration if
    that is possible, then by workload, kernel, cores and the other axes of its sweep, then by less; only if that makes it the only one
    on both sides."""
    left, right = list(a.points), list(b.points)
    if len(left) == len(right) == 1:
        return [(left[0], right[0])], []
    found: list[tuple[Measured, Measured]] = []
    for n, key in enumerate(rules(a, b)):
        if found and n == STRICT:
            break
        groups: dict[tuple[Any, ...], tuple[list[Measured], list[Measured]]] = {}
        for side, points in enumerate((left, right)):
            for one in points:
                groups.setdefault(key(one), ([], []))[side].append(one)
        pairs = [(x[0], y[0]) for x, y in groups.values() if len(x) == len(y) == 1]
        found += pairs
        used = {id(one) for pair in pairs for one in pair}
        left, right = ([one for one in points if id(one) not in used] for points in (left, right))
    alone = [f"{one.point.name} ({side.path})" for side, points in ((a, left), (b, right)) for one in points]
    order = {id(one): n for n, one in enumerate(a.points)}
    return sorted(found, key=lambda pair: order[id(pair[0])]), alone


def unmatched(a: Side, b: Side) -> str:
    """Why no points are a pair."""
    for key in rules(a, b)[:-1]:
        for side, other in ((a, b), (b, a)):
            wanted = {key(one) for one in other.points}
            for value in dict.fromkeys(key(one) for one in side.points if key(one) in wanted):
                alike = [one for one in side.points if key(one) == value]
                if len(alike) > 1:
                    return (f"{side.path}: {len(alike)} of its points have the same counterpart in {other.path} ({alike[0].title}; "
                            f"{alike[1].title}{'; ...' if len(alike) > 2 else ''}): expected the folder of one of them, such as "
                            f"{side.path / 'points' / alike[0].point.name}")
    return f"{b.path}: has no point to compare with those of {a.path}: expected the same workloads, or folders of single points"
