# SPDX-License-Identifier: BSD-3-Clause
"""Workloads of `moscope run` on gem5 without a kernel: the same static programs in gem5's syscall emulation, every core a
TimingSimpleCPU. Each point has one window, which starts at the region of interest. The machine is complete, as with a kernel; its
first cores are in use."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

from moscope import buildproto, config, workloads
from moscope.errors import WorkloadFailed
from moscope.gem5 import binary, figures, job
from moscope.runs.options import Plan, Point

FAILED = re.compile(r"verify=wrong")


def threaded() -> set[str]:
    """The families whose programs use only threads, no processes."""
    return {w.family for w in workloads.every() if not w.processes}


def measure(gem5: binary.Gem5, plan: Plan, point: Point, folder: Path) -> dict[str, Any]:
    """Measures one point. `folder` gets gem5's own output and statistics, and the point."""
    machine = plan.machine
    built = buildproto.ensure_protocol(str(machine.protocol))
    interface = json.loads(built.interface.read_text(encoding="utf-8"))
    program = plan.programs[f"workloads/{point.family}"]
    command = [str(program), *shlex.split(point.command)[1:]]
    path = job.write_job(folder, config.elaborate(machine, interface), interface, program=command, cwd=str(folder),
                         cores=point.cores, warmup_fs=point.warmup, window_fs=point.window)
    ran = binary.run(gem5, "run_program.py", [str(path)], folder)
    ending, _ = ran.ending()
    printed = (folder / "program.txt").read_text(encoding="utf-8", errors="replace") if (folder / "program.txt").exists() else ""
    if FAILED.search(printed):
        raise WorkloadFailed(f"{point.workload}: its results are wrong on gem5: see points/{folder.name}/program.txt of the run")
    if not ran.says(figures.WINDOW_BEGINS):
        raise WorkloadFailed(f"{point.workload}: ended before its window on gem5: {ending}\n{printed}")
    return figures.document(point, figures.window(folder, point.cores, ran), float(machine.core_clock.period), None, " ".join(command))
