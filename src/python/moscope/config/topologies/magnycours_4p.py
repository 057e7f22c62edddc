# SPDX-License-Identifier: BSD-3-Clause
"""Four Magny-Cours packages: package p has dies 2p and 2p + 1 (L, the package's slide). Each die has its
sibling over x16 + x8 and, by one x8 link each, one die of every other package; here the one of equal
position (d: any such choice gives degree 4, diameter 2 and a mean of 1.25 hops)."""

from moscope.schema.units import Width

from ..topology import Edge, topology

SIBLING = Width("x24", "L: sibling die over x16 + x8")
BETWEEN = Width("x8", "L: one x8 link to each other package")


@topology("magnycours_4p", chips=8)
def magnycours_4p(chips: int) -> list[Edge]:
    siblings = [Edge(2 * p, 2 * p + 1, SIBLING) for p in range(4)]
    between = [Edge(2 * p + die, 2 * q + die, BETWEEN) for die in (0, 1) for p in range(4) for q in range(p + 1, 4)]
    return siblings + between
