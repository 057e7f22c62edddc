# SPDX-License-Identifier: BSD-3-Clause
"""Turns a timing table as the standards print it (whole clocks, or nanoseconds) into what the engine reads: whole
clocks, in femtoseconds. A controller's registers hold whole clocks, so every time is rounded up."""

from collections.abc import Mapping

FS_PER_NS = 1_000_000


def clocks(limit: int | float, tck_ns: float) -> int:
    """Whole DRAM clocks of a limit: an int is in clocks, a float in nanoseconds."""
    if isinstance(limit, int):
        return limit
    return -(-round(limit * FS_PER_NS) // round(tck_ns * FS_PER_NS))


def at_least(least: int, ns: float, tck_ns: float) -> int:
    """Clocks of a limit that JEDEC gives as the larger of some clocks and a time."""
    return max(least, clocks(ns, tck_ns))


def resolve(tck_ns: float, timing: Mapping[str, int | float]) -> dict[str, int]:
    """Timings in femtoseconds, each a whole number of clocks."""
    period = round(tck_ns * FS_PER_NS)
    for name, limit in timing.items():
        if not isinstance(limit, int | float):
            raise TypeError(f"{name}: {limit!r} is neither clocks (an int) nor nanoseconds (a float)")
    return {name: clocks(limit, tck_ns) * period for name, limit in timing.items()}
