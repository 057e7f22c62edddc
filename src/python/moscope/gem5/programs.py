# SPDX-License-Identifier: BSD-3-Clause
"""Workloads of `moscope run` on gem5: the same static programs in gem5's syscall emulation, without a kernel, every
core a TimingSimpleCPU. One window per point, from the region of interest on.

gem5's cores tell instructions and idle time. A TimingSimpleCPU issues an instruction per cycle and waits for memory
otherwise, so what is neither issue nor idle is memory stall. It keeps no account by line or by kernel and user."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from moscope import buildproto, config, jsonio
from moscope.cli import Shared
from moscope.errors import MoscopeError, UserError, WorkloadFailed
from moscope.gem5 import binary, job, trace
from moscope.run import directory, options
from moscope.run.main import Outcome
from moscope.run.options import Options, Plan, Point

FS_PER_MS = 10**12
FS_PER_S = 10**15
KERNEL = "none (gem5's syscall emulation)"
INSTRUCTIONS = re.compile(r"^system\.cpu\d*\.(?:commitStats0\.numInsts|numInsts|committedInsts)$")
BUSY_PART = re.compile(r"^system\.cpu\d*\.exec_context\.thread_0\.notIdleFraction$")
OPERATIONS = "system.work_item_type1::samples"
# Workloads made of threads alone.
THREADED = {"chase", "counter", "falseshare", "ticketlock"}
FAILED = re.compile(r"verify=wrong")


@dataclass(frozen=True)
class Window:
    """Added up over cores; times in femtoseconds."""

    instructions: int
    operations: int
    ticks: int
    not_idle: float  # of all cores' time
    host_s: float


def window(stats: dict[str, float], cores: int, host_s: float) -> Window:
    """What the statistics of the window say."""
    instructions = sum(value for name, value in stats.items() if INSTRUCTIONS.match(name))
    parts = [value for name, value in stats.items() if BUSY_PART.match(name)]
    return Window(int(instructions), int(stats.get(OPERATIONS, 0)), int(stats["simTicks"]), sum(parts) / cores, host_s)


def document(point: Point, seen: Window, cycle_fs: float, command: str) -> dict[str, Any]:
    """POINT of the contracts."""
    time = seen.ticks * point.cores
    busy = min(seen.instructions * cycle_fs / time, seen.not_idle)
    cycles = {"busy": busy, "idle": 1 - seen.not_idle, "core": 0.0, "memory": seen.not_idle - busy}
    per_op = seen.not_idle * time / 10**9 / seen.operations if seen.operations else None
    return {
        "workload": point.workload, "operation": point.operation, "kernel": KERNEL, "cores": point.cores,
        "window_ms": seen.ticks / FS_PER_MS, "ops": seen.operations, "ticks": seen.ticks,
        "throughput_per_s": seen.operations * FS_PER_S / seen.ticks, "stderr_per_s": None, "kernel_share": 0.0,
        "user_us_per_op": per_op, "system_us_per_op": None if per_op is None else 0.0, "cycles": cycles, "spin_cycles": None,
        "bottleneck": "gem5 keeps no account of stalls by line", "top_lines": [], "instructions": seen.instructions,
        "host_s": seen.host_s, "host_s_per_ms": seen.host_s * FS_PER_MS / seen.ticks, "warmup_ms": point.warmup / FS_PER_MS,
        "command": command,
    }


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
    return document(point, window(stats, point.cores, host_s), float(machine.core_clock.period), " ".join(command))


def plan_of(shared: Shared, chosen: Options) -> Plan:
    """The points that are asked for; a UserError for what gem5 cannot do."""
    if chosen.kernel is not None:
        raise UserError(f"--kernel {chosen.kernel}: programs run without a kernel on gem5: no --kernel")
    if chosen.windows not in (None, 1) or chosen.detail != "table":
        raise UserError("--engine gem5: there is one window, and no record of transactions: --windows 1 and --detail table")
    # The kernel is named only to have one point where a workload has several.
    plan = options.make(shared, replace(chosen, kernel="distro", windows=1))
    processes = sorted({p.family for p in plan.points if p.family not in THREADED})
    if processes:
        raise UserError(f"--workload: {', '.join(processes)}: gem5's syscall emulation has threads and no processes: one of "
                        f"{', '.join(sorted(THREADED))}")
    return plan


def run(shared: Shared, chosen: Options, path: Path | None) -> Outcome:
    """The plan's points one after the other; `run.json` and a folder for each, as of any run, but no report."""
    plan = plan_of(shared, chosen)
    gem5 = binary.require(binary.find(path), str(plan.machine.protocol), x86=True)
    jsonio.check_replaceable(plan.out)
    points: list[dict[str, Any]] = []
    failed: list[MoscopeError] = []
    with jsonio.atomic_dir(plan.out) as folder:
        for point in plan.points:
            shared.say(f"{point.workload} on {point.cores} cores, on gem5")
            name = f"{point.workload}-gem5-{point.cores}"
            try:
                points.append(measure(gem5, plan, point, (folder / "points" / name).resolve()))
            except WorkloadFailed as error:
                failed.append(error)
                continue
            (folder / "points" / name / "point.json").write_text(jsonio.dumps(points[-1]) + "\n", encoding="utf-8")
        document = {"schema": directory.SCHEMA, "ok": not failed, "machine": plan.machine.name, "engine": f"gem5 {gem5.version}",
                    "points": points}
        (folder / "run.json").write_text(jsonio.dumps(document) + "\n", encoding="utf-8")
    return Outcome(document, failed)


def show(document: dict[str, Any]) -> None:
    """For people."""
    print(f"{document['machine']} on {document['engine']}, syscall emulation")
    for p in document["points"]:
        speed = p["instructions"] / p["host_s"] / 10**6 if p["host_s"] else 0.0
        cycles = ", ".join(f"{name} {share:.0%}" for name, share in p["cycles"].items())
        print(f"{p['workload']} on {p['cores']} cores: {p['throughput_per_s']:,.0f} {p['operation']} per second in {p['window_ms']:g} ms; "
              f"{cycles}; {p['instructions']:,} instructions in {p['host_s']:.1f} s of the host, {speed:.3f} million per second")
