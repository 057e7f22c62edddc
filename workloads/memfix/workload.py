# SPDX-License-Identifier: BSD-3-Clause
"""A stress test for each fix of the MOSBENCH paper in the management of memory. The header of the patch of fix 15 describes its own
(`moscope.guest.kernel_patches`). Those of fixes 11 and 16 have no single line that all cores wait for: fix 11 is about one line for each
page, and fix 16 about what the caches hold.
"""

from moscope.guest import kernel_patches
from moscope.workloads import Workload, register

for fix, stress in kernel_patches.stressed_by("memfix"):
    register(__file__, Workload(stress.workload, f"fix {fix.number}: {stress.load}", stress.operation,
                                lambda cores, variant=stress.variant: f"{variant} --cores {cores}",
                                kernels=",".join(fix.kernels), processes=True))
register(__file__, Workload("memfix-11", "fix 11: counts of pages: all cores make children that map the same pages of a file",
                            "children made and ended", lambda cores: f"count --cores {cores}", kernels="pk,pk@split", processes=True,
                            window="2ms"))
register(__file__, Workload("memfix-16", "fix 16: cleared huge pages: each core has one cleared and reads what it keeps in its caches",
                            "pages cleared", lambda cores: f"clear --cores {cores}", kernels="pk-16,pk", processes=True, warmup="2ms",
                            window="6ms"))
