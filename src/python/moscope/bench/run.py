# SPDX-License-Identifier: BSD-3-Clause
"""The speed of detailed mode on this host. One point is measured in pairs of processes, with attribution and without it. Because
hosts also do other work, figures are medians over the pairs. Instructions in spin loops are not counted.

The overhead compares processor seconds, which depend less on other work of the host than elapsed seconds. With several threads it
compares elapsed seconds, because threads that wait for each other also use processor time.
"""

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from moscope.bench.point import measured, planned
from moscope.cli import Shared
from moscope.runs import job, options

SCHEMA = "moscope.bench.run/1"
PAIRS = 3
WARMUP, WINDOW = "1ms", "3ms"
# The goals that the project has set itself.
LEAST_MIPS, MOST_OVERHEAD, MOST_BYTES_BEYOND_GUEST = 8.0, 0.20, 10**9


def run(shared: Shared, given: options.Options) -> dict[str, Any]:
    """moscope.bench.run/1."""
    plan = planned(shared, "bench run", given, WARMUP, WINDOW, len(os.sched_getaffinity(0)))
    pairs = []
    with tempfile.TemporaryDirectory(prefix="moscope-") as place:
        for n in range(PAIRS):
            whole = job.job(plan, plan.points[0], Path(place) / f"with-{n}")
            # The order within a pair alternates, so that a host that becomes slower over time does not look like overhead.
            both = [whole, replace(whole, folder=str(Path(place) / f"without-{n}"), attribution=False)]
            found = {one.attribution: measured(shared, one, f"{'with' if one.attribution else 'without'} attribution")
                     for one in (both if n % 2 == 0 else both[::-1])}
            pairs.append((found[True], found[False]))
    return document(plan.machine.name, plan.threads or 1, pairs)


def document(machine: str, threads: int, pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """The results from pairs of points, with attribution and without it."""
    all_of = [p for p, _ in pairs]
    each = [p["instructions"] / p["windows"][0]["host_s"] / 1e6 for p in all_of]
    clock = "host_cpu_s" if threads == 1 else "host_s"
    overheads = [(p["windows"][0][clock] / p["ticks"]) / (q["windows"][0][clock] / q["ticks"]) - 1 for p, q in pairs]
    mips, overhead = median(each), median(overheads)
    with_it = max(all_of, key=lambda p: p["host_bytes"])
    beyond = with_it["host_bytes"] - with_it["touched_bytes"]
    return {
        "schema": SCHEMA, "ok": mips >= LEAST_MIPS and overhead < MOST_OVERHEAD and beyond < MOST_BYTES_BEYOND_GUEST,
        "machine": machine, "workload": with_it["workload"], "cores": with_it["cores"], "threads": threads, "mips": mips,
        "mips_of_cpu": median(p["instructions"] / p["windows"][0]["host_cpu_s"] / 1e6 for p in all_of),
        "host_s_per_ms": median(p["host_s_per_ms"] for p in all_of), "mips_of_each": each, "attribution_overhead_of_each": overheads,
        "rss_bytes": with_it["host_bytes"], "guest_touched_bytes": with_it["touched_bytes"], "attribution_overhead": overhead,
        "simulated_ms": with_it["window_ms"], "busy": 1 - with_it["cycles"]["idle"],
        "bars": {"mips": LEAST_MIPS, "attribution_overhead": MOST_OVERHEAD, "bytes_beyond_guest": MOST_BYTES_BEYOND_GUEST}}
