# SPDX-License-Identifier: BSD-3-Clause
"""The speed of detailed mode on this host, relative to gem5's TimingSimpleCPU with the same protocol on the same machine. Both run
the same static program for the same window of simulated time, one after the other. For moscope, instructions are those of user code
and kernel in the guest; for gem5, those of the program. Both are divided by the host's processor seconds for the window alone,
without start and warm-up, so that other work on the host does not count.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from moscope.bench.point import measured
from moscope.cli import Shared
from moscope.gem5 import binary, points, programs
from moscope.runs import job, options
from moscope.schema.constants import FS_PER_MS

SCHEMA = "moscope.bench.gem5/1"
# The goal that the project has set itself.
LEAST_RATIO = 60.0


def run(shared: Shared, given: options.Options, path: Path | None) -> dict[str, Any]:
    """moscope.bench.gem5/1."""
    options.one_point("bench gem5", given)
    plan = points.plan_of(shared, given)
    gem5 = binary.require(binary.find(path), str(plan.machine.protocol), x86=True)
    with tempfile.TemporaryDirectory(prefix="moscope-") as place:
        load = os.getloadavg()[0]
        ours = measured(shared, job.job(plan, plan.points[0], Path(place) / "moscope"), "on moscope")
        shared.say(f"{plan.points[0].name}: on gem5")
        theirs = programs.measure(gem5, plan, plan.points[0], Path(place) / "gem5")
    return document(plan.machine.name, gem5.version, ours, theirs, [load, os.getloadavg()[0]])


def side(point: dict[str, Any]) -> dict[str, float]:
    """The figures of the window. Points of moscope have them in `windows`; the point's own `host_s` includes the boot."""
    window = point["windows"][0] if "windows" in point else point
    return {"mips": window["instructions"] / window["host_cpu_s"] / 1e6, "instructions": window["instructions"], "host_s": window["host_s"],
            "host_cpu_s": window["host_cpu_s"], "simulated_ms": window["ticks"] / FS_PER_MS, "busy": 1 - window["cycles"]["idle"]}


def document(machine: str, version: str, ours: dict[str, Any], theirs: dict[str, Any], load: list[float]) -> dict[str, Any]:
    here, there = side(ours), side(theirs)
    if not there["mips"]:
        raise binary.Gem5Died(f"{theirs['workload']}: executed no instruction in the window")
    ratio = here["mips"] / there["mips"]
    return {"schema": SCHEMA, "ok": ratio >= LEAST_RATIO, "machine": machine, "workload": ours["workload"], "cores": ours["cores"],
            "engine": f"gem5 {version}", "ratio": ratio, "moscope": here, "gem5": there, "load": load, "bars": {"ratio": LEAST_RATIO}}
