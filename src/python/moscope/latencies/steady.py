# SPDX-License-Identifier: BSD-3-Clause
"""Counts what streams of accesses do in steady state: the caches are full, and the queues have their final length.

First each core reads FILL times the lines that its caches hold. Until then, fewer lines leave the caches and the probe filters than
later. A warm-up and a window follow. Both last longer on a machine with longer latencies, because accesses under way at the ends of
the window count at one end only. A window is long enough if it lasts LATENCIES mean latencies, if no resource is in use for more time
than there is, and if accesses in flight = rate x latency (Little's law). Otherwise a fresh machine runs again with a longer one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moscope.errors import UserError
from moscope.experiment import Subject, slowness_is_a_user_error
from moscope.latencies.rows import cache_sizes
from moscope.schema.constants import FS_PER_NS, FS_PER_S, LINE

FILL = 1.3
# The first window, and the part of it by which a warm-up precedes it.
WINDOW_FS, WARM = 200_000 * FS_PER_NS, 0.25
# Mean latencies in a window; a window with that many times MOST of them is not repeated, nor is one of a second.
LATENCIES, MOST = 150, 16
LONGEST_FS = FS_PER_S
# By how much a share may exceed the whole, and by how much the number of accesses in flight may differ from the true one.
EXCESS, DIFFERENCE = 0.005, 0.01


@dataclass(frozen=True)
class Counted:
    """What the streams did in a window, and the machine's counters."""

    done: int
    latency_fs: float  # mean of an access
    window_fs: int
    statistics: dict[str, Any]

    @property
    def gb_per_s(self) -> float:
        """10^9 bytes of lines per second."""
        return self.done * LINE * FS_PER_S / self.window_fs / 1e9


def count(subject: Subject, what: str, streams: list[dict[str, Any]], fill: int) -> Counted:
    """Each stream reads `fill` lines, before a warm-up and the window. UserError for a machine whose streams reach no steady state
    within a second, or within many latencies."""
    window = WINDOW_FS
    while window <= LONGEST_FS:
        with slowness_is_a_user_error(what):
            result = subject.run([
                {"kind": "loads", "streams": streams, "accesses": fill},
                {"kind": "loads", "streams": [{**s, "skip": fill} for s in streams], "warm_fs": int(WARM * window), "window_fs": window,
                 "statistics": True},
            ])[1]
        done = sum(s["done"] for s in result["streams"])
        latency = sum(s["latency_fs"] for s in result["streams"]) / max(done, 1)
        counted = Counted(done, latency, window, result["statistics"])
        if done and window >= LATENCIES * latency and is_steady(counted, sum(s["in_flight"] for s in streams)):
            return counted
        if done and window >= MOST * LATENCIES * latency:
            raise UserError(f"{what}: its bandwidth still changes after {window / FS_PER_NS:.0f} ns: expected a machine that settles")
        window = max(2 * window, int(1.5 * LATENCIES * latency)) if done else 16 * window
    raise UserError(f"{what}: a window of {LATENCIES} latencies would take more than {LONGEST_FS / FS_PER_S:g} s: expected a machine with "
                    "shorter latencies")


def is_steady(counted: Counted, in_flight: int) -> bool:
    """Whether the counts are possible for that many accesses at a time."""
    under_way = counted.done * counted.latency_fs / counted.window_fs
    return abs(under_way / in_flight - 1) <= DIFFERENCE and max(shares(counted), default=0) <= 1 + EXCESS


def shares(counted: Counted) -> Iterator[float]:
    """The part of the window in which each direction of a link, and each port of a crossbar, was in use."""
    network = counted.statistics["network"]
    for link in network["links"]:
        yield sum(c["busy_fs"] for c in link["channels"].values()) / counted.window_fs
    for port in network["ports"]:
        yield port["busy_fs"] / counted.window_fs


def cached_lines(subject: Subject, cores: int) -> int:
    """The lines that the caches of a core hold, with its part of the L3. `cores`: those in use, which fill one chip after the other."""
    sizes = dict(cache_sizes(subject))
    shared = sizes.pop("L3", 0) // min(cores, int(subject.machine.cores_per_chip))
    return (sum(sizes.values()) + shared) // LINE


def lines_to_fill(subject: Subject, cores: int) -> int:
    """The number of lines per core after which these cores, reading at the same rate, have filled their caches."""
    return int(FILL * cached_lines(subject, cores))
