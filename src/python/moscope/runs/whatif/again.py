# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a finished run, rebuilt from its directory so that one of its points can be measured again."""

import contextlib
from pathlib import Path
from typing import Any

from moscope.config import load_machine
from moscope.errors import UserError
from moscope.runs import directory, inputs, own_program, shape
from moscope.runs.options import Plan, Point


def plan_of(run_dir: Path) -> Plan:
    """The plan of the run in a directory. UserError if the directory lacks something that is needed."""
    options = directory.document(run_dir / directory.IDENTITY) if (run_dir / directory.IDENTITY).is_file() else None
    run = directory.document(run_dir / "run.json") if (run_dir / "run.json").is_file() else None
    if options is None or run is None or shape.fault(run):
        raise UserError(f"{run_dir}: has no readable {directory.IDENTITY} or run.json: expected a finished run")
    try:
        points = [Point(**one) for one in options["points"]]
        machine, sets, seed = options["machine"], options["set"], options["seed"]
    except (TypeError, KeyError):
        raise _other_version(run_dir) from None
    config = run.get("config") or {}
    return Plan(load_machine(machine, sets), machine, sets, seed, run_dir, points,
                programs(run_dir, {point.workload for point in points}, config.get("program"), config.get("folders") or {}))


def programs(run_dir: Path, measured: set[str], own: dict[str, Any] | None, folders: dict[str, str]) -> dict[str, Path]:
    """The files of the guest: those of the measured workloads and of the user's own program. `folders`: the folders of the user's
    own workloads, by name."""
    from moscope import workloads

    if own is None:
        found = [workloads.find(f"{folders[name]}:{name}" if name in folders else name) for name in sorted(measured)]
        return workloads.programs() | {name: path for work in found for name, path in workloads.along(work).items()}
    try:
        asked = own_program.Asked(own["text"], tuple(own["packages"]), tuple(own["variables"]), own["stdin"], own["take"])
        place = Path(own["place"])
    except (TypeError, KeyError):
        raise _other_version(run_dir) from None
    if not place.is_dir():
        raise UserError(f"{run_dir}: was started in {place}, which is gone: expected the program where it was")
    with contextlib.chdir(place):
        return {**workloads.programs(), **own_program.parse(asked, marked=False).along}


def _other_version(run_dir: Path) -> UserError:
    return UserError(f"{run_dir}: was made by another version of moscope: expected the same command again, in another --out")


def unchanged(gatherer: inputs.Gatherer, point: Point, record: dict[str, Any]) -> str:
    """Why the present inputs of a point would give other results; empty if they would not."""
    return directory.outdated({point.name: record}, {point.name: gatherer.of(point).digests()}).get(point.name, "")
