# SPDX-License-Identifier: BSD-3-Clause
"""A stress test for each fix of the MOSBENCH paper in the network that the project's kernel can switch. The header of the
fix's patch describes it (`moscope.guest.kernel_patches`).

The workload of fix N runs on `pk` and on `pk` without the fix (`pk-N`), which separates the two forms of one contention
point.
"""

from moscope.guest import kernel_patches
from moscope.workloads import Workload, register

# The first connections of a boot take a millisecond. Queues are refilled at the same time only now and then.
WARMUP = {"accept": "5ms", "receive": "1ms", "poll": "1ms"}
WINDOW = {"receive": "3ms", "poll": "3ms"}
# Which need the network card, and its policy.
STEERING = {"receive": "fixed-port", "poll": "fixed-port"}

for fix, stress in kernel_patches.stressed_by("netfix"):
    register(__file__, Workload(stress.workload, f"fix {fix.number}: {stress.load}", stress.operation,
                                lambda cores, variant=stress.variant: f"{variant} --cores {cores}",
                                kernels=f"pk-{fix.number},pk", processes=True, warmup=WARMUP.get(stress.variant, "200us"),
                                window=WINDOW.get(stress.variant, "500us"), steering=STEERING.get(stress.variant)))
