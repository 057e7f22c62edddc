# SPDX-License-Identifier: BSD-3-Clause
"""Dependent loads over a buffer: the seven latencies of the paper's machine, seen from core 0.

The buffer of the L3 case fits into L2 and L3 together, with room to spare. The buffers of the DRAM cases have more
lines than a window has loads, so that each load in a window is the first of its line. The nodes are 0 to 3 hops from
node 0 in a twisted ladder.
"""

from moscope.workloads import Workload, register

CASES = {
    "chase-l1": ("32KiB", 0, 8, "loads that hit in L1"),
    "chase-l2": ("384KiB", 0, 4, "loads that hit in L2"),
    "chase-l3": ("4MiB", 0, 2, "loads that hit in L3"),
    "chase": ("64MiB", 0, 0, "loads from DRAM of the same node"),
    "chase-1hop": ("64MiB", 1, 0, "loads from DRAM one hop away"),
    "chase-2hops": ("64MiB", 3, 0, "loads from DRAM two hops away"),
    "chase-3hops": ("64MiB", 7, 0, "loads from DRAM three hops away"),
}

# By when the passes of --warm have ended, which begin with empty caches and mark no operation.
FILLED = {"chase-l2": "600us", "chase-l3": "6ms"}

register(__file__, *(
    Workload(name, summary, "batches of 256 loads", most_cores=1, warmup=FILLED.get(name, "300us"),
             arguments=lambda cores, s=size, n=node, w=warm: f"--size {s} --node {n} --warm {w}")
    for name, (size, node, warm, summary) in CASES.items()))
