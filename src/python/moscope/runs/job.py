# SPDX-License-Identifier: BSD-3-Clause
"""The job of a process that measures a point: plain data, sent as JSON to its standard input."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from moscope.runs.options import Plan, Point


@dataclass(frozen=True)
class Job:
    point: Point
    machine: str
    sets: list[str]
    seed: int
    folder: str  # where the point's results go; the process creates it, complete or not at all
    programs: dict[str, str]
    attribution: bool = True  # whether waiting is attributed to lines
    threads: int | None = None  # host threads that run chips in parallel; None: one
    record_epochs: bool = False  # each chip is a logical process, on one thread; the time of each goes into EPOCHS
    what_if: list[dict[str, Any]] | None = None  # lines that are treated differently (board/otherwise.hh)
    label: str = ""  # for progress and errors; the point's name if empty
    inputs: dict[str, str] | None = None  # digests (runs/inputs.py) that its inputs must have, if that matters

    @property
    def called(self) -> str:
        return self.label or self.point.name

    def text(self) -> str:
        return json.dumps(asdict(self))


def job(plan: Plan, point: Point, folder: Path, inputs: dict[str, str] | None = None) -> Job:
    return Job(point, plan.machine_option, plan.sets, plan.seed, str(folder), {k: str(v) for k, v in plan.programs.items()},
               threads=plan.threads, inputs=inputs)


def parse(text: str) -> Job:
    fields = json.loads(text)
    return Job(**{**fields, "point": Point(**fields["point"])})
