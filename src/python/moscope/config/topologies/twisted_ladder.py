# SPDX-License-Identifier: BSD-3-Clause
"""Eight sockets, the board maker's usual wiring (x: AMD AGESA topology list, "eight twisted ladder").
Chips 0, 1, 6 and 7 have two coherent links, their third is for I/O; mean 1.5625 hops, at most 3."""

from ..topology import topology


@topology("twisted_ladder", chips=8)
def twisted_ladder(chips: int) -> list[str]:
    return "0-1 0-2 1-3 2-4 2-5 3-4 3-5 4-6 5-7 6-7".split()
