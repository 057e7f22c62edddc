# SPDX-License-Identifier: BSD-3-Clause
"""gmake of the MOSBENCH paper: a replica of a parallel build."""

from moscope.workloads import Workload, register


def window(cores: int) -> str:
    return "50ms" if cores < 4 else "24ms"


register(__file__, Workload("gmake", "a parallel build: make, compilers, assemblers and a linker as processes of a replica",
                            "files compiled", lambda cores: f"--cores {cores}", warmup="5ms", window=window, kernels="stock,pk",
                            processes=True))
