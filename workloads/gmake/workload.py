# SPDX-License-Identifier: BSD-3-Clause
"""gmake of the MOSBENCH paper: a replica of a parallel build."""

from moscope.workloads import Workload, register

# A build takes about 0.65 s of one core, and a third more where its serial stage and its last files leave cores idle. The windows
# together cover one on 12 cores and more, and so do short ones: in a part of a build, the stages have not their share.
WINDOWS, WINDOW_OF_ALL_CORES, SHORTEST_WINDOW, LONGEST_WINDOW = 10, 96, 2, 50  # ms


def window(cores: int, longest: float = LONGEST_WINDOW) -> str:
    return f"{min(longest, max(SHORTEST_WINDOW, WINDOW_OF_ALL_CORES / cores)) * 1000:.0f}us"


def short_window(cores: int) -> str:
    return window(cores, LONGEST_WINDOW / 3)


register(__file__, Workload("gmake", "a parallel build: make, compilers, assemblers and a linker as processes of a replica",
                            "sixteenths of a file compiled", lambda cores: f"--cores {cores}", warmup="5ms", window=window,
                            short_window=short_window, windows=WINDOWS, kernels="stock,pk", processes=True))
