# SPDX-License-Identifier: BSD-3-Clause
"""gmake of the MOSBENCH paper: a replica of a parallel build."""

import math

from moscope.workloads import Workload, register

# A build takes 1.3 s of one core. 48 cores take half as long again as that divided by their number, as its beginning, its serial
# stage and its last files leave cores idle. The windows together cover one on 6 cores and more: in a part of a build, these stages
# have not their share. Few cores have hardly any.
BUILD_OF_ALL_CORES, LONGEST = 2000, 400  # ms
WINDOWS, MOST_SHORT_WINDOWS = 10, 24


def build(cores: int, parts: int = 1) -> str:
    return f"{math.ceil(min(BUILD_OF_ALL_CORES / cores, LONGEST) * 1000 / parts)}us"


register(__file__, Workload("gmake", "a parallel build: make, compilers, assemblers and a linker as processes of a replica",
                            "sixteenths of a file compiled", lambda cores: f"--cores {cores}", warmup="5ms",
                            window=lambda cores: build(cores, WINDOWS), short_window=lambda cores: build(cores, MOST_SHORT_WINDOWS),
                            windows=WINDOWS, cycle=build, kernels="stock,pk", processes=True))
