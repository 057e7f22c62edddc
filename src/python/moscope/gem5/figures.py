# SPDX-License-Identifier: BSD-3-Clause
"""From gem5's statistics of a window to a point of `moscope run`.

gem5's cores count instructions and idle time. A TimingSimpleCPU issues one instruction per cycle and otherwise waits
for memory, so all time that is neither issue nor idle is memory stall. gem5 does not attribute time to lines, or to
kernel and user."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope.gem5 import trace
from moscope.gem5.binary import Ran
from moscope.runs.options import Point
from moscope.runs.point_name import NO_KERNEL
from moscope.schema.constants import FS_PER_MS, FS_PER_S, FS_PER_US
from moscope.schema.enumerations import TIME_KIND

# Messages of the scripts when they reach these points.
REGION_BEGINS, WINDOW_BEGINS = "region: begins", "region: window begins"
INSTRUCTIONS = re.compile(r"^system\.cpu\d*\.(?:commitStats0\.numInsts|numInsts|committedInsts)$")
BUSY_PART = re.compile(r"^system\.cpu\d*\.exec_context\.thread_0\.notIdleFraction$")


@dataclass(frozen=True)
class Window:
    """Counts of a window, added up over cores; times in femtoseconds."""

    instructions: int
    operations: int
    ticks: int
    not_idle: float  # of all cores' time
    host_s: float
    host_cpu_s: float


def window(folder: Path, cores: int, ran: Ran) -> Window:
    """The counts of the window, from its statistics and from the script's messages."""
    stats = trace.statistics((folder / "stats.txt").read_text(encoding="utf-8"))
    instructions = sum(value for name, value in stats.items() if INSTRUCTIONS.match(name))
    parts = [value for name, value in stats.items() if BUSY_PART.match(name)]
    return Window(int(instructions), int(ran.reported("operations")), int(stats["simTicks"]), sum(parts) / cores, ran.ending()[1],
                  ran.reported("processor"))


def document(point: Point, seen: Window, cycle_fs: float, kernel: str | None, command: str) -> dict[str, Any]:
    """POINT of the contracts. Without a kernel (None) all time is user time; with a kernel, gem5 does not say which part is
    whose."""
    time = seen.ticks * point.cores
    busy = min(seen.instructions * cycle_fs / time, seen.not_idle)
    idle, stalled = 1 - seen.not_idle, seen.not_idle - busy
    cycles = dict(zip(TIME_KIND.names, (busy, idle, 0.0, stalled), strict=True))
    per_op = seen.not_idle * time / FS_PER_US / seen.operations if seen.operations and kernel is None else None
    return {
        "workload": point.workload, "operation": point.operation, "kernel": kernel or NO_KERNEL,
        "cores": point.cores,
        "window_ms": seen.ticks / FS_PER_MS, "ops": seen.operations, "ticks": seen.ticks,
        "throughput_per_s": seen.operations * FS_PER_S / seen.ticks, "stderr_per_s": None,
        "kernel_share": 0.0 if kernel is None else None, "user_us_per_op": per_op,
        "system_us_per_op": None if per_op is None else 0.0, "cycles": cycles, "spin_cycles": None,
        "bottleneck": "gem5 keeps no account of stalls by line", "top_lines": [], "instructions": seen.instructions,
        "host_s": seen.host_s, "host_cpu_s": seen.host_cpu_s, "host_s_per_ms": seen.host_s * FS_PER_MS / seen.ticks,
        "warmup_ms": point.warmup / FS_PER_MS,
        "command": command,
    }
