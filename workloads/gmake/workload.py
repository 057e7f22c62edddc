# SPDX-License-Identifier: BSD-3-Clause
"""gmake of the MOSBENCH paper: a replica of a parallel build."""

import math

from moscope.workloads import Workload, register

# A build takes 1.3 s of one core. On many cores, its beginning, its serial stage and its last files leave cores idle for a time that
# does not depend on their number. Windows that cover only part of a build hold these stages in the wrong proportion. On few cores
# they take hardly any time, so part of a build is enough.
COMPILING, ALONE, LONGEST = 1300, 14, 400  # ms of one core; ms of the machine; ms
WINDOWS, MOST_SHORT_WINDOWS = 10, 24


def build(cores: int, parts: int = 1) -> str:
    return f"{math.ceil(min(COMPILING / cores + ALONE, LONGEST) * 1000 / parts)}us"


register(__file__, Workload("gmake", "a parallel build: make, compilers, assemblers and a linker as processes of a replica",
                            "sixteenths of a file compiled", lambda cores: f"--cores {cores}", warmup="5ms",
                            window=lambda cores: build(cores, WINDOWS), short_window=lambda cores: build(cores, MOST_SHORT_WINDOWS),
                            windows=WINDOWS, cycle=build, kernels="stock,pk", processes=True))
