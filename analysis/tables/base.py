# SPDX-License-Identifier: BSD-3-Clause
"""What tables have in common: a table is {column: [value per row]} and begins with workload, kernel and cores. Shares are fractions of
one; units are in the columns' names.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from analysis.described import FS_PER_US
from analysis.run_directory import Point

Table = dict[str, list[Any]]
Row = dict[str, Any]
KEY = ("workload", "kernel", "cores")
NO_WRITER = "no other core wrote last"  # the last writer is the waiting core itself, or there is none


def table(columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> Table:
    names = (*KEY, *columns)
    kept = list(rows)
    return {name: [row[i] for row in kept] for i, name in enumerate(names)}


def key(p: Point) -> tuple[str, str, int]:
    return (p.workload, p.kernel, p.cores)


def once(made: Callable[[Point], list[Row]]) -> Callable[[Point], list[Row]]:
    """Made once for each point; its rows are for reading only."""

    @wraps(made)
    def kept(p: Point) -> list[Row]:
        name = f"{made.__module__}.{made.__name__}"
        if name not in p.made:
            p.made[name] = made(p)
        return list(p.made[name])

    return kept


def us(fs: int) -> float:
    return fs / FS_PER_US


def share(fs: int, p: Point) -> float:
    """Of all waiting of the point."""
    return fs / p.waiting_fs if p.waiting_fs else 0.0
