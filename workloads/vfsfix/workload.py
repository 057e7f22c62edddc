# SPDX-License-Identifier: BSD-3-Clause
"""A stress test for each fix of the MOSBENCH paper that the project's kernel can switch. The header of the fix's patch
describes it (`moscope.guest.kernel_patches`).

The workload of fix N runs on `pk` and on `pk` without the fix (`pk-N`), which separates the two forms of one contention
point.
"""

from moscope.guest import kernel_patches
from moscope.workloads import Workload, register

for fix in kernel_patches.fixes():
    if fix.stress:
        register(__file__, Workload(f"vfsfix-{fix.number}", f"fix {fix.number}: {fix.stress.load}", fix.stress.operation,
                                    lambda cores, variant=fix.stress.variant: f"{variant} --cores {cores}",
                                    kernels=f"pk-{fix.number},pk", processes=True))
