# SPDX-License-Identifier: BSD-3-Clause
"""Which figures of a sweep's points are shown: by the plots and the table of its report, and by the command."""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

MOST_MAIN = 4
TIME = "seconds"
# Figures of the host, which are not results of the simulation. They are plotted only if a plot names them, and are the last columns.
HOST = ("host_s", "host_s_per_ms", "host_cpu_s", "host_bytes", "test_seconds", "loads_per_second", TIME)


def main(known: Sequence[str], wanted: Iterable[str], distinct: Callable[[str], int]) -> list[str]:
    """The names that match `wanted` (* stands for any text), at most MOST_MAIN: first those that differ between points. Figures of the
    host are left out. `distinct`: the number of different values of a figure."""
    found = list(dict.fromkeys(name for pattern in wanted for name in known if name not in HOST and fnmatchcase(name, pattern)))
    return sorted(found, key=lambda name: distinct(name) < 2)[:MOST_MAIN]


def columns(known: Sequence[str], main: Iterable[str], beside: Iterable[str]) -> list[str]:
    """The columns of a table of points: the main figures, the job's other figures, and then the figures of the host."""
    return host_last(name for name in dict.fromkeys([*main, *beside, TIME]) if name in known)


def host_last(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (name in HOST, name == TIME))
