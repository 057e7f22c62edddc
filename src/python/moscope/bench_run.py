# SPDX-License-Identifier: BSD-3-Clause
"""How fast detailed mode is on this host: one point measured twice in processes of their own, one after the other, with
attribution and without it. Instructions in spin loops are not counted.

The overhead compares processor seconds, which other work on the host disturbs less than seconds; with several threads seconds, as
threads that wait for one another are busy, too.
"""

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from moscope.cli import Shared
from moscope.run import directory, job, options, pool

SCHEMA = "moscope.bench.run/1"
KERNEL, CORES, WARMUP, WINDOW = "distro", "48", "1ms", "3ms"
# The bars that the project has set itself.
LEAST_MIPS, MOST_OVERHEAD, MOST_BYTES_BEYOND_GUEST = 8.0, 0.20, 10**9


def run(shared: Shared, given: options.Options) -> dict[str, Any]:
    """moscope.bench.run/1."""
    options.one_point("bench run", given)
    plan = options.make(shared, replace(given, kernel=given.kernel or KERNEL, cores=given.cores or CORES, warmup=given.warmup or WARMUP,
                                        window=given.window or WINDOW, windows=1, threads=given.threads or len(os.sched_getaffinity(0))))
    with tempfile.TemporaryDirectory(prefix="moscope-") as place:
        whole = job.job(plan, plan.points[0], Path(place) / "with")
        with_it = measured(shared, whole)
        without = measured(shared, replace(whole, folder=str(Path(place) / "without"), attribution=False))
    return document(plan.machine.name, plan.threads or 1, with_it, without)


def measured(shared: Shared, wanted: job.Job) -> dict[str, Any]:
    shared.say(f"{wanted.point.name}: {'with' if wanted.attribution else 'without'} attribution")
    failed = pool.run([wanted], lambda *_: None, lambda *_: None)
    if failed:
        raise failed[0]
    point = directory.finished(Path(wanted.folder))
    assert point is not None
    return point


def document(machine: str, threads: int, with_it: dict[str, Any], without: dict[str, Any]) -> dict[str, Any]:
    window = with_it["windows"][0]
    mips = with_it["instructions"] / window["host_s"] / 1e6
    clock = "host_cpu_s" if threads == 1 else "host_s"
    per_ms, per_ms_without = (p["windows"][0][clock] / p["ticks"] for p in (with_it, without))
    overhead = per_ms / per_ms_without - 1
    beyond = with_it["host_bytes"] - with_it["touched_bytes"]
    return {
        "schema": SCHEMA, "ok": mips >= LEAST_MIPS and overhead < MOST_OVERHEAD and beyond < MOST_BYTES_BEYOND_GUEST,
        "machine": machine, "workload": with_it["workload"], "cores": with_it["cores"], "threads": threads, "mips": mips,
        "mips_of_cpu": with_it["instructions"] / window["host_cpu_s"] / 1e6, "host_s_per_ms": with_it["host_s_per_ms"],
        "rss_bytes": with_it["host_bytes"], "guest_touched_bytes": with_it["touched_bytes"], "attribution_overhead": overhead,
        "simulated_ms": with_it["window_ms"], "busy": 1 - with_it["cycles"]["idle"],
        "bars": {"mips": LEAST_MIPS, "attribution_overhead": MOST_OVERHEAD, "bytes_beyond_guest": MOST_BYTES_BEYOND_GUEST}}
