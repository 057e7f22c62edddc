#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows what a load from DRAM costs under four topologies of the same eight chips.

Prints the cycles of an idle load by the number of hops to the home node. More edges mean fewer hops; a hop
itself costs the same everywhere. Takes about five seconds.
"""

from moscope_json import moscope

TOPOLOGIES = ("fully_connected", "twisted_ladder", "straight_ladder", "ring")

for topology in TOPOLOGIES:
    rows = moscope("latency", "--set", f"topology={topology}")["rows"]
    cycles = [row["measured"] for row in rows if row["name"].startswith("DRAM")]
    print(f"{topology:<16} farthest node: {len(cycles) - 1} hops   cycles by hop:", *(f"{c:6.0f}" for c in cycles))
