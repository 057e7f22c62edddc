# SPDX-License-Identifier: BSD-3-Clause
"""Every chip is linked to every other. Not a real board: a bound that shows the cost of the links."""

from ..topology import topology


@topology("fully_connected")
def fully_connected(chips: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(chips) for b in range(a + 1, chips)]
