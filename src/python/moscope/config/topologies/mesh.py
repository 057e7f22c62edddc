# SPDX-License-Identifier: BSD-3-Clause
"""A mesh, as close to a square as the number of chips allows; chips are numbered by row."""

from math import isqrt

from ..topology import topology


@topology("mesh")
def mesh(chips: int) -> list[tuple[int, int]]:
    rows = next(r for r in range(isqrt(chips), 0, -1) if chips % r == 0)
    columns = chips // rows
    across = [(c, c + 1) for c in range(chips) if c % columns != columns - 1]
    down = [(c, c + columns) for c in range(chips - columns)]
    return across + down
