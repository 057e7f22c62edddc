#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows the read bandwidth of one node and of the whole machine, with one DRAM channel and with two.

One channel is limited by its data bus. Two channels do not double the bandwidth, because another limit comes first;
the last column names it. A machine may be given as argument, for example opteron48 (default: small).
"""

import sys

from moscope_json import moscope

machine = sys.argv[1] if len(sys.argv) > 1 else "small"
for channels in (1, 2):
    rows = moscope("latency", "--bandwidth", "--machine", machine, "--set", f"dram.channels={channels}")["rows"]
    for row in rows:
        if row["name"] in ("node", "machine"):
            print(f"{machine}, channels per node: {channels}   {row['name']:<8} {row['measured']:5.1f} GB/s   "
                  f"limit: {row['limit']['name']}")
