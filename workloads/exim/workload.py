# SPDX-License-Identifier: BSD-3-Clause
"""The kernel side of a mail server: Exim as the MOSBENCH paper runs it, with two clients for each core (96 at 48)."""

from moscope.workloads import Workload, register

# A message takes 1 ms on one core. On 48 contending cores it takes up to 8 ms of their summed time. A window should hold
# some tens of messages. Caches need a few milliseconds per core to warm up, more with little sharing.
WINDOW_OF_ALL_CORES, LONGEST_WINDOW = 144, 50  # ms
WARMUP_OF_ALL_CORES, SHORTEST_WARMUP, LONGEST_WARMUP = 36, 3, 5


def window(cores: int) -> str:
    return f"{min(LONGEST_WINDOW, WINDOW_OF_ALL_CORES / cores) * 1000:.0f}us"


def warmup(cores: int) -> str:
    return f"{min(LONGEST_WARMUP, max(SHORTEST_WARMUP, WARMUP_OF_ALL_CORES / cores)) * 1000:.0f}us"


register(__file__, Workload("exim", "a mail server's processes, files and connections", "messages delivered",
                            lambda cores: f"--cores {cores}", warmup=warmup, window=window, kernels="stock,pk", processes=True))
