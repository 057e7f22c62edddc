# SPDX-License-Identifier: BSD-3-Clause
"""The workflow in a sweep's folder: `workflow/Snakefile`, an unchanged copy of sweep.smk, and `workflow/config.json`."""

import hashlib
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from moscope import jsonio
from moscope.aside import write_whole
from moscope.sweeps import jobs
from moscope.sweeps.points import Point
from moscope.sweeps.store import Store

SNAKEFILE = Path(__file__).with_name("sweep.smk")
LARGEST_BATCH = 100
RUNTIME_MINUTES = 240  # requested from a cluster


def worker() -> str:
    """The command line of sweeps/worker.py with this interpreter and these sources."""
    source = Path(__file__).resolve().parents[2]
    return shlex.join(["env", f"PYTHONPATH={source}", sys.executable, "-P", "-m", "moscope.sweeps.worker"])


def batches(digests: list[str], at_once: int) -> dict[str, list[str]]:
    """Groups of short points: a few groups for each process, so that all processes end at about the same time."""
    size = max(1, min(LARGEST_BATCH, -(-len(digests) // (4 * at_once))))
    parts = [digests[i:i + size] for i in range(0, len(digests), size)]
    return {hashlib.sha256(" ".join(part).encode()).hexdigest()[:16]: part for part in parts}


def write(store: Store, job: str, points: list[Point], at_once: int) -> dict[str, Any]:
    """Writes the workflow and returns its configuration."""
    light = jobs.find(job).light
    listed = {p.digest: p for p in points}
    missing = [d for d in listed if not store.done(d)]
    grouped = batches(missing, at_once) if light else {}
    for name in grouped:  # of points whose results are gone
        (store.root / "batches" / f"{name}.json").unlink(missing_ok=True)
    if not light:
        for digest in listed:
            store.mark(digest)
    boots: dict[str, dict[str, Any]] = {}
    for p in listed.values():
        if p.planned.boot:
            boots.setdefault(p.planned.boot, {"point": p.digest, "memory_mb": p.planned.boot_memory_mb})
    config = {
        "schema": "moscope.sweep.workflow/1", "job": job, "worker": worker(), "folder": os.getcwd(), "runtime_minutes": RUNTIME_MINUTES,
        "single": [] if light else list(listed), "batches": grouped, "boots": boots,
        "points": {digest: p.document() for digest, p in listed.items()},
    }
    write_whole(store.root / "workflow" / "Snakefile", SNAKEFILE.read_bytes())
    write_whole(store.config, jsonio.dumps(config) + "\n")
    return config
