# SPDX-License-Identifier: BSD-3-Clause
"""Streams over memory like the loops of STREAM: read, write, copy, triad. Each core works on arrays in its own node's memory. A
traffic generator replaces the core: it has `lines in flight` loads and stores at once, and spends no time on anything else.
Counting begins when the caches are full, so that each line that arrives replaces another. As STREAM does, GB/s counts 10^9 bytes of
lines that the loops read and write per second; the read of a line before it is written, and write-backs, do not count."""

from typing import Any

from moscope.experiment import FS_PER_NS, FS_PER_S, Subject, check_done, slowness_is_a_user_error
from moscope.latencies.bandwidth import LINE, PAGE, WARM_FS, WINDOW_FS, lines_to_fill, region_bytes, scattered_page

SCHEMA = "moscope.bench.streams/1"
LOOPS = {"read": ("ld",), "write": ("st",), "copy": ("ld", "st"), "triad": ("ld", "ld", "st")}


def streams_of(subject: Subject, loop: str, cores: int, in_flight: int) -> list[dict[str, Any]]:
    """The arrays of a loop on each core. The lines in flight are distributed over the arrays, at least one to each."""
    machine, ops = subject.machine, LOOPS[loop]
    per_chip, size = int(machine.cores_per_chip), machine.memory_per_node.bytes
    region = region_bytes(subject, len(ops), loop)  # as for the loads of `latency --bandwidth`: only some ranks of a node
    found = []
    for core in range(cores):
        for n, op in enumerate(ops):
            base = core // per_chip * size + (core % per_chip * len(ops) + n) * region
            base += scattered_page(subject.seed, 3 * core + n) % max(1, region // 4 // PAGE) * PAGE
            share = max(1, in_flight // len(ops) + (n < in_flight % len(ops)))
            found.append({"core": core, "op": op, "in_flight": share, "order": "pages", "seed": subject.seed * 1000 + core * 3 + n,
                          "ranges": [[base, region // 2 // PAGE * PAGE]]})
    return found


def measure(subject: Subject, loop: str, cores: int, in_flight: int, warm_fs: int = WARM_FS, window_fs: int = WINDOW_FS) -> dict[str, Any]:
    streams = streams_of(subject, loop, cores, in_flight)
    fill = lines_to_fill(subject) // len(LOOPS[loop])
    with slowness_is_a_user_error(f"streams: {loop}"):
        result = subject.run([
            {"kind": "loads", "streams": streams, "accesses": fill},
            {"kind": "loads", "streams": [{**s, "skip": fill} for s in streams], "warm_fs": warm_fs, "window_fs": window_fs},
        ])[1]
    done = sum(s["done"] for s in result["streams"])
    check_done(f"streams: {loop}", done, window_fs)
    return {"loop": loop, "cores": cores, "in_flight": in_flight, "gb_per_s": round(done * LINE * FS_PER_S / window_fs / 1e9, 3),
            "ns_per_line": round(window_fs / FS_PER_NS * cores / done, 3)}


def core_counts(subject: Subject) -> list[int]:
    """One core, the cores of one chip, and all cores."""
    machine = subject.machine
    return sorted({1, int(machine.cores_per_chip), machine.cores})
