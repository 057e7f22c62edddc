# SPDX-License-Identifier: BSD-3-Clause
"""Two Magny-Cours packages: dies 0, 1 and 2, 3 (L, the package's slide). The four dies are fully connected.
Siblings are joined by x16 + x8; dies of equal position by x16; the diagonals by x8, which is what remains of
four ports per die if one x16 is reserved for I/O (d)."""

from moscope.schema.units import Width

from ..topology import Edge, topology

SIBLING = Width("x24", "L: sibling die over x16 + x8")
STRAIGHT = Width("x16", "d: ports left")
DIAGONAL = Width("x8", "d: ports left")


@topology("magnycours_2p", chips=4)
def magnycours_2p(chips: int) -> list[Edge]:
    siblings = [Edge(0, 1, SIBLING), Edge(2, 3, SIBLING)]
    straight = [Edge(0, 2, STRAIGHT), Edge(1, 3, STRAIGHT)]
    diagonal = [Edge(0, 3, DIAGONAL), Edge(1, 2, DIAGONAL)]
    return siblings + straight + diagonal
