#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows what false sharing costs under Linux: counters of four cores packed into one line, and on lines of their own.

Boots Debian's kernel, runs both forms of the workload, and prints throughput, stall and the hottest line of each.
The first time takes one to three minutes, later times less, because the booted guest is kept as a checkpoint.
The folder given (default: moscope-out/false_sharing) becomes the run directory; its report.html shows more.
"""

import sys

from moscope_json import moscope

folder = sys.argv[1] if len(sys.argv) > 1 else "moscope-out/false_sharing"
run = moscope("run", "--workload", "falseshare,falseshare-padded", "--kernel", "distro", "--cores", "4", "--windows", "1", "--out", folder)
for point in run["points"]:
    print(f"{point['workload']:<18} {point['throughput_per_s'] / 1e6:7.1f} million increments/s, "
          f"memory stall {100 * point['cycles']['memory']:.0f} % of the cores' time")
    for line in point["top_lines"][:1]:
        print(f"  hottest line: {line['name']}, {line['class']}, {line['transfers']} transfers, "
              f"{100 * line['stall_share']:.0f} % of the memory stall")
print("report:", run["report"])
