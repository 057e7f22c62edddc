# SPDX-License-Identifier: BSD-3-Clause
"""A stress test for each fix of the MOSBENCH paper in the management of memory. The header of the patch of fix 15 describes its own
(`moscope.guest.kernel_patches`). That of fix 16 waits for no single line: the fix keeps what the caches hold.
"""

from moscope.guest import kernel_patches
from moscope.workloads import Workload, register

for fix, stress in kernel_patches.stressed_by("memfix"):
    register(__file__, Workload(stress.workload, f"fix {fix.number}: {stress.load}", stress.operation,
                                lambda cores, variant=stress.variant: f"{variant} --cores {cores}",
                                kernels=",".join(fix.kernels), processes=True))
register(__file__, Workload("memfix-16", "fix 16: cleared huge pages: each core has one cleared and reads what it keeps in its caches",
                            "pages cleared", lambda cores: f"clear --cores {cores}", kernels="pk-16,pk", processes=True, warmup="2ms",
                            window="6ms"))
