# SPDX-License-Identifier: BSD-3-Clause
"""How long a request may wait before it counts as lost: the watchdog's limit for a machine.

The usual limits are far longer than any request waits on the supplied machines. On a machine with very slow links,
caches or DRAM, a request may rightly take longer, so its limits grow with the time that the steps of a request take, and with the
number of requests that may wait in front of it.
"""

from fractions import Fraction
from typing import Any

from moscope.config import Machine
from moscope.config.machine import field_kinds
from moscope.config.routing import route_hops

EXPERIMENT_FS = 10**12  # even under load, requests in experiments finish far earlier
# The limit of an experiment is at least this many times the duration of a request's steps. If more requests can be in flight, their
# number takes its place, because all of them may wait for the same link or home.
STEPS = 100
# No limit is longer: the engine's limit for a phase.
LONGEST_FS = 4 * 10**15


def slowness(machine: Machine, elaborated: dict[str, Any]) -> float:
    """The factor, 1 or more, by which the limits of this machine exceed the usual ones."""
    timing = elaborated["dram"]["timing_fs"]
    cycles = sum(getattr(machine.latencies, name).count for name in field_kinds(type(machine.latencies)))
    byte = max((machine.links.byte_time(e.width, e.clock) for e in machine.edges()), default=Fraction(0))
    hop = machine.crossbar.latency.fs + machine.links.latency.fs + 2 * machine.line.bytes * byte
    steps = (cycles * max(Fraction(machine.core_clock.period), Fraction(machine.nb_clock.period))
             + 4 * (1 + max(map(max, route_hops(machine.routes())))) * hop
             + sum(fs for name, fs in timing.items() if name != "tREFI")
             + sum(elaborated["dram"].get(name, 0) for name in ("frontend_fs", "backend_fs")))
    # A prefetcher sends requests while its core has fewer than `buffers` lines in flight.
    prefetched = (elaborated[name]["buffers"] for name in ("l1d_prefetch", "l1i_prefetch") if name in elaborated)
    requests = machine.cores * max([int(machine.outstanding_misses), *prefetched])
    return max(1.0, float(max(STEPS, requests) * steps / EXPERIMENT_FS))


def limit(usual: int, slower: float = 1.0) -> int:
    """The limit in femtoseconds on a machine of this slowness, where the supplied machines have the `usual` one."""
    return max(usual, min(int(usual * slower), LONGEST_FS))
