# SPDX-License-Identifier: BSD-3-Clause
"""Plans one point of a workload for a benchmark and measures it in its own process."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from moscope.cli import Shared
from moscope.runs import directory, job, options, pool
from moscope.runs.options import Plan

KERNEL, CORES = "distro", "48"
# The core model of the recorded figures and the goals, unless `--set` names another one.
RECORDED = ("core.model=blocking", "l1d_prefetch.policy=off", "l1i_prefetch.policy=off", "dram_prefetch.policy=off")


def as_recorded(shared: Shared) -> Shared:
    return replace(shared, sets=[*RECORDED, *shared.sets])


def planned(shared: Shared, command: str, given: options.Options, warmup: str, window: str, threads: int | None = None) -> Plan:
    """The plan of `given`'s only point, with one window. `warmup`, `window` and `threads` are the defaults."""
    options.one_point(command, given)
    whole = replace(given, kernel=given.kernel or KERNEL, cores=given.cores or CORES, warmup=given.warmup or warmup,
                    window=given.window or window, windows=1, threads=given.threads or threads)
    return options.make(as_recorded(shared), whole)


def measured(shared: Shared, wanted: job.Job, how: str) -> dict[str, Any]:
    """The record of the point. Raises the error of a point that fails."""
    shared.say(f"{wanted.point.name}: {how}")
    failed = pool.run([wanted], lambda *_: None, lambda *_: None)
    if failed:
        raise failed[0]
    point = directory.finished(Path(wanted.folder))
    assert point is not None
    return point
