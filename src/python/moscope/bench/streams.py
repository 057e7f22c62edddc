# SPDX-License-Identifier: BSD-3-Clause
"""Streams over memory like the loops of STREAM: read, write, copy, triad. Each core works on arrays in its own node's memory. A
traffic generator replaces the core: it has `lines in flight` loads and stores at once, and spends no time on anything else.
Counts are those of the steady state (latencies/steady.py). As STREAM does, GB/s counts 10^9 bytes of
lines that the loops read and write per second; the read of a line before it is written, and write-backs, do not count."""

from typing import Any

from moscope.experiment import Subject
from moscope.latencies import steady
from moscope.latencies.bandwidth import PAGE, region_bytes, scattered_page
from moscope.schema.constants import FS_PER_NS
from moscope.wording import decimals

SCHEMA = "moscope.bench.streams/1"
LOOPS = {"read": ("ld",), "write": ("st",), "copy": ("ld", "st"), "triad": ("ld", "ld", "st")}


def streams_of(subject: Subject, loop: str, cores: int, in_flight: int) -> list[dict[str, Any]]:
    """The arrays of a loop on each core. The lines in flight are distributed over the arrays, at least one to each."""
    machine, ops = subject.machine, LOOPS[loop]
    per_chip, size = int(machine.cores_per_chip), machine.memory_per_node.bytes
    region = region_bytes(subject, cores, len(ops), loop)  # as for the loads of `latency --bandwidth`: only some ranks of a node
    found = []
    for core in range(cores):
        for n, op in enumerate(ops):
            base = core // per_chip * size + (core % per_chip * len(ops) + n) * region
            base += scattered_page(subject.seed, 3 * core + n) % max(1, region // 4 // PAGE) * PAGE
            share = max(1, in_flight // len(ops) + (n < in_flight % len(ops)))
            found.append({"core": core, "op": op, "in_flight": share, "order": "pages", "seed": subject.seed * 1000 + core * 3 + n,
                          "ranges": [[base, region // 2 // PAGE * PAGE]]})
    return found


def measure(subject: Subject, loop: str, cores: int, in_flight: int) -> dict[str, Any]:
    streams = streams_of(subject, loop, cores, in_flight)
    counted = steady.count(subject, f"streams: {loop}", streams, steady.lines_to_fill(subject, cores) // len(LOOPS[loop]))
    return {"loop": loop, "cores": cores, "in_flight": in_flight, "gb_per_s": round(counted.gb_per_s, max(3, decimals(counted.gb_per_s))),
            "ns_per_line": round(counted.window_fs / FS_PER_NS * cores / counted.done, 3)}


def core_counts(subject: Subject) -> list[int]:
    """One core, the cores of one chip, and all cores."""
    machine = subject.machine
    return sorted({1, int(machine.cores_per_chip), machine.cores})
