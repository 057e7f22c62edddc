# SPDX-License-Identifier: BSD-3-Clause
"""A stress test for each fix of the MOSBENCH paper in the management of memory that the project's kernel can switch. The header of
the fix's patch describes it (`moscope.guest.kernel_patches`).
"""

from moscope.guest import kernel_patches
from moscope.workloads import Workload, register

for fix, stress in kernel_patches.stressed_by("memfix"):
    register(__file__, Workload(stress.workload, f"fix {fix.number}: {stress.load}", stress.operation,
                                lambda cores, variant=stress.variant: f"{variant} --cores {cores}",
                                kernels=f"pk-{fix.number},pk", processes=True))
