# SPDX-License-Identifier: BSD-3-Clause
"""Published results of the MOSBENCH paper (Boyd-Wickizer et al., OSDI 2010, and the talk on it), to stand beside
what moscope predicts. They were measured on the real machine with Linux 2.6.35-rc5 and the real applications.
"""

from dataclasses import dataclass
from typing import Any

# The machine of the paper, and the parts of its description that do not change how long its accesses take.
MACHINE = "opteron48"
CORES = 48  # of figures 3 and 12
NEUTRAL = ("name", "references", "memory_per_node", "cpu")
# The packet limits of the paper's card, which `moscope mosbench` sets (moscope.mosbench.main.CARD).
CARD = ("nic.in_per_second=5000000", "nic.out_per_second=5000000")


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
PER_CORE_AXIS = {"exim": 700.0, "memcached": 300000.0, "apache": 20000.0, "postgresql": 25000.0}
# Share of kernel time on one core.
KERNEL_SHARE_1_CORE = {"exim": 0.69, "memcached": 0.80, "apache": 0.60, "postgresql": 0.015, "gmake": 0.076, "pedsort": 0.019,
                       "metis": 0.03}
# Idle load latencies of the paper's machine in ns (cycles at 2.4 GHz: L2 14, L3 28, DRAM 122 local, 503 farthest).
IDLE_LATENCY_NS = (("L2", 14 / 2.4), ("L3", 28 / 2.4), ("local DRAM", 122 / 2.4), ("farthest DRAM", 503 / 2.4))


@dataclass(frozen=True)
class Ratio:
    """A bar of figure 3, throughput per core on 48 cores relative to one core, as far as texts give it: between two values, of which 0
    and 1 mean that no text gives one. The figure has no numbers."""

    low: float
    high: float
    why: str

    @property
    def is_bound(self) -> bool:
        """Whether the texts give only one of the two values."""
        return self.low == 0 or self.high == 1

    def difference(self, ratio: float) -> float:
        """How much another ratio is above (positive) or below the range."""
        return ratio - min(max(ratio, self.low), self.high)

    @property
    def text(self) -> str:
        if self.is_bound:
            return f"at least {self.low:.2f}" if self.high == 1 else f"at most {self.high:.2f}"
        return f"{self.low:.2f}" if self.low == self.high else f"{self.low:.2f} to {self.high:.2f}"


# The number of files and the serial stage of moscope's gmake were chosen for this ratio.
BUILD = Ratio(35 / 48, 35 / 48, "35 times as fast on 48 cores; moscope's build is fitted to it")
# By application: the first and the last of its curves.
RATIO: dict[str, tuple[Ratio | None, Ratio | None]] = {
    # 4000 messages per second on 48 cores; one core delivers at most 700 (the axis), and at least 314, what each of 32 cores did.
    "exim": (Ratio(4000 / 48 / 700, 4000 / 48 / (10041 / 32), "4000 messages/s on 48 cores; one core: 314 to 700"),
             # The stock kernel with the per-core mount cache alone, of PK's fixes, delivers 11705 messages per second on 48 cores.
             Ratio(11705 / 48 / 700, 1.0, "11705 messages/s with the mount cache alone; one core: at most 700")),
    # One of PK's fixes alone raised throughput by 30 % on 48 cores.
    "memcached": (Ratio(0.0, 1 / 1.3, "one fix alone: 30 % more on 48 cores"), None),
    # What is idle on 48 cores is not on one, and a request takes no less time on 48.
    "apache": (None, Ratio(0.0, 0.82, "18 % of the time of 48 cores is idle")),
    # On 48 cores, 322 us of system time are 82 % of a query's time. On one core, a query takes at least 40 us (the axis), and at most the
    # user time of a query on 48 cores, which is 98.5 % of it there.
    "postgresql": (Ratio(0.82 / 322e-6 / 25000, 0.18 / 0.985, "a query takes 393 us on 48 cores; on one core 40 to 72 us"), None),
    # With threads, system time is 2.3 s, 1.9 % of the time, on one core, and 41 s, 23 % of the time, on 48, which may be idle besides. So
    # the job's own part takes 119 s and at most 137 s. Processes sort the same words in the same caches, and their system time "remains
    # small" (section 5.7), so the same growth is all that a core of 48 loses.
    "pedsort": (Ratio(0.0, 2.3 / 0.019 / (41 / 0.23), "121 s of processor time on one core, 178 s on 48"),
                Ratio((2.3 / 0.019 - 2.3) / (41 / 0.23 - 41), 1.0, "the sort takes 119 s on one core, at most 137 s on 48")),
    "gmake": (BUILD, BUILD),
    # The kernel takes 3 % of a job's time on one core and 16 % on 48 (section 3.7). The job is the same, and its own part of it takes no
    # less processor time on 48 cores, each of which has less of an L3.
    "metis": (Ratio(0.0, 0.84 / 0.97, "kernel time is 3 % on one core, 16 % on 48"), None),
}


def is_of(run: dict[str, Any]) -> bool:
    """Whether a run (its run.json) simulated the paper's machine, not one that `--set` or a file has changed. A run whose options are
    not known (on gem5) may have simulated any machine of that name."""
    config = run.get("config") or {}
    sets = config.get("set") or []
    return run.get("machine") == config.get("machine") == MACHINE and all(
        text in CARD or str(text).partition("=")[0].strip().partition(".")[0] in NEUTRAL for text in sets)
