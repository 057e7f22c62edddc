# SPDX-License-Identifier: BSD-3-Clause
"""gmake of the MOSBENCH paper: a replica of a parallel build."""

from moscope.workloads import Workload, register

# A build takes about 1.5 s of one core, a fifth more where the last files leave cores idle. The windows together cover one on 12
# cores and more, with its serial stage and its stragglers.
WINDOWS, WINDOW_OF_ALL_CORES, SHORTEST_WINDOW, LONGEST_WINDOW = 10, 144, 4, 50  # ms


def window(cores: int) -> str:
    return f"{min(LONGEST_WINDOW, max(SHORTEST_WINDOW, WINDOW_OF_ALL_CORES / cores)) * 1000:.0f}us"


register(__file__, Workload("gmake", "a parallel build: make, compilers, assemblers and a linker as processes of a replica",
                            "sixteenths of a file compiled", lambda cores: f"--cores {cores}", warmup="5ms", window=window,
                            windows=WINDOWS, kernels="stock,pk", processes=True))
