# SPDX-License-Identifier: BSD-3-Clause
"""The name of a point's folder in a run directory, from the values that its point.json also has."""

NO_KERNEL = "none (gem5's syscall emulation)"  # `kernel` of a program alone, on gem5


def point_name(workload: str, kernel: str, cores: int, gem5: bool = False) -> str:
    parts = [workload, *(["gem5"] if gem5 else []), *([kernel] if kernel != NO_KERNEL else []), cores]
    return "-".join(map(str, parts)).replace("/", "_")
