# SPDX-License-Identifier: BSD-3-Clause
"""Runs the experiments of `moscope what-if` and makes its document."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moscope import jsonio, paths
from moscope.aside import write_whole
from moscope.cli import Shared
from moscope.errors import MoscopeError, UserError, failures, unknown_name
from moscope.runs import directory, display, inputs, job, pool
from moscope.runs.whatif import again, gain

if TYPE_CHECKING:
    from analysis.run_directory import Point, Run
    from analysis.whatif.lines import Subject

SCHEMA = "moscope.whatif/1"
FOLDER = "what-if"
MOST_OF_A_NAME, DIGITS = 100, 8  # for the name of a folder: characters of the name of lines, and digits of the digest


@dataclass(frozen=True)
class Asked:
    run_dir: Path
    name: str | None
    how: str | None
    all_names: int | None
    point: str | None


@dataclass(frozen=True)
class Experiment:
    subject: "Subject"
    how: str
    lines: list[dict[str, Any]]

    @property
    def slug(self) -> str:
        """The name of its folder: NAME-AS, or NAME-AS-DIGEST if NAME omits or replaces characters of the lines' name."""
        name = self.subject.name
        kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)[:MOST_OF_A_NAME]
        digest = "" if kept == name else f"-{hashlib.sha256(name.encode()).hexdigest()[:DIGITS]}"
        return f"{kept}-{self.how}{digest}"

    @property
    def groups(self) -> int:
        """The number of lines into which the chosen lines are divided."""
        return sum(max(one["groups"]) + 1 if "groups" in one else 1 for one in self.lines)


def run(asked: Asked, shared: Shared) -> tuple[dict[str, Any], list[MoscopeError]]:
    """The document, and the errors of experiments that failed."""
    paths.import_analysis()
    found, chosen = _point(asked)
    experiments = _experiments(asked, chosen)
    plan = again.plan_of(asked.run_dir)
    wanted = next((p for p in plan.points if p.name == chosen.name), None)
    if wanted is None:
        raise UserError(f"{asked.run_dir}: {chosen.name} is not in {directory.IDENTITY}: expected a point that this run has measured")
    gatherer = inputs.Gatherer(plan.machine, plan.programs, shared.say)
    if why := again.unchanged(gatherer, wanted, chosen.record):
        raise UserError(f"{asked.run_dir}: {chosen.name} would not be the same now ({why}): expected `moscope run` again, in this folder")
    out = shared.out or asked.run_dir / FOLDER
    if out.exists() and not out.is_dir():
        raise UserError(f"{out}: is a file: expected a folder")
    digests = gatherer.of(wanted).digests()
    same = replace(wanted, windows=len(chosen.record["windows"]), until_error=None)  # the windows that the run has measured
    jobs = {e.slug: replace(job.job(plan, same, (out / chosen.name / e.slug).absolute(), digests), threads=None, what_if=e.lines,
                            label=f"{e.subject.name} {e.how}") for e in experiments}
    measured, failed = _measure(jobs, shared)
    results = [_result(chosen.record, e, measured[e.slug], out / chosen.name / e.slug) for e in experiments if e.slug in measured]
    results.sort(key=_rank)
    document = {"schema": SCHEMA, "ok": not failed, "run": str(found.path), "point": chosen.name,
                "measure": gain.measure_of(chosen.record), "base": gain.rate(chosen.record, gain.measure_of(chosen.record)).document(),
                "results": results, **failures(failed)}
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{chosen.name}.json"
    every = sorted([*results, *_earlier(file, document)], key=_rank)
    write_whole(file, jsonio.dumps({**document, "results": every}) + "\n")
    return document, failed


def _rank(result: dict[str, Any]) -> float:
    """The largest gain first."""
    return -(result["gain"] if result["gain"] is not None else -1.0)


