# SPDX-License-Identifier: BSD-3-Clause
"""The report of a sweep (docs/sweeps.md): curves over its axes, its topologies, and single figures such as `throughput ~ cores | kernel`.

    table.py       reads table.parquet and sweep.json       curves.py      figures: curves or columns, with error bars
    expression.py  FIGURE ~ AXIS | AXIS, ..                 topologies.py  the links of each variant of the machine
    page.py        report.html                              main.py        what `moscope sweep` starts
"""
