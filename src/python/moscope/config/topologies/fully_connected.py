# SPDX-License-Identifier: BSD-3-Clause
"""Every chip linked to every other: what the links cost, a bound for comparisons. Not a real board."""

from ..topology import topology


@topology("fully_connected")
def fully_connected(chips: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(chips) for b in range(a + 1, chips)]
