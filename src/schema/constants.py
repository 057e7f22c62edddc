# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that hold for every machine: bytes of a line, the only size that the engine and the protocols support, and the engine's
ticks, which are femtoseconds, in units of time."""

LINE = 64
FS_PER_NS, FS_PER_US, FS_PER_MS, FS_PER_S = 10**6, 10**9, 10**12, 10**15
