# SPDX-License-Identifier: BSD-3-Clause
"""Metis' inverted index as the MOSBENCH paper runs it, with pages of 4 KiB or 2 MiB; and each of its phases by itself."""

from collections.abc import Callable

from moscope.workloads import Workload, register

# A window should hold a whole job.
WINDOW_OF_ALL_CORES, SHORTEST_WINDOW, LONGEST_WINDOW = 288, 6, 30  # ms


def window(cores: int) -> str:
    return f"{min(LONGEST_WINDOW, max(SHORTEST_WINDOW, WINDOW_OF_ALL_CORES / cores)) * 1000:.0f}us"


def workload(name: str, summary: str, arguments: str, window: str | Callable[[int], str] = "2ms") -> Workload:
    return Workload(name, summary, "steps", lambda cores: f"{arguments} --cores {cores}", warmup="1ms", window=window,
                    kernels="stock,pk")


register(__file__,
         workload("metis", "an inverted index by MapReduce, memory in pages of 4 KiB", "4k", window),
         workload("metis-2m", "the same in pages of 2 MiB", "2m", window),
         *(workload(f"metis-{phase}{end}", f"only the phase {phase}, {pages}", f"{variant} --phase {phase} --input 512KiB")
           for phase in ("map", "reduce") for variant, end, pages in (("4k", "", "pages of 4 KiB"), ("2m", "-2m", "pages of 2 MiB"))))