def _earlier(file: Path, now: dict[str, Any]) -> list[dict[str, Any]]:
    """Results of earlier commands for the same windows, if their folders are still there; not of experiments that `now` repeats."""
    before = directory.document(file) if file.is_file() else None
    if before is None or any(before.get(key) != now[key] for key in ("schema", "measure", "base")):
        return []
    repeated = {(one["name"], one["as"]) for one in now["results"]}
    try:
        kept = [{**one, "folder": str(file.with_suffix("") / Path(one["folder"]).name)} for one in before["results"]
                if (one["name"], one["as"]) not in repeated]
        kept.sort(key=_rank)
    except (TypeError, KeyError):
        return []  # a user has changed the file
    return [one for one in kept if Path(one["folder"]).is_dir()]


def _point(asked: Asked) -> tuple["Run", "Point"]:
    from analysis import RunDirectoryError, load
    from analysis.page.document import default_point
    from analysis.run_directory import is_point, is_sweep

    for what, holds in (("a sweep", is_sweep), ("one point", is_point)):
        if holds(asked.run_dir):
            raise UserError(f"{asked.run_dir}: holds {what}: expected the folder that `moscope run --out` wrote")
    try:
        found = load(asked.run_dir)
    except RunDirectoryError as error:
        raise UserError(str(error)) from None
    if not found.points:
        raise UserError(f"{asked.run_dir}: has no finished point: expected a run that has one")
    chosen = next((p for p in found.points if p.name == asked.point), None) if asked.point else default_point(found)
    if chosen is None:
        raise unknown_name("--point", "point", str(asked.point), [p.name for p in found.points])
    return found, chosen


def _experiments(asked: Asked, point: "Point") -> list[Experiment]:
    from analysis.whatif import lines

    if (asked.name is None) == (asked.all_names is None):
        raise UserError(f"--line, --all: {'neither is' if asked.name is None else 'both are'} given: expected one of the two")
    if asked.how is not None and asked.how not in lines.HOWS:
        raise unknown_name("--as", "treatment", asked.how, lines.HOWS)
    if asked.name is not None:
        subject = lines.find(point, asked.name)
        if subject is None:
            known = lines.subjects(point)
            parts = {name for one in known for name in one.names}
            raise unknown_name("--line", "name", asked.name, parts, first=(one.name for one in known))
        chosen, how = [subject], asked.how or lines.PADDED
        if subject.fields and how != lines.PADDED:
            raise UserError(f"--as: {how}: {asked.name} is a field of {', '.join(subject.names[:3])}, and lines are treated as a whole: "
                            "expected padded, or the name of the line")
    else:
        chosen, how = lines.subjects(point)[:asked.all_names], asked.how or lines.FREE
    made = [Experiment(one, how, lines.treated(point, one, how)) for one in chosen]
    if asked.name is not None and not made[0].lines:
        raise UserError(f"--as: {how}: no controller sent a line of {asked.name} over the network: expected another treatment")
    return [one for one in made if one.lines]


def _measure(jobs: dict[str, job.Job], shared: Shared) -> tuple[dict[str, dict[str, Any]], list[MoscopeError]]:
    measured: dict[str, dict[str, Any]] = {}
    of = {one.folder: slug for slug, one in jobs.items()}
    with display.Display(shared.quiet, len(jobs), 0) as shown:

        def finished(which: job.Job, point: dict[str, Any]) -> None:
            measured[of[which.folder]] = point
            shown.finished(which, point)

        failed = pool.run(list(jobs.values()), shown.show, finished)
    return measured, failed


def _result(base: dict[str, Any], e: Experiment, point: dict[str, Any], folder: Path) -> dict[str, Any]:
    measure = gain.measure_of(base)
    before, after = gain.rate(base, measure), gain.rate(point, measure)
    found = gain.gain(before, after)
    return {"name": e.subject.name, "as": e.how, "lines": len(e.lines), "becomes": e.groups, "waiting": e.subject.waiting,
            "rate": after.document(), "gain": found and found.value, "gain_stderr": found and found.error, "folder": str(folder)}
