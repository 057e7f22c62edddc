# SPDX-License-Identifier: BSD-3-Clause
"""Eight sockets as a 2 x 4 ladder (x: AMD AGESA topology list, "eight straight ladder").
Chips 0, 1, 6 and 7 have two coherent links, their third is for I/O; mean 1.75 hops, at most 4."""

from ..topology import topology


@topology("straight_ladder", chips=8)
def straight_ladder(chips: int) -> list[str]:
    return "0-1 0-2 1-3 2-3 2-4 3-5 4-5 4-6 5-7 6-7".split()
