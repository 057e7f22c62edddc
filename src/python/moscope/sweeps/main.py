# SPDX-License-Identifier: BSD-3-Clause
"""A sweep from its description to its tables and report: `run(spec, out)` for the command and for Python.

A start runs the points that are missing. Points that earlier starts have finished in the same folder stay valid as long as
their inputs have not changed. Only one process at a time works on a folder.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import IO, Any

from moscope import errors, jsonio, locks
from moscope.aside import write_whole
from moscope.cli import MOST_JOBS
from moscope.errors import MoscopeError, SimulatorBug, UserError
from moscope.failures import killed
from moscope.sweeps import jobs, report, results, snakemake, speeds, worker, workflow
from moscope.sweeps import points as planning
from moscope.sweeps.points import Point
from moscope.sweeps.spec import Spec
from moscope.sweeps.store import Store
from moscope.wording import number

SCHEMA = "moscope.sweep/1"
DEFAULT_OUT = Path("moscope-out/sweep")
Say = Callable[[str], None]
Then = Callable[["Outcome"], None]
Progress = Callable[[int, int, list[str]], None]  # finished points, all points, and the states of running ones


@dataclass(frozen=True)
class Outcome:
    """`document` is moscope.sweep/1; `failed` has a failure (error, command) for each failed point. `wrong`: an error in the
    requested figure that only a finished point could show."""

    document: dict[str, Any]
    failed: list[dict[str, Any]] = field(default_factory=list)
    wrong: UserError | None = None

    @property
    def exit_code(self) -> int:
        codes = {int(f["exit_code"]) for f in (*self.failed, *self.document.get("findings", []))}
        if self.wrong and not codes:  # of points, which matter more than a figure
            return self.wrong.exit_code
        return errors.worst(codes)


def nothing(*_: Any) -> None:
    pass


def run(spec: Spec, out: Path | None = None, *, executor: str = snakemake.LOCAL, at_once: int | None = None, dry_run: bool = False,
        plot: str | None = None, say: Say = nothing, progress: Progress = nothing, then: Then = nothing) -> Outcome:
    """Runs the missing points of a sweep and writes `table.parquet`, `lines.parquet` and the report into `out` (by default
    moscope-out/sweep/NAME). `at_once`: processes here, or jobs on the cluster. UserError before the first point for any mistake in
    the sweep; a point that fails is part of the outcome. On KeyboardInterrupt, what is finished is kept. `then` is called with the
    outcome while this sweep still has exclusive use of the folder."""
    snakemake.check_executor(executor)
    jobs.look_again()
    at_once = len(os.sched_getaffinity(0)) if at_once is None else at_once
    if not 1 <= at_once <= MOST_JOBS:
        raise UserError(f"--jobs: {at_once}: expected 1 to {MOST_JOBS}")
    store = Store((out or DEFAULT_OUT / spec.name).absolute())
    store.check()
    if dry_run and (wanted := planning.unbuilt(spec)):
        rough = speeds.estimate_sweep(spec.job, filter(None, wanted.points), 1)
        unknown = replace(rough, unknown=rough.unknown + wanted.points.count(None))
        count = len(wanted.points)
        say(f"{number(count, 'point')}{time_text(unknown, count, at_once)}; built first: {', '.join(wanted.lacking)}")
        return Outcome({**document([], store), "points": count, **estimated(unknown, count, at_once), "built_first": wanted.lacking})
    found = planning.plan(spec, say)
    if plot:
        report.check_expression(plot, spec)
        if known := results.figures(spec, found, store):
            report.check_figure(plot, known)
    missing = unfinished(found, store)
    boots = boots_of(missing, store)
    time = speeds.estimate_sweep(spec.job, work_of(missing), boots)
    say(summary(found, missing, time, at_once))
    if dry_run:
        return Outcome(document(found, store, estimated(time, len(missing), at_once)))
    store.open()
    with alone(store, say) as lock:
        started = monotonic()
        missing = unfinished(found, store)  # another start may have finished some meanwhile
        boots = boots_of(missing, store)
        outcome = _run(spec, found, store, executor, at_once, plot, say, progress, lock)
        if missing and not outcome.failed and executor == snakemake.LOCAL:
            of_points = sum((store.result(p.digest) or {}).get("seconds", 0.0) for p in missing) / min(at_once, len(missing))
            speeds.record_besides(spec.job, 1 + boots, max(0.0, monotonic() - started - of_points))
        then(outcome)
        return outcome


def _run(spec: Spec, found: list[Point], store: Store, executor: str, at_once: int, plot: str | None, say: Say, progress: Progress,
         lock: IO[str]) -> Outcome:
    missing = unfinished(found, store)
    if left := sum(store.done(digest) for digest in store.listed() - {p.digest for p in found}):
        say(f"{store.root}: {number(left, 'finished point')} from an earlier start {'does' if left == 1 else 'do'} not belong to this "
            "sweep (another sweep, other values, or inputs that have changed): table and report are replaced, the points are kept")
    store.forget_failures()
    config = workflow.write(store, spec.job, found, at_once)
    write_whole(store.root / "sweep.json", jsonio.dumps({**document(found, store), "config": configuration(spec)}) + "\n")
    if missing:
        begun = snakemake.log_size(store.root)
        words = snakemake.arguments(store.root, executor, at_once, memory_mb(missing))
        try:
            code = snakemake.run(store.root, words, say, lambda: progress(*counts(found, store), store.states()), lock.fileno())
        finally:
            made = [(p, result) for p in missing if (result := store.result(p.digest))]
            speeds.record(made)
            if len(made) < len(missing):
                say(f"{len(found) - len(missing) + len(made)} of {number(len(found), 'point')} are finished and kept in {store.root}; "
                    "repeat the command to resume")
        lost = lost_points(config, snakemake.killed(store.root, begun))
        stopped: MoscopeError | None = killed("Snakemake", code)
        if refused := snakemake.refusal(store.root, begun):
            stopped = UserError(f"--executor slurm: the cluster rejected the job: {refused}: expected resources that one of its nodes has")
        elif code != 0 and not lost and not made and not any(store.failure(p.digest) for p in missing):
            raise stopped or SimulatorBug(f"Snakemake ended with {code}:\n{snakemake.last_words(store.root)}")
        failed = [failure(p, spec, store, lost.get(p.digest) or stopped) for p in unfinished(found, store)]
        store.clean()
    else:
        failed = []
    results.write(spec, found, store)
    if (versions := len({str(result.get("code")) for p in found if (result := store.result(p.digest))})) > 1:
        say(f"the points are of {versions} versions of moscope's Python code, which names lines and computes errors; to measure all with "
            "one version, use a new --out")
    page, wrong = store.root / report.PAGE, None
    whole = {**document(found, store), "failed": failed, **findings(found, spec, store)}
    write_whole(store.root / "sweep.json", jsonio.dumps({**whole, "config": configuration(spec)}) + "\n")  # for the report
    page.unlink(missing_ok=True)  # of an earlier start
    try:
        whole |= report.write(store.root, plot, say)
    except UserError as error:
        if not page.exists():  # which the results name
            raise UserError(f"{error} (the points are kept in {store.root}; the same command writes the report)") from None
        wrong = error
    write_whole(store.root / "sweep.json", jsonio.dumps({**whole, "config": configuration(spec)}) + "\n")
    return Outcome(whole, failed, wrong)


def findings(points: list[Point], spec: Spec, store: Store) -> dict[str, Any]:
    """The faults that checks have found, with the commands that find them again; nothing if there are none."""
    job = jobs.find(spec.job)
    found = [{"digest": p.digest, "params": p.params, "finding": result["finding"], "exit_code": result.get("exit_code", errors.FOUND),
              "command": planning.command(job, p.params)}
             for p in {p.digest: p for p in points}.values() if "finding" in (result := store.result(p.digest) or {})]
    return {"findings": found} if found else {}


def lost_points(config: dict[str, Any], ends: dict[str, int]) -> dict[str, UserError]:
    """The errors of points whose process a signal from outside has ended. `ends`: of processes, by point, batch or boot."""
    found: dict[str, UserError] = {}
    for name, code in ends.items():
        if error := killed("its process", code):
            of_boot = [digest for digest, p in config["points"].items() if p["boot"] == name]
            found |= dict.fromkeys([*config["batches"].get(name, []), *of_boot] or [name], error)
    return found


def failure(point: Point, spec: Spec, store: Store, lost: MoscopeError | None = None) -> dict[str, Any]:
    """The worker's report of a failed point. If the worker ended without one, a report with `lost` as the reason, if that is known."""
    if said := store.failure(point.digest):
        return said
    unknown = SimulatorBug(f"its process ended without a result; {store.root / snakemake.LOG} may give the reason")
    document = worker.failure(point.digest, spec.job, point.params, lost or unknown)
    store.fail(point.digest, document)
    return document


