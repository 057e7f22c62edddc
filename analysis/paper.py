# SPDX-License-Identifier: BSD-3-Clause
"""Published results of the MOSBENCH paper (Boyd-Wickizer et al., OSDI 2010, and the talk on it), to stand beside
what moscope predicts. They were measured on the real machine with Linux 2.6.35-rc5 and the real applications.
"""

from dataclasses import dataclass
from typing import Any

# The machine of the paper, and the parts of its description that do not change how long its accesses take.
MACHINE = "opteron48"
NEUTRAL = ("name", "references", "memory_per_node", "cpu")


@dataclass(frozen=True)
class Published:
    """Total throughput of one kernel: (cores, operations per second)."""

    label: str
    points: tuple[tuple[int, float], ...]


THROUGHPUT: dict[str, tuple[Published, ...]] = {
    "exim": (Published("paper: stock 2.6.35", ((40, 10000), (48, 4000))),
             Published("paper: with per-core mount cache", ((32, 10041), (48, 11705)))),
}
# Where the axis of the paper's figure of throughput per core ends.
PER_CORE_AXIS = {"exim": 700.0}
# Share of kernel time on one core.
KERNEL_SHARE_1_CORE = {"exim": 0.69, "memcached": 0.80, "apache": 0.60, "postgresql": 0.015, "gmake": 0.076, "pedsort": 0.019,
                       "metis": 0.03}
# Idle load latencies of the paper's machine in ns (cycles at 2.4 GHz: L2 14, L3 28, DRAM 122 local, 503 farthest).
IDLE_LATENCY_NS = (("L2", 14 / 2.4), ("L3", 28 / 2.4), ("local DRAM", 122 / 2.4), ("farthest DRAM", 503 / 2.4))


def is_of(run: dict[str, Any]) -> bool:
    """Whether a run (its run.json) simulated the paper's machine, not one that `--set` has changed."""
    sets = (run.get("config") or {}).get("set") or []
    return run.get("machine") == MACHINE and all(str(text).partition("=")[0].strip().partition(".")[0] in NEUTRAL for text in sets)
