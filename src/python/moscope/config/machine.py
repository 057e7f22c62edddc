# SPDX-License-Identifier: BSD-3-Clause
"""The machine description: frozen dataclasses whose every value carries its unit and its source. Groups of values are
described in src/schema. This module combines them, derives values from them, and checks the conditions between them.

A chip is what has its own crossbar, memory controller and L3: a socket on the 48-core machine, a die in a Magny-Cours
package. Chips and nodes are the same thing. Fields accept quantities or the texts that they are parsed from;
`replace(base, key=...)` makes variants. Values that can be derived are methods here, not fields. Everything is
checked by `validate()` before anything runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from moscope.schema.errors import ConfigError
from moscope.schema.hierarchy import Cache, Crossbar, Dram, Latencies, ProbeFilter
from moscope.schema.links import Credits, Links, Packets
from moscope.schema.nic import Nic
from moscope.schema.parameters import Described, check_limits, coerce, field_kinds, param
from moscope.schema.pipeline import Core, Pipeline
from moscope.schema.prefetch import DramPrefetch, L1dPrefetch, L1iPrefetch
from moscope.schema.units import Count, Cycles, Frequency, Name, ProtocolName, Size

from . import topology as topo
from .routing import Routing, Table, compute
from .topology import Topology

__all__ = ["Cache", "Core", "Credits", "Crossbar", "Described", "Dram", "DramPrefetch", "L1dPrefetch", "L1iPrefetch", "Latencies",
           "Links", "Machine", "Nic", "Packets", "Pipeline", "ProbeFilter", "References", "coerce", "field_kinds",
           "replace"]


MOST_CACHE_BYTES = (1 << 31) - 1  # of the lines of a cache or a probe filter: SLICC's getCacheSize() is an int
MOST_MISSES = 63  # as many as a core of `out_of_order` can follow: Overlap::kFlights less the load that it waits for
D = TypeVar("D", bound=Described)


class References(Described):
    """Published idle latencies in core cycles, for comparison only; nothing is computed from them."""

    l1: Cycles | None = None
    l2: Cycles | None = None
    l3: Cycles | None = None
    dram: Cycles | None = None
    dram_hop: Cycles | None = None


class Machine(Described):
    name: str
    protocol: ProtocolName  # or the path of its .slicc file
    chips: Count = param("chips, each a node with memory", least=1, most=topo.MAX_CHIPS)
    cores_per_chip: Count = param("cores of each chip", least=1)
    core_clock: Frequency
    nb_clock: Frequency
    line: Size
    l1i: Cache
    l1d: Cache
    l2: Cache
    l3: Cache
    probe_filter: ProbeFilter
    latencies: Latencies
    outstanding_misses: Count = param("lines that a core requests at a time", least=1, most=MOST_MISSES)
    crossbar: Crossbar
    topology: Topology
    links: Links
    memory_per_node: Size
    dram: Dram
    pipeline: Pipeline = Pipeline()
    core: Core = Core()
    l1d_prefetch: L1dPrefetch = L1dPrefetch()
    l1i_prefetch: L1iPrefetch = L1iPrefetch()
    dram_prefetch: DramPrefetch = DramPrefetch()
    nic: Nic = Nic()
    cpu: Name = Name("opteron8431", "P")  # what the guest sees: a file in configs/cpus
    routing: Routing = Routing()
    references: References = References()
    params: Mapping[str, Any] = field(default_factory=dict)  # "MACHINE.PARAMETER": value, past any binding

    # --- derived ---

    @property
    def cores(self) -> int:
        return int(self.chips) * int(self.cores_per_chip)

    def l3_data(self) -> Cache:
        """The part of the L3 that holds data: the L3 without the ways of the probe filter."""
        if not self.probe_filter.enabled:
            return self.l3
        ways = int(self.l3.ways) - int(self.probe_filter.l3_ways)
        size = self.l3.size.bytes // int(self.l3.ways) * ways
        return Cache(Size(f"{size}B", "derived"), Count(ways, "derived"), self.l3.replacement)

    def filter_bytes(self) -> int:
        """L3 storage that the filter of a node takes."""
        return self.l3.size.bytes // int(self.l3.ways) * int(self.probe_filter.l3_ways)

    def filter_entries(self) -> int:
        return self.filter_bytes() // self.probe_filter.entry.bytes

    def filter_sets(self) -> int:
        return self.filter_entries() // int(self.probe_filter.ways)

    def edges(self) -> tuple[topo.Edge, ...]:
        edges = self.topology.resolved(int(self.chips)).edges
        assert edges is not None
        return edges

    def hops(self) -> list[list[int]]:
        """Shortest hop counts between all chips."""
        return topo.distances(self.edges(), int(self.chips))

    def routes(self) -> Table:
        """The routing table: next chip for each chip and destination."""
        edges = self.edges()
        weights = {}
        for e in edges:
            weights[e.a, e.b] = weights[e.b, e.a] = self.links.byte_time(e.width, e.clock)
        return compute(self.routing, edges, int(self.chips), weights)

    # --- checks ---

    def validate(self) -> Machine:
        """Checks each value and their fit; returns the machine with its topology resolved."""
        check_limits(self)
        if self.cores > 256:
            raise ConfigError(f"cores_per_chip: {self.cores} cores in all", "at most 256")
        if self.line.bytes != 64:
            raise ConfigError(f"line: a line of {self.line}", "64B; the engine and the protocols support no other")
        for key in ("l1i", "l1d", "l2"):
            _check_cache(key, getattr(self, key), self.line)
        _check_cache("l3", self.l3, self.line, self._fits_filter)
        self._check_filter()
        self._check_clocks()
        self._check_links()
        page = 1 << 20
        if self.memory_per_node.bytes == 0 or self.memory_per_node.bytes % page:
            raise ConfigError(f"memory_per_node: {self.memory_per_node}", "a multiple of 1MiB, such as 8GiB")
        if self.memory_per_node.bytes * self.chips > 1 << 48:
            raise ConfigError("memory_per_node: more memory than 48-bit addresses reach", "at most 256TiB in all")
        machine = dataclasses.replace(self, topology=self.topology.resolved(int(self.chips)))
        for edge in machine.edges():
            self.links.credits.sets(edge.width or self.links.width)
        machine.routes()
        return machine

    def _check_filter(self) -> None:
        pf = self.probe_filter
        if not pf.enabled:
            return
        if not 1 <= pf.l3_ways < self.l3.ways:
            raise ConfigError(
                f"probe_filter.l3_ways: {pf.l3_ways} of {self.l3.ways} ways", f"1 to {self.l3.ways - 1}, so that some ways remain for data"
            )
        if self.filter_bytes() % (pf.entry.bytes * pf.ways):
            raise ConfigError(
                f"probe_filter.ways: {self.filter_bytes()} bytes are not a whole number of sets of {pf.ways} entries of {pf.entry}",
                "ways x entry that divides the filter's bytes",
            )
        _power_of_two("probe_filter.ways", self.filter_sets(), f"{pf.ways} ways")

    def _fits_filter(self, l3: Cache) -> bool:
        try:
            dataclasses.replace(self, l3=l3)._check_filter()
        except ConfigError:
            return False
        return True

    def _check_clocks(self) -> None:
        for key in ("core_clock", "nb_clock"):
            clock = getattr(self, key)
            period = clock.period
            if not _counts_exactly(period.numerator, period.denominator):
                raise ConfigError(f"{key}: {clock}: the engine cannot count its edges exactly",
                                  "a whole number of kilohertz, such as 2.4GHz")

    def _check_links(self) -> None:
        edges = self.topology.edges or ()
        for what, clock in [("links.clock", self.links.clock)] + [(f"topology: edge {e}", e.clock) for e in edges if e.clock]:
            if clock.hertz.denominator != 1 or clock.hertz > 10**12:
                raise ConfigError(f"{what}: {clock}", "a whole number of hertz up to 1000GHz")


def _counts_exactly(numerator: int, denominator: int) -> bool:
    """Whether src/sim/clock.hh computes the edges of a clock with this period (in femtoseconds) without overflow. The limits are:
    2^40 fs times the denominator, 2^20 periods times the denominator, and the product in its division by the denominator."""
    return denominator < 1 << 23 and numerator < 1 << 43 and numerator * denominator <= 1 << 64


def _check_cache(key: str, cache: Cache, line: Size, fits: Callable[[Cache], bool] = lambda _: True) -> None:
    """Checks the shape of a cache. `fits` tells whether a cache of another size, with a power of two of sets, would be accepted."""
    set_bytes = int(cache.ways) * line.bytes
    sets, rest = divmod(cache.size.bytes, set_bytes)
    if sets and not rest and not sets & (sets - 1):
        return
    what = f"{cache.size} in {cache.ways} ways of {line} makes {cache.size.bytes / set_bytes:.10g} sets, not a power of two"
    right = _near_sizes(cache, set_bytes, fits)
    raise ConfigError(f"{key}.size: {what}", " or ".join(right) or f"a number of ways other than {cache.ways}, or a probe filter that fits")


def _near_sizes(cache: Cache, set_bytes: int, fits: Callable[[Cache], bool]) -> list[str]:
    """The next smaller and the next larger size that would be accepted."""
    low = max(cache.size.bytes // set_bytes, 1).bit_length() - 1
    below = [size for n in range(low, -1, -1) if (size := set_bytes << n) <= MOST_CACHE_BYTES]
    above = [size for n in range(low + 1, low + 16) if (size := set_bytes << n) <= MOST_CACHE_BYTES]
    found = []
    for sizes in (below, above):
        texts = (_in_units(size) for size in sizes)
        found += [next((t for t in texts if fits(dataclasses.replace(cache, size=Size(t)))), "")]
    return [text for text in found if text and Size(text).bytes != cache.size.bytes]


def _in_units(size: int) -> str:
    """The size with its unit, such as `3MiB`; in bytes if no unit fits."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size}B"


def _power_of_two(key: str, sets: int, what: str) -> None:
    if sets & (sets - 1):
        low = 1 << (sets.bit_length() - 1)
        raise ConfigError(f"{key}: {what} makes {sets} sets, not a power of two", f"{low} or {2 * low} sets")


def replace(base: D, /, **changes: Any) -> D:
    """A copy with some values changed: `replace(base, name="mine", chips=4)`."""
    if not dataclasses.is_dataclass(base) or not isinstance(base, Described):
        raise ConfigError(f"replace: {base!r:.40} is not part of a machine description", "replace(machine, key=value, ...)")
    return dataclasses.replace(base, **changes)
