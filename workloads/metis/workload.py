# SPDX-License-Identifier: BSD-3-Clause
"""Metis' inverted index as the MOSBENCH paper runs it, with pages of 4 KiB or 2 MiB; and each of its phases by itself."""

from collections.abc import Callable
from typing import NamedTuple

from moscope.workloads import Workload, register


class Phase(NamedTuple):
    arguments: str
    warmup: str
    memory: str


PHASES = {
    "map": Phase("--input 512KiB", "4ms", "512MiB"),
    # The tables have 1160 positions for each word and core, and with the index more bytes than all caches. Cores begin with the same
    # core's table and go on to the next: for 3 ms, some channels are idle. The paper's reduce takes seconds.
    "reduce": Phase("--input 8MiB --words 1024", "6ms", "1GiB"),
}
# A job takes 7 ms on one core, and 9 ms on all. A window holds several, a short one about one: less would be one phase or the other.
WINDOW_OF_ALL_CORES, SHORTEST_WINDOW, LONGEST_WINDOW = 960, 20, 50  # ms
JOB = "10ms"


def window(cores: int) -> str:
    return f"{min(LONGEST_WINDOW, max(SHORTEST_WINDOW, WINDOW_OF_ALL_CORES / cores)) * 1000:.0f}us"


def workload(name: str, summary: str, arguments: str, warmup: str = "4ms", window: str | Callable[[int], str] = "4ms",
             short_window: str | None = None, memory: str = "512MiB") -> Workload:
    return Workload(name, summary, "steps", lambda cores: f"{arguments} --cores {cores}", warmup=warmup, window=window,
                    short_window=short_window, kernels="stock,pk", memory_per_node=memory)


register(__file__,
         workload("metis", "an inverted index by MapReduce, memory in pages of 4 KiB", "4k", "1ms", window, JOB),
         workload("metis-2m", "the same in pages of 2 MiB", "2m", "1ms", window, JOB),
         *(workload(f"metis-{name}{end}", f"only the phase {name}, {pages}", f"{variant} --phase {name} {phase.arguments}", phase.warmup,
                    memory=phase.memory)
           for name, phase in PHASES.items() for variant, end, pages in (("4k", "", "pages of 4 KiB"), ("2m", "-2m", "pages of 2 MiB"))))
