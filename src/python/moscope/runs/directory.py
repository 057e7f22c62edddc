# SPDX-License-Identifier: BSD-3-Clause
"""The run directory (docs/run-directory.md). Finished points are in `points/`. A start with the same options continues from
there, except for points whose inputs have changed. `run.json` is rewritten whenever a point is finished.
"""

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moscope import jsonio, paths
from moscope._version import VERSION
from moscope.aside import write_whole
from moscope.config import walk
from moscope.errors import MoscopeError, UserError, failures
from moscope.failures import expected
from moscope.guest import packages
from moscope.runs import inputs
from moscope.runs.options import TIMES, Options, Plan, Point, time_text

if TYPE_CHECKING:
    from moscope.runs.point import Result

SCHEMA, POINT_SCHEMA, STATS_SCHEMA, OPTIONS_SCHEMA = "moscope.run/1", "moscope.point/1", "moscope.point.stats/1", "moscope.options/1"
IDENTITY = "options.json"
REPORT = "report.html"


def point_folder(out: Path, point: Point) -> Path:
    return out / "points" / point.name


def open_for(plan: Plan) -> dict[str, dict[str, Any]]:
    """Creates the directory, or opens that of a run with the same options; returns the finished points by name."""
    out = plan.out
    jsonio.check_replaceable(out, adds=True)
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / jsonio.MARK).touch()
        (out / "points").mkdir(exist_ok=True)
        check_options(plan)
        if not (out / IDENTITY).exists():
            write_whole(out / IDENTITY, jsonio.dumps({"schema": OPTIONS_SCHEMA, **plan.identity()}) + "\n")
    except OSError as error:
        raise UserError(f"{out}: {error.strerror}: expected {expected(error, 'a writable folder')}") from error
    return points_of(plan)


def kept(plan: Plan) -> dict[str, dict[str, Any]]:
    """The finished points that open_for() would return; nothing is written."""
    jsonio.check_replaceable(plan.out, adds=True)
    try:
        check_options(plan)
    except OSError as error:
        raise UserError(f"{plan.out}: {error.strerror}: expected {expected(error, 'a writable folder')}") from error
    return points_of(plan)


def check_options(plan: Plan) -> None:
    """UserError if the directory holds a run with other options."""
    out, found = plan.out, plan.out / IDENTITY
    if not found.exists():
        if holds_points(out):
            raise UserError(f"{out}: holds points whose options are unknown: expected another --out")
    elif without_schema(document(found)) != plan.identity():
        raise UserError(f"{out}: holds a run with other options ({differences(found, plan)}): expected the same options, to resume it, "
                        "or another --out")


def points_of(plan: Plan) -> dict[str, dict[str, Any]]:
    """The finished points by name."""
    found = {p.name: finished(point_folder(plan.out, p)) for p in plan.points}
    return {name: point for name, point in found.items() if point is not None}


@contextmanager
def opened(plan: Plan) -> Iterator[dict[str, dict[str, Any]]]:
    """As open_for(). If no point is finished when the block ends, it gives up the folder."""
    found = open_for(plan)
    try:
        yield found
    finally:
        if not found:
            release(plan.out)


def release(out: Path) -> None:
    """Gives up the folder of a run that ended before any point was finished, so that other options are not refused."""
    if not holds_points(out):
        (out / IDENTITY).unlink(missing_ok=True)


def holds_points(out: Path) -> bool:
    """Or points under way. Folders that a killed process has left are neither."""
    points = out / "points"
    return points.is_dir() and any(not jsonio.is_leftover(folder) for folder in points.iterdir())


def outdated(found: dict[str, dict[str, Any]], now: dict[str, dict[str, str]]) -> dict[str, str]:
    """The finished points that must be measured again, and why: their inputs differ from the digests (runs/inputs.py) in `now`,
    by point."""
    why = {}
    for name, point in found.items():
        before = {"engine": str(point.get("engine")), **(point.get("made_from") or {})}
        if changed := inputs.differences(before, {"engine": engine_digest(), **now[name]}):
            why[name] = (f"there is {' and '.join(changed)} now" if "made_from" in point else
                         "its record does not name its inputs")
    return why


def engine_digest() -> str:
    """Digest of the engine in use; distinguishes the results of different versions."""
    return packages.digest_of(paths.engine_library())[:16]


