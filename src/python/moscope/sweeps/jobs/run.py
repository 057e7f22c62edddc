# SPDX-License-Identifier: BSD-3-Clause
"""Points that are runs of `moscope run` with one workload, one kernel and one core count."""

import math
import os
import shlex
import shutil
import sys
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moscope import paths
from moscope.aside import written_aside
from moscope.errors import UserError
from moscope.parquet import scan
from moscope.runs import checkpoints, directory, inputs, job, options, point
from moscope.runs.guest import Progress
from moscope.runs.pool import machine_bytes, wanted_bytes
from moscope.schema.constants import FS_PER_MS
from moscope.sweeps import speeds
from moscope.sweeps.jobs.base import MB, Job, Planned, Report, Say, edges_of, engine_digest, shared
from moscope.sweeps.spec import Params, Value, quoted, text
from moscope.wording import number, percent

if TYPE_CHECKING:
    import pyarrow as pa

USUAL_WINDOWS = 16
ONE = ("workload", "kernel", "cores")  # options of which `moscope run` takes several values, but a point only one
# Options that `moscope run` takes repeatedly. Here, such a parameter is one text whose words are separated as in a shell.
REPEATED = {"packages": "with", "variables": "env", "count": "count"}
FILES = ("stdin", "take", "workload", "kernel", "program")  # options that may name a file or folder


def parameter(option: str) -> str:
    """The name of the parameter for a field of `Options`, which is that of the command-line option."""
    return REPEATED.get(option, option)


