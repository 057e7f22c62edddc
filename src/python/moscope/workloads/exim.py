# SPDX-License-Identifier: BSD-3-Clause
"""The kernel side of a mail server: Exim as the MOSBENCH paper runs it, with two clients for each core (96 at 48)."""

from .registry import Workload, register

# A message takes one core 1 ms and 48 cores that wait for each other up to 8 ms of their time together, and a window is to have some
# tens of messages; caches want a few milliseconds of each core, more where there is little to share.
WINDOW_OF_ALL_CORES, LONGEST_WINDOW = 144, 50  # ms
WARMUP_OF_ALL_CORES, SHORTEST_WARMUP, LONGEST_WARMUP = 36, 3, 5


def window(cores: int) -> str:
    return f"{min(LONGEST_WINDOW, WINDOW_OF_ALL_CORES / cores) * 1000:.0f}us"


def warmup(cores: int) -> str:
    return f"{min(LONGEST_WARMUP, max(SHORTEST_WARMUP, WARMUP_OF_ALL_CORES / cores)) * 1000:.0f}us"


register(Workload("exim", "exim", "a mail server's processes, files and connections", "messages delivered",
                  lambda cores: f"--cores {cores}", warmup=warmup, window=window, kernels="stock,pk"))
