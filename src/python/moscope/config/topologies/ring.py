# SPDX-License-Identifier: BSD-3-Clause
"""A ring. From five chips on, shortest paths around it have cyclic dependencies in each direction. The automatic routing
therefore omits some turns, and some paths become longer.
"""

from ..topology import topology


@topology("ring")
def ring(chips: int) -> list[tuple[int, int]]:
    if chips < 3:
        return [(a, a + 1) for a in range(chips - 1)]
    return [(a, (a + 1) % chips) for a in range(chips)]
