# SPDX-License-Identifier: BSD-3-Clause
"""A run from its plan to its results: measures the points that are not finished, then writes the report."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moscope import errors, paths
from moscope.cli import Shared
from moscope.errors import MoscopeError, UserError
from moscope.failures import as_error
from moscope.reports import made_by
from moscope.runs import directory, display, inputs, job, pool
from moscope.runs.options import Plan


@dataclass(frozen=True)
class Outcome:
    document: dict[str, Any]
    failed: list[MoscopeError]

    @property
    def exit_code(self) -> int:
        return errors.worst(e.exit_code for e in self.failed)


def run(plan: Plan, shared: Shared) -> Outcome:
    """Measures the missing points of the run directory, and writes `run.json` and the report. On KeyboardInterrupt,
    `run.json` is updated and a message says what is kept; then the exception continues."""
    with directory.opened(plan) as found:
        try:
            return measure(plan, shared, found)
        except KeyboardInterrupt:  # also while kernels are built or the report is written
            shared.say(f"{len(found)} of {len(plan.points)} points are finished and kept in {plan.out}; repeat the command to resume")
            raise


def measure(plan: Plan, shared: Shared, found: dict[str, dict[str, Any]],
            watch: Callable[[bool, int, int], display.Display] = display.Display) -> Outcome:
    """Measures the points that `found` lacks, adds them to `found`, and writes the report. `watch` creates the display of the
    progress."""
    # Builds kernels and protocols once here, instead of once in each process.
    gatherer = inputs.Gatherer(plan.machine, plan.programs, shared.say)
    wanted = {p.name: gatherer.of(p).digests() for p in plan.points}
    again = directory.outdated(found, wanted)
    for why in dict.fromkeys(again.values()):
        shared.say(f"measured again because {why}: {', '.join(name for name in again if again[name] == why)}")
    for name in again:
        del found[name]
    missing = [p for p in plan.points if p.name not in found]
    if found:
        shared.say(f"{plan.out}: {len(found)} of {len(plan.points)} points are already finished")
        display.say_notes(shared.say, {p.name: found[p.name] for p in plan.points if p.name in found})
    failed: list[MoscopeError] = []

    def points() -> list[dict[str, Any]]:
        return [found[p.name] for p in plan.points if p.name in found]

    if again:
        (plan.out / directory.REPORT).unlink(missing_ok=True)
        directory.write_run(plan, points(), ok=False)  # an interrupted run must not list outdated points
    try:
        with watch(shared.quiet, len(plan.points), len(found)) as shown:

            def finished(which: job.Job, point: dict[str, Any]) -> None:
                found[which.point.name] = point
                shown.finished(which, point)
                directory.write_run(plan, points(), ok=len(found) == len(plan.points))

            jobs = [job.job(plan, p, directory.point_folder(plan.out, p).absolute(), wanted[p.name]) for p in missing]
            failed = pool.run(jobs, shown.show, finished)
    except BaseException:
        # After an interruption, also adds points that a process has completed in the meantime.
        left = {p.name: point for p in missing if p.name not in found
                and (point := directory.finished(directory.point_folder(plan.out, p))) is not None}
        found.update({name: point for name, point in left.items() if name not in directory.outdated(left, wanted)})
        raise
    finally:
        document = directory.write_run(plan, points(), len(found) == len(plan.points), failed)
    try:
        if document["points"] and report(plan, shared):
            document = directory.write_run(plan, points(), document["ok"], failed)
    except Exception as error:  # noqa: BLE001  the points exist; errors of the points also count
        failed.append(as_error(error, "moscope run: the report"))
    return Outcome(document, failed)


def report(plan: Plan, shared: Shared) -> bool:
    """Writes `report.html` and figures."""
    if not (paths.root() / "analysis" / "report.py").is_file():
        return False
    shared.say("writing the report")
    try:
        made_by("analysis.report", [str(plan.out)], plan.out)
    except UserError as error:
        raise UserError(f"{error} (the results are in {plan.out}; moscope report writes their report)") from None
    return True