def counts(points: list[Point], store: Store) -> tuple[int, int]:
    return sum(store.done(p.digest) for p in points), len(points)


def unfinished(points: list[Point], store: Store) -> list[Point]:
    """One point for each result that is missing."""
    return [p for p in {p.digest: p for p in points}.values() if not store.done(p.digest)]


def boots_of(points: list[Point], store: Store) -> int:
    """How many guests have to be booted for these points."""
    return sum(not store.boot(key).exists() for key in {p.planned.boot for p in points if p.planned.boot})


def summary(points: list[Point], missing: list[Point], time: speeds.Estimate, at_once: int) -> str:
    text = number(len(points), "point")
    if len(missing) < len(points):
        distinct = len({p.digest for p in points})
        text += f", {distinct - len(missing)} finished already" if distinct > len(missing) else ""
        text += f", {len(points) - distinct} with the same inputs as another" if distinct < len(points) else ""
    return text + (time_text(time, len(missing), at_once) if missing else "")


def time_text(found: speeds.Estimate, points: int, at_once: int) -> str:
    if found.unknown == points:
        return "; time unknown, because no such point has run on this host"
    text = f"; about {speeds.duration(found.with_jobs(min(at_once, points)))} with {number(at_once, 'job')} at once"
    text += f" ({number(found.elsewhere, 'point')} by times measured on another host)" if found.elsewhere else ""
    return text + (f" (without {number(found.unknown, 'point')} of unknown speed)" if found.unknown else "")


