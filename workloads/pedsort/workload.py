# SPDX-License-Identifier: BSD-3-Clause
"""Psearchy's indexer as the MOSBENCH paper runs it: threads or processes that share a queue of files.

A machine of N cores has its first N, so `-spread` differs from `-processes` only where some cores are idle. Hence
`-quarter-packed` and `-quarter-spread` keep a quarter of the cores busy: on 48 cores, 12 processes on two chips or on all eight.
"""

from moscope.workloads import Workload, register

# A file takes about 1.4 ms of one core. A window should hold some tens of files, and ten of them determine the error: large files
# and merges come in bursts.
WINDOWS = 10
WINDOW_OF_ALL_CORES, SHORTEST_WINDOW, LONGEST_WINDOW = 144, 3, 50  # ms
# Nothing is computed for a word, and the tables of six processes do not fit into the L3 and the L2s of a chip, but those of two do.
L3_LIMITS = "--fold 0 --table 2MiB"


def window(cores: int) -> str:
    return f"{min(LONGEST_WINDOW, max(SHORTEST_WINDOW, WINDOW_OF_ALL_CORES / cores)) * 1000:.0f}us"


def warmup(cores: int) -> str:
    """All threads begin with a file at the same time: on 48 cores, throughput grows for 12 ms."""
    return "3ms" if cores < 24 else "12ms"


def workload(name: str, summary: str, variant: str, share: int = 1) -> Workload:
    def busy(cores: int) -> int:
        return max(1, cores // share)

    return Workload(name, summary, "files indexed", lambda cores: f"{variant} --cores {busy(cores)}",
                    warmup=lambda cores: warmup(busy(cores)), window=lambda cores: window(busy(cores)), windows=WINDOWS,
                    kernels="stock,pk", processes=not variant.startswith("threads"))


register(__file__,
         workload("pedsort", "an indexer's threads, which map and unmap files in one address space", "threads"),
         workload("pedsort-processes", "the same with a process per core", "processes"),
         workload("pedsort-spread", "processes that go round all chips", "processes --placement spread"),
         workload("pedsort-quarter-packed", "processes on a quarter of the cores, on as few chips as possible",
                  f"processes --placement packed {L3_LIMITS}", 4),
         workload("pedsort-quarter-spread", "processes on a quarter of the cores, on all chips",
                  f"processes --placement spread {L3_LIMITS}", 4))