def differences(kept: Path, plan: Plan) -> str:
    """The options whose values differ from those in the directory, as text."""
    before, now = document(kept), plan.identity()
    if before is None:
        return f"{kept.name} is damaged"
    found = [_change(key, before.get(key), now[key]) for key in now if key not in ("points", "processes")]
    if before.get("processes") != now.get("processes"):
        found.append(f"--threads {'1, not 2 or more' if 'processes' in now else '2 or more, not 1'}")
    old, new = before.get("points") or [], now["points"]
    for option in ("workload", "kernel", "cores"):
        first, second = ([*dict.fromkeys(str(p.get(option)) for p in points)] for points in (old, new))
        found.append(_change(option, first, second))
    for one in old:  # the options of a point may depend on its workload and core count, but not on its kernel
        alike = [p for p in new if all(p.get(option) == one.get(option) for option in ("workload", "cores"))]
        other = next((p for p in alike if p.get("kernel") == one.get("kernel")), next(iter(alike), one))
        found += [_change(option, one.get(option), other.get(option)) for option in {**one, **other} if option != "kernel"]
    return "; ".join(dict.fromkeys(filter(None, found))) or "of another version"


def _change(name: str, before: Any, now: Any) -> str:
    """An option as it is written on the command line, or a value that follows from the options, before and now. Empty if both are
    equal."""
    option = {"packages": "with"}.get(name, name)
    given = {"machine", "set", "seed", *(field.name for field in fields(Options)), "with"}
    shown = f"--{option.replace('_', '-')}" if option in given else option
    if before == now:
        return ""
    return f"another {shown}" if "\n" in f"{before}{now}" else f"{shown} {_value(name, before)}, not {_value(name, now)}"  # a script


def _value(name: str, value: Any) -> str:
    if name in TIMES and isinstance(value, int):
        return time_text(value)
    if name == "until_error" and value is not None:
        return f"{100 * value:g}%"
    return ",".join(map(str, value)) or "none" if isinstance(value, list) else "none" if value is None else str(value)


def document(file: Path) -> dict[str, Any] | None:
    """The JSON object of a file; None if it is damaged."""
    try:
        found = jsonio.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def without_schema(found: dict[str, Any] | None) -> dict[str, Any] | None:
    return found and {key: value for key, value in found.items() if key != "schema"}


def finished(folder: Path) -> dict[str, Any] | None:
    """The point in a folder, as `run.json` has it; None if it is not there or damaged."""
    try:
        return without_schema(document(folder / "point.json"))
    except OSError:
        return None


def write_point(folder: Path, result: "Result") -> None:
    """Writes the files of a point into a folder that is renamed when it is complete."""
    write_document(folder / "point.json", POINT_SCHEMA, result.point)
    write_document(folder / "stats.json", STATS_SCHEMA, result.stats)
    result.tables.write(folder)
    (folder / "console.txt").write_bytes(result.console)


def write_document(file: Path, schema: str, contents: dict[str, Any]) -> None:
    """Writes a file of a point's folder, with its schema; the folder is renamed later."""
    file.write_text(jsonio.dumps({"schema": schema, **contents}) + "\n", encoding="utf-8")


def write_run(plan: Plan, points: list[dict[str, Any]], ok: bool, failed: Sequence[MoscopeError] = ()) -> dict[str, Any]:
    """Writes `run.json`: the command's JSON object, and its configuration under `config`. `failed`: errors of points."""
    found: dict[str, Any] = {"schema": SCHEMA, "ok": ok, "machine": plan.machine.name, "points": points, **failures(failed)}
    if (plan.out / REPORT).exists():
        found["report"] = str(plan.out / REPORT)
    found["config"] = configuration(plan, points)
    write_whole(plan.out / "run.json", jsonio.dumps(found) + "\n")
    return found


def configuration(plan: Plan, points: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything that determined the results: options, every value of the machine's description, kernels, versions."""
    machine = plan.machine
    edges = machine.edges()
    return {
        **plan.identity(), "versions": {"moscope": VERSION, "engine": engine_digest(), "python": platform.python_version()},
        "kernels": {p["kernel"]: p["kernel_image"] for p in points},
        "program": plan.own and {**asdict(plan.own), "place": str(Path.cwd())}, "folders": plan.folders,
        "description": {row.key: str(row.value) for row in walk(machine)},
        "chips": int(machine.chips), "cores_per_chip": int(machine.cores_per_chip),
        "core_hz": float(machine.core_clock.hertz), "hops": machine.hops(), "edges": [[e.a, e.b] for e in edges],
    }