def estimated(found: speeds.Estimate, points: int, at_once: int) -> dict[str, Any]:
    return {"estimated_s": seconds_of(found, points, at_once), "estimated_elsewhere": found.elsewhere, "estimated_unknown": found.unknown}


def seconds_of(found: speeds.Estimate, points: int, at_once: int) -> float | None:
    if not points:
        return 0.0
    return None if found.unknown == points else round(found.with_jobs(min(at_once, points)), 1)


def work_of(points: list[Point]) -> list[tuple[str, float]]:
    return [(p.planned.kind, p.planned.work) for p in points]


def document(points: list[Point], store: Store, more: dict[str, Any] | None = None) -> dict[str, Any]:
    done = sum(store.done(p.digest) for p in points)
    return {"schema": SCHEMA, "points": len(points), "done": done, "failed": [], "table": str(store.root / results.TABLE),
            "report": str(store.root / report.PAGE), **(more or {})}


def configuration(spec: Spec) -> dict[str, Any]:
    return {"job": spec.job, "fixed": spec.fixed, "axes": spec.axes, "zip": spec.zips, "exclude": spec.exclude, "name": spec.name,
            "figures": list(jobs.find(spec.job).figures_first), "beside": list(jobs.find(spec.job).figures_beside)}


def memory_mb(points: list[Point]) -> int:
    """Host memory for all points together: the available memory, but at least as much as the largest point needs."""
    from moscope.runs.pool import available_bytes

    return max(available_bytes() >> 20, *(p.planned.memory_mb for p in points), 1000)


@contextmanager
def alone(store: Store, say: Say) -> Iterator[IO[str]]:
    """Waits until no other start works in this folder. The Snakemake process of a killed start also counts."""
    with (store.root / ".lock").open("w") as handle:
        if not locks.take(handle, wait=False):
            say(f"waiting: another sweep works in {store.root}")
            locks.take(handle)
        yield handle
