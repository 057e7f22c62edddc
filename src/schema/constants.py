# SPDX-License-Identifier: BSD-3-Clause
"""Constants of all machines: the line size in bytes, the only one that the engine and the protocols support, and units of time in
ticks of the engine, which are femtoseconds."""

LINE = 64
FS_PER_NS, FS_PER_US, FS_PER_MS, FS_PER_S = 10**6, 10**9, 10**12, 10**15