class Run(Job):
    name = "run"
    options = tuple(parameter(f.name) for f in fields(options.Options))
    required = ("cores",)
    light = False
    figures_first = ("throughput_per_s",)
    figures_beside = ("stderr_per_s", "cycles.busy", "cycles.memory", "kernel_share")

    def plan(self, params: Params, say: Say) -> Planned:
        plan = plan_of(self, params)
        one = plan.points[0]
        made_from = gatherer(text(params.get("machine", "")), tuple(plan.sets), plan, say).of(one)
        identity = {"job": self.name, "engine": engine_digest(), "seed": plan.seed, "inputs": made_from.digests(), **plan.processes(),
                    "point": {k: v for k, v in plan.identity()["points"][0].items() if k != "kernel"}, "kernel": one.kernel}
        memory = wanted_bytes(job.job(plan, one, Path()), speeds.kept_bytes(kind_of(one))) // MB
        boot = machine_bytes(one.cores) // MB
        chips = -(-one.cores // int(plan.machine.cores_per_chip))  # each chip runs on at most one thread
        return Planned(identity, kind_of(one), edges_of(plan.machine), work_of(one), memory, boot, min(plan.threads or 1, chips),
                       checkpoints.key(configuration(plan, one, made_from)))

    def lacking(self, params: Params) -> list[str]:
        return inputs.lacking(plan_of(self, params, build=False).points[0])

    def rough(self, params: Params) -> tuple[str, float]:
        one = plan_of(self, params, build=False).points[0]
        return kind_of(one), work_of(one)

    def label(self, params: Params) -> str:
        one = plan_of(self, params).points[0]
        return f"{one.workload} on {one.kernel}, {number(one.cores, 'core')}"

    def run(self, params: Params, folder: Path, report: Report) -> dict[str, Any]:
        plan = plan_of(self, params)
        digests = gatherer(text(params.get("machine", "")), tuple(plan.sets), plan, to_stderr).of(plan.points[0]).digests()
        wanted = job.job(plan, plan.points[0], folder.absolute(), digests)
        result = point.measure(wanted, folder, lambda at: report(state_of(at)), to_stderr)
        result.point["engine"] = directory.engine_digest()
        directory.write_point(folder, result)
        return result.point

    def forget(self) -> None:
        _plan.cache_clear()
        _gatherers.clear()

    def words_of(self, name: str, value: Value) -> list[str]:
        if name in REPEATED.values():
            return [word for one in words(name, value) for word in (f"--{name}", one)]
        return [f"--{name}", in_any_folder(name, text(value))] if name in FILES else super().words_of(name, value)

    def figures(self, document: dict[str, Any]) -> dict[str, Value | None]:
        """The numbers of a point, those in `cycles` as cycles.busy and so on, and its texts."""
        found: dict[str, Value | None] = {}
        for key, value in document.items():
            if isinstance(value, str | int | float | bool) or value is None:
                found[key] = value
        found.update({f"cycles.{kind}": share for kind, share in document["cycles"].items()})
        found["windows"] = len(document["windows"])
        found.update({f"trend.{side}": document.get("trend", {}).get(side) for side in ("before", "after")})
        found["top_name"] = next((n["name"] for n in document["top_names"]), None)
        return {k: v for k, v in found.items() if k not in ("schema", "engine", "command", "transactions")}

    def make_boot(self, params: Params, key: str, folder: Path, report: Report) -> None:
        plan = plan_of(self, params)
        made_from = inputs.Gatherer(plan.machine, plan.programs, to_stderr).of(plan.points[0])

        def still_wanted(at: Progress) -> None:
            report(state_of(at))

        start = checkpoints.at_prompt(configuration(plan, plan.points[0], made_from), made_from.kernel, still_wanted)
        for source in (start.checkpoint.with_suffix(".console"), start.checkpoint):
            place(source, folder / f"{key}{source.suffix}")

    def take_boot(self, key: str, folder: Path) -> None:
        """Copies the boot into the cache. Older checkpoints are removed from the cache from time to time, and another host may
        have another cache."""
        target = checkpoints.folder() / f"{key}.ckpt"
        for source in (folder / f"{key}.console", folder / f"{key}.ckpt"):
            if source.exists() and not target.with_suffix(source.suffix).exists():
                place(source, target.with_suffix(source.suffix))

    def lines(self, folder: Path) -> "pa.Table | None":
        """The sums over lines with the same name and kind, as in the tables of a run."""
        import duckdb

        paths.import_analysis()
        from analysis.database import NAMES, with_classes
        from analysis.run_directory import Point

        lines = f"(SELECT *, stall + spin AS waiting FROM {with_classes(scan(folder / 'lines.parquet'))})"
        whole = Point(folder.name, {}, directory.document(folder / "stats.json") or {}).waiting_fs
        query = LINES.replace("$whole", str(max(whole, 1))).replace("$names", NAMES.replace("$by", "name, kind").replace("$lines", lines))
        found = duckdb.sql(query)
        return found.to_arrow_table() if found else None


def in_any_folder(option: str, value: str) -> str:
    """A value of one of FILES with the path from the root. A workload, kernel or program without a slash is taken for a name."""
    if option == "program":
        first, *rest = shlex.split(value)
        return shlex.join([str(Path(first).absolute()), *rest]) if "/" in first else value
    return str(Path(value).absolute()) if "/" in value or option in ("stdin", "take") else value


def kind_of(one: options.Point) -> str:
    return f"run {one.workload} with {one.cores} cores"


def work_of(one: options.Point) -> float:
    """Milliseconds in detailed mode, plus one for boot and naming, which take about as long. For a point that ends at a small
    error, the estimate is at most `USUAL_WINDOWS` windows, or two cycles of its work if these are longer: it needs ten windows,
    and a few more if they depend on each other."""
    usual = max(USUAL_WINDOWS, math.ceil(2 * (one.cycle or 0) / one.window))
    count = min(one.windows, usual) if one.until_error else one.windows
    return 1.0 + (one.warmup + count * one.window) / FS_PER_MS


def state_of(at: Progress) -> str:
    return f"{at.phase}, {percent(at.part)}" if 0 < at.part < 1 else at.phase


@lru_cache(maxsize=4096)
def _plan(chosen: tuple[Any, ...], machine: str, sets: tuple[str, ...], seed: int, build: bool) -> options.Plan:
    from moscope.cli import Shared

    return options.make(Shared(machine=machine, sets=list(sets), seed=seed, quiet=True), options.Options(**dict(chosen)), build=build)


_gatherers: dict[tuple[str, tuple[str, ...], tuple[str, ...]], inputs.Gatherer] = {}


def gatherer(machine: str, sets: tuple[str, ...], plan: options.Plan, say: Say) -> inputs.Gatherer:
    """A gatherer for each variant of the machine, because it looks up each kernel only once."""
    key = machine, sets, tuple(map(str, plan.programs.values()))
    if key not in _gatherers:
        _gatherers[key] = inputs.Gatherer(plan.machine, plan.programs, say)
    return _gatherers[key]


def plan_of(kind: Job, params: Params, build: bool = True) -> options.Plan:
    """The plan of `moscope run` for one point; UserError for an option that stands for several points. Without `build`, it lacks
    the workloads' programs."""
    chosen = shared(kind, params)
    given: dict[str, Any] = {}
    for option in fields(options.Options):
        name = parameter(option.name)
        if name not in params:
            continue
        value = params[name]
        if option.name in REPEATED:
            given[option.name] = words(name, value)
        elif "int" not in str(option.type):
            given[option.name] = text(value)
        elif isinstance(value, bool) or not isinstance(value, int):
            raise UserError(f"{name}: {quoted(value)}: expected a whole number")
        else:
            given[option.name] = value
    plan = _plan(tuple(given.items()), chosen.machine, tuple(chosen.sets), chosen.seed, build)
    if len(plan.points) != 1:
        several = next((n for n in ONE if len({getattr(p, n) for p in plan.points}) > 1), "kernel")
        raise UserError(f"{several}: {len(plan.points)} points in one: expected one value here, or an axis for several")
    return plan


def words(name: str, value: Value) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text(value)))
    except ValueError as error:
        raise UserError(f"{name}: {value}: {str(error).lower()}: expected words separated as in a shell") from None


def configuration(plan: options.Plan, one: options.Point, made_from: inputs.Inputs) -> dict[str, Any]:
    """The configuration of the boot, as in runs/point.py."""
    append = " ".join(part for part in (options.APPEND, made_from.kernel.append) if part)
    return checkpoints.configuration(made_from, append, one.cores, plan.seed)


def place(source: Path, target: Path) -> None:
    """Makes a file available under another name: as a link if possible, otherwise as a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with written_aside(target) as partial:
        partial.unlink(missing_ok=True)  # left by a killed process that had the same number
        try:
            os.link(source, partial)
        except OSError:
            shutil.copyfile(source, partial)


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


LINES = """
SELECT name, kind, lines, class, stall::DOUBLE / 1e9 AS stall_us, spin::DOUBLE / 1e9 AS spin_us, transfers,
       waiting::DOUBLE / $whole::DOUBLE AS wait_share
FROM ($names) ORDER BY wait_share DESC, name, kind
"""

JOB = Run()
