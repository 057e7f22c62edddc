# SPDX-License-Identifier: BSD-3-Clause
"""Workloads of `moscope run` on gem5 without a kernel: the same static programs in gem5's syscall emulation, every core a
TimingSimpleCPU. One window per point, from the region of interest on."""

import json
import re
from pathlib import Path
from typing import Any

from moscope import buildproto, config
from moscope.errors import WorkloadFailed
from moscope.gem5 import binary, figures, job, trace
from moscope.run.options import Plan, Point

# Workloads made of threads alone.
THREADED = {"chase", "counter", "falseshare", "ticketlock"}
FAILED = re.compile(r"verify=wrong")


def measure(gem5: binary.Gem5, plan: Plan, point: Point, folder: Path) -> dict[str, Any]:
    """One point, in `folder`: gem5's own output and statistics, and the point."""
    machine = config.with_cores(plan.machine, point.cores) if point.cores != plan.machine.cores else plan.machine
    built = buildproto.ensure_protocol(str(machine.protocol))
    interface = json.loads(built.interface.read_text(encoding="utf-8"))
    program = plan.programs[f"workloads/{point.family}"]
    command = [str(program), *point.command.split()[1:]]
    path = job.write_job(folder, config.elaborate(machine, interface), interface, program=command, cwd=str(folder),
                         warmup_fs=point.warmup, window_fs=point.window)
    ending, host_s = binary.run(gem5, "run_program.py", [str(path)], folder).ending()
    printed = folder / "program.txt"
    if FAILED.search(printed.read_text(encoding="utf-8", errors="replace") if printed.exists() else ""):
        raise WorkloadFailed(f"{point.workload}: found its results wrong on gem5: {printed}")
    stats = trace.statistics((folder / "stats.txt").read_text(encoding="utf-8"))
    seen = figures.window(stats, point.cores, host_s)
    return figures.document(point, seen, float(machine.core_clock.period), None, " ".join(command))
