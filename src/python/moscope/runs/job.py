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
    folder: str  # where the point's results go; made by the process, whole or not at all
    programs: dict[str, str]
    attribution: bool = True  # who waits for which line is noted
    threads: int | None = None  # of the host, chip beside chip; None: one
    record_epochs: bool = False  # the chips run beside each other on one thread; the time of each goes into EPOCHS
    what_if: list[dict[str, Any]] | None = None  # lines that are treated otherwise (board/otherwise.hh)
    label: str = ""  # in progress and errors; the point's name if empty
    inputs: dict[str, str] | None = None  # digests (runs/inputs.py) that it is to be made from, where that matters

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
