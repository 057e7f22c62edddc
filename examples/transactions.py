#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows single transactions of a run: who supplied the lines that cores waited for, and how long that took.

Runs the workload `counter` on 8 cores of two chips with --detail full, reads transactions.parquet, and prints the
number and the mean latency of loads, stores and locked operations by supplier and link crossings. Needs pyarrow.
"""

import sys
from pathlib import Path

from moscope_json import moscope
from pyarrow import parquet

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "moscope-out/transactions")
moscope("run", "--workload", "counter", "--kernel", "distro", "--cores", "8", "--windows", "1", "--window", "200us", "--detail", "full",
        "--out", str(folder))
table = parquet.read_table(next(folder.glob("points/*/transactions.parquet")), columns=["supplier", "hops", "latency", "kind"])
table = table.filter(parquet.filters_to_expression([("kind", "in", ["load", "store", "rmw"])]))
groups = table.group_by(["supplier", "hops"]).aggregate([("latency", "count"), ("latency", "mean")])
for row in sorted(groups.to_pylist(), key=lambda row: (row["supplier"] or "", row["hops"] or 0)):
    print(f"{row['supplier'] or 'none':<10} {row['hops']} hops  {row['latency_count']:7} transactions, "
          f"mean {row['latency_mean'] / 1e6:6.1f} ns")
