# SPDX-License-Identifier: BSD-3-Clause
"""gem5's own random tester as `moscope protocol check --engine gem5` (moscope.check/1). It only loads and stores, one byte at a
time. It stops when it finds a wrong value, a missing transition, or a request that never ends."""

import re
from pathlib import Path
from typing import Any

from moscope.gem5 import binary, job, trace
from moscope.protocol import check as protocol_check
from moscope.protocol.check import Subject

# With a single controller of a kind, gem5 writes no total, but the controller's count under the bare name.
COUNT = re.compile(r"^system\.ruby\.(\w+)_Controller\.(\w+)\.(\w+)(?:::total)?$")


def declared(interface: dict[str, Any]) -> set[str]:
    """MACHINE.STATE.EVENT of every transition that is not a stall."""
    return {f"{m['type']}.{t['state']}.{t['event']}" for m in interface["machines"] for t in m["transitions"] if not t["stall"]}


def reached(stats: dict[str, float]) -> set[str]:
    return {".".join(found.groups()) for name, value in stats.items() if value and (found := COUNT.match(name))}


def run(gem5: binary.Gem5, subject: Subject, interface: dict[str, Any], loads: int, seed: int, folder: Path) -> dict[str, Any]:
    """The document of a random test; ProtocolError if the tester has found a fault."""
    seconds = job.random_test(gem5, subject.machine, interface, loads, folder, seed)
    there = declared(interface)
    seen = reached(trace.statistics((folder / "stats.txt").read_text(encoding="utf-8"))) & there
    return {
        "schema": protocol_check.SCHEMA, "ok": True, "engine": "gem5", "ops": loads, "seconds": seconds,
        "reached": len(seen), "declared": len(there), "unreached": sorted(there - seen), "violations": [],
        "protocol": subject.protocol.name, "machine": subject.machine["name"], "cores": subject.machine["cores"],
        "chips": subject.machine["chips"], "homes": subject.homes, "caches": subject.caches, "seed": seed,
        "left_out": ["flush", "nt_store", "uncached_load", "dma"],
        "checked_loads": loads, "loads_per_second": loads / seconds if seconds else 0.0,
    }
