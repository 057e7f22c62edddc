# SPDX-License-Identifier: BSD-3-Clause
"""The points of a sweep: checked parameters, with a digest of everything that determines the result."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from moscope import paths
from moscope._version import VERSION
from moscope.errors import UserError, unknown_name
from moscope.sweeps import axes, jobs
from moscope.sweeps.jobs.base import COMMON_ELSEWHERE, SHARED, Job, Planned, Say
from moscope.sweeps.spec import Params, Spec, text
from moscope.wording import command_line


@dataclass(frozen=True)
class Point:
    """A point of a sweep. `digest` names its folder; points with equal digests share a result."""

    params: Params
    planned: Planned

    @property
    def digest(self) -> str:
        return self.planned.digest

    def document(self) -> dict[str, Any]:
        """The JSON object that the worker reads."""
        return {"digest": self.digest, "params": self.params, "kind": self.planned.kind, "work": self.planned.work,
                "memory_mb": self.planned.memory_mb, "threads": self.planned.threads, "boot": self.planned.boot,
                "edges": self.planned.edges}


def plan(spec: Spec, say: Say) -> list[Point]:
    """All points, checked before any of them runs."""
    job = jobs.find(spec.job, f"{spec.where}: job")
    check_names(spec, job)
    found = []
    for params in axes.points(spec):
        with placed(spec, params):
            found.append(Point(params, with_version(job.plan(params, say))))
    return found


@contextmanager
def placed(spec: Spec, params: Params) -> Iterator[None]:
    """Puts the file and the point before an error."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{spec.where}: {shown(spec, params)}{error}") from None


@dataclass(frozen=True)
class Unbuilt:
    """A sweep whose points cannot be planned yet. `points`: kind and work of each, if known. `lacking`: what has to be built
    first, in words."""

    points: list[tuple[str, float] | None]
    lacking: list[str]


def unbuilt(spec: Spec) -> Unbuilt | None:
    """The sweep, if something has to be built before its points can be planned."""
    job = jobs.find(spec.job, f"{spec.where}: job")
    check_names(spec, job)
    found = axes.points(spec)
    lacking: dict[str, None] = {}
    for params in found:
        with placed(spec, params):
            lacking |= dict.fromkeys(job.lacking(params))
    return Unbuilt([job.rough(params) for params in found], list(lacking)) if lacking else None


def with_version(planned: Planned) -> Planned:
    return replace(planned, identity={**planned.identity, "moscope": VERSION})


def shown(spec: Spec, params: Params) -> str:
    """The axes' values of a point, for the beginning of an error."""
    return "".join(f"{name}={text(params[name])}, " for name in spec.axes)[:-2] + ": " if spec.axes else ""


def check_names(spec: Spec, job: Job) -> None:
    """Raises UserError for a parameter that belongs neither to the job nor to the machine, and for one that is missing."""
    from moscope.cli import DEFAULT_MACHINE
    from moscope.config import load_machine
    from moscope.config.keys import OPEN, known_keys

    machines = spec.axes.get("machine", [spec.fixed.get("machine", DEFAULT_MACHINE)])
    keys = known_keys(load_machine(text(machines[0])))
    known = [*job.options, *SHARED, *keys]
    every = f"the options of {job.name}, machine, seed and the keys of --set"
    for name in spec.names():
        if name in (*job.elsewhere, *COMMON_ELSEWHERE):
            raise UserError(f"{spec.where}: {name}: is an option that cannot be a parameter: expected one of {every} (docs/sweeps.md)")
        if name not in known and not name.startswith(tuple(f"{o}." for o in OPEN)):
            raise unknown_name(spec.where, "parameter", name, known, every)
    for name in job.required:
        if name not in spec.names():
            raise UserError(f"{spec.where}: no {name}: expected a value, which the job {job.name} needs")


def command(job: Job, params: Params) -> str:
    """The command that repeats a point by itself, in the current folder."""
    return command_line([paths.launcher(), *job.command(params)])
