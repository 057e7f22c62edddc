# SPDX-License-Identifier: BSD-3-Clause
"""The machine description: frozen dataclasses whose every value carries its unit and its source.

A chip is what has its own crossbar, memory controller and L3: a socket on the 48-core machine, a die in a
Magny-Cours package. Chips and nodes are the same thing. Fields accept quantities or the texts that they
are parsed from; `replace(base, key=...)` makes variants. Values that can be derived are methods here, not
fields. Everything is checked by `validate()` before anything runs.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from . import topology as topo
from .errors import ConfigError, suggest
from .routing import Routing, Table, compute
from .topology import Topology
from .units import LEAVES, Count, Cycles, Flag, Frequency, Name, ProtocolName, Quantity, Size, Time, Width

PARSED = (Topology, Routing)
# The engine's room: src/cpu/x86/timed.
PIPELINE_MOST = {"issue_width": 16, "store_buffer": 256, "l1d_tlb": 256}


class _Keyed(type):
    """Says of a call what Python would say as a TypeError in its own words."""

    def __call__(cls, *args: Any, **values: Any) -> Any:
        known = field_kinds(cls)
        for key in values:
            if key not in known:
                raise ConfigError(f"{cls.__name__}: unknown key {key!r}", suggest(key, known))
        given = {*list(known)[: len(args)], *values}
        wanted = [f.name for f in dataclasses.fields(cls)  # type: ignore[arg-type]
                  if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING and f.name not in given]
        if wanted:
            raise ConfigError(f"{cls.__name__}: no value for {', '.join(wanted)}", f"{wanted[0]}=..., see docs/machines.md")
        return super().__call__(*args, **values)


class Described(metaclass=_Keyed):
    """Base of the description's classes: turns texts into quantities as it is built."""

    def __post_init__(self) -> None:
        for name, kind in field_kinds(type(self)).items():
            object.__setattr__(self, name, coerce(kind, getattr(self, name), name))


@functools.cache
def field_kinds(cls: type) -> dict[str, Any]:
    """Name and type of each field of a description class."""
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def coerce(kind: Any, value: Any, key: str, source: str = "") -> Any:
    """`value` as the field `key` of type `kind` wants it; a ConfigError names the key."""
    try:
        if kind in PARSED:
            return kind.parse(value, source)
        if isinstance(kind, type) and issubclass(kind, LEAVES):
            if isinstance(value, LEAVES) and not isinstance(value, kind) and not (isinstance(value, Name) and issubclass(kind, Name)):
                # A Count is an int and a Name a str, but neither stands for a quantity with a unit.
                raise ConfigError(f"{value} is a {_kind_name(type(value))}", f"a {_kind_name(kind)}")
            return value if isinstance(value, kind) and not source else kind(value, source)
        if isinstance(kind, type) and issubclass(kind, Described):
            if not isinstance(value, kind):
                raise ConfigError(f"{value!r:.40} is no {kind.__name__}", f"{kind.__name__}({', '.join(field_kinds(kind))})")
            return value
        if typing.get_origin(kind) is Mapping or kind is Mapping:
            if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
                raise ConfigError(f"{value!r:.40} is no dictionary", "a dictionary of names and values")
            return dict(value)
        if kind is str and not isinstance(value, str):
            raise ConfigError(f"{value!r:.40} is no text", "a text in quotes")
        return value
    except ConfigError as error:
        if error.what.startswith(f"{key}:"):
            raise
        raise ConfigError(f"{key}: {error.what}", error.right) from None


def _kind_name(kind: type) -> str:
    if issubclass(kind, Quantity):
        return kind.kind
    return {Count: "count", Flag: "true or false", Name: "name", ProtocolName: "name"}[kind]


@dataclass(frozen=True)
class Cache(Described):
    """A set-associative cache array: size = sets x ways x line."""

    size: Size
    ways: Count
    replacement: Name = Name("lru", "assumed")

    def sets(self, line: Size) -> int:
        return self.size.bytes // (int(self.ways) * line.bytes)


@dataclass(frozen=True)
class ProbeFilter(Described):
    """The sparse directory of HT Assist; it lives in some ways of the L3 of its node."""

    enabled: Flag
    l3_ways: Count
    entry: Size
    ways: Count
    replacement: Name = Name("lru", "assumed")


@dataclass(frozen=True)
class Latencies(Described):
    """What each step of an access costs by itself. Whole latencies follow from these, the crossbar, the
    links and the DRAM; they are not written down. Core cycles inside a core, northbridge cycles outside."""

    l1_hit: Cycles  # load to use in the first-level cache, core cycles
    l2_hit: Cycles  # from the L1 miss until the data of the L2 is used, core cycles
    l2_miss: Cycles  # from the L1 miss through the L2 to the northbridge: requests, victims, answers, core cycles
    done: Cycles  # from the last response to the completion that the home waits for, core cycles
    l3_hit: Cycles  # from a request's arrival at the L3 to its data, northbridge cycles
    l3_miss: Cycles  # from a request's arrival at the L3 to the request to the home, northbridge cycles
    core_tags: Cycles  # from a look into the tags of cores that have nothing to its result, northbridge cycles
    probe_response: Cycles  # from the last core's answer to a probe to that of the chip, northbridge cycles
    home: Cycles  # responses and grants of the home agent, northbridge cycles
    probe_filter: Cycles  # look-up before probes go out, northbridge cycles
    memory_controller: Cycles  # from a request's arrival at the home to its place in the DRAM queue, northbridge cycles
    dma: Cycles  # from a device's request to the crossbar, northbridge cycles


@dataclass(frozen=True)
class Crossbar(Described):
    """The crossbar of a chip, clocked by the northbridge."""

    latency: Time  # one pass
    port: Size  # bytes per cycle that a port of a core or memory controller takes


@dataclass(frozen=True)
class Credits(Described):
    """Buffers at the receiving end of each direction of a coherent link: a base count per channel, and a free
    list that any channel may draw on. With `per`, the counts are those of a link of that width (a sublink), and
    a link of several times the width has several times as many."""

    request: Count
    posted: Count
    response: Count
    probe: Count
    request_data: Count
    response_data: Count
    free: Count = Count(0, "none unless said")
    free_data: Count = Count(0, "none unless said")
    per: Width | None = None

    def sets(self, width: Width) -> int:
        """How often a link of a width has these buffers."""
        if self.per is None:
            return 1
        if width.bits % self.per.bits:
            raise ConfigError(f"links.credits.per: a link of {width} is not made of links of {self.per}", "a width that divides all links'")
        return width.bits // self.per.bits


@dataclass(frozen=True)
class Packets(Described):
    """Bytes of a packet without data, by channel. A packet with data is longer by the data: a line."""

    request: Size
    posted: Size
    response: Size
    probe: Size


@dataclass(frozen=True)
class Links(Described):
    """HyperTransport links; edges of the topology may have widths and clocks of their own."""

    width: Width
    clock: Frequency  # two transfers per clock
    latency: Time  # wire, serialiser and synchronisation, one way; the packet's length comes on top
    credits: Credits
    packets: Packets

    def byte_time(self, width: Width | None = None, clock: Frequency | None = None) -> Fraction:
        """Femtoseconds per byte in one direction."""
        return (clock or self.clock).period * 4 / (width or self.width).bits


@dataclass(frozen=True)
class Dram(Described):
    """Memory of one node: a standard out of configs/dram, the channels, and the settings that differ
    from the standard's table."""

    standard: Name
    channels: Count
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pipeline(Described):
    """A core in detailed mode, beside its caches. What each instruction takes is a table of the family's manual
    (src/cpu/x86/timed/op_timing.cc). The values given here are family 10h's."""

    issue_width: Count = Count(3, "x: AMD 40546, three-way")  # operations per cycle
    locked: Cycles = Cycles("12cycles", "assumed")  # a locked operation beyond its accesses
    store_buffer: Count = Count(32, "assumed: most of the 44-entry load/store unit (x: AMD 40546, section A.5.4) hold loads")
    l1d_tlb: Count = Count(48, "x: AMD 40546, section A.10")  # entries, fully associative, for pages of all sizes
    l2_tlb: Cycles = Cycles("5cycles", "assumed")  # what a miss in the first level takes that the second level serves
    interrupt: Time = Time("60ns", "assumed")  # from its arrival at the core to the core's notice


@dataclass(frozen=True)
class References(Described):
    """Published idle latencies in core cycles, for comparison only; nothing is computed from them."""

    l1: Cycles | None = None
    l2: Cycles | None = None
    l3: Cycles | None = None
    dram: Cycles | None = None
    dram_hop: Cycles | None = None


@dataclass(frozen=True)
class Machine(Described):
    name: str
    protocol: ProtocolName  # or the path of its .slicc file
    chips: Count
    cores_per_chip: Count
    core_clock: Frequency
    nb_clock: Frequency
    line: Size
    l1i: Cache
    l1d: Cache
    l2: Cache
    l3: Cache
    probe_filter: ProbeFilter
    latencies: Latencies
    outstanding_misses: Count  # per core
    crossbar: Crossbar
    topology: Topology
    links: Links
    memory_per_node: Size
    dram: Dram
    pipeline: Pipeline = Pipeline()
    cpu: Name = Name("opteron8431", "P")  # what the guest sees: a file in configs/cpus
    routing: Routing = Routing()
    references: References = References()
    params: Mapping[str, Any] = field(default_factory=dict)  # "MACHINE.PARAMETER": value, past any binding

    # --- derived ---

    @property
    def cores(self) -> int:
        return int(self.chips) * int(self.cores_per_chip)

    def l3_data(self) -> Cache:
        """The part of the L3 that holds data: the probe filter takes its ways away."""
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

    def _check_pipeline(self) -> None:
        for name, most in PIPELINE_MOST.items():
            value = getattr(self.pipeline, name)
            if not 1 <= value <= most:
                raise ConfigError(f"pipeline.{name}: {value}", f"1 to {most}")
        for name in ("locked", "l2_tlb"):
            if getattr(self.pipeline, name).count > 1_000_000:
                raise ConfigError(f"pipeline.{name}: {getattr(self.pipeline, name)}", "at most a million cycles")
        if self.pipeline.interrupt.fs > Time("1ms").fs:
            raise ConfigError(f"pipeline.interrupt: {self.pipeline.interrupt}", "at most 1ms")

    def validate(self) -> Machine:
        """Checks each value and their fit; returns the machine with its topology resolved."""
        _at_least(self, "chips", self.chips, 1)
        _at_least(self, "cores_per_chip", self.cores_per_chip, 1)
        _at_least(self, "outstanding_misses", self.outstanding_misses, 1)
        self._check_pipeline()
        if self.chips > topo.MAX_CHIPS:
            raise ConfigError(f"chips: {self.chips} chips", f"at most {topo.MAX_CHIPS}")
        if self.cores > 256:
            raise ConfigError(f"cores_per_chip: {self.cores} cores in all", "at most 256")
        if self.line.bytes != 64:
            raise ConfigError(f"line: a line of {self.line}", "64B; the engine and the protocols know no other")
        for key in ("l1i", "l1d", "l2", "l3"):
            _check_cache(key, getattr(self, key), self.line)
        self._check_filter()
        self._check_links()
        if self.latencies.l1_hit.count < 1:
            raise ConfigError("latencies.l1_hit: 0 cycles", "1cycle or more")
        for key, time in (("crossbar.latency", self.crossbar.latency), ("links.latency", self.links.latency)):
            if not 0 < time.fs <= Time("1ms").fs:
                raise ConfigError(f"{key}: {time}", "more than nothing, and at most 1ms")
        for name in field_kinds(Latencies):
            if getattr(self.latencies, name).count > 1_000_000:
                raise ConfigError(f"latencies.{name}: {getattr(self.latencies, name)}", "at most a million cycles")
        _at_least(self, "dram.channels", self.dram.channels, 1)
        page = 1 << 20
        if self.memory_per_node.bytes == 0 or self.memory_per_node.bytes % page:
            raise ConfigError(f"memory_per_node: {self.memory_per_node}", "a multiple of 1MiB, such as 8GiB")
        if self.memory_per_node.bytes * self.chips > 1 << 48:
            raise ConfigError("memory_per_node: more memory than 48-bit addresses reach", "256TiB in all at most")
        machine = dataclasses.replace(self, topology=self.topology.resolved(int(self.chips)))
        for edge in machine.edges():
            self.links.credits.sets(edge.width or self.links.width)
        machine.routes()
        return machine

    def _check_filter(self) -> None:
        pf = self.probe_filter
        _check_replacement("probe_filter", pf.replacement)
        _at_least(self, "probe_filter.ways", pf.ways, 1)
        _at_least(self, "probe_filter.entry", Count(pf.entry.bytes), 1)
        if not pf.enabled:
            return
        if not 1 <= pf.l3_ways < self.l3.ways:
            raise ConfigError(
                f"probe_filter.l3_ways: {pf.l3_ways} of {self.l3.ways} ways", f"1 to {self.l3.ways - 1}, so that data has some left"
            )
        if self.filter_bytes() % (pf.entry.bytes * pf.ways):
            raise ConfigError(
                f"probe_filter.ways: {self.filter_bytes()} bytes are no whole number of sets of {pf.ways} entries of {pf.entry}",
                "ways x entry that divides the filter's bytes",
            )
        _power_of_two("probe_filter.ways", self.filter_sets(), f"{pf.ways} ways")

    def _check_links(self) -> None:
        for name in field_kinds(Credits):
            if name == "per":
                continue
            value, least = getattr(self.links.credits, name), 0 if name.startswith("free") else 1
            if not least <= value <= 1024:
                raise ConfigError(f"links.credits.{name}: {value} buffers", f"{least} to 1024")
        for name in field_kinds(Packets):
            size = getattr(self.links.packets, name)
            if not 1 <= size.bytes <= 64:
                raise ConfigError(f"links.packets.{name}: {size}", "the bytes of a packet without data, 1B to 64B, such as 8B")
        _at_least(self, "crossbar.port", Count(self.crossbar.port.bytes), 1)
        edges = self.topology.edges or ()
        for what, clock in [("links.clock", self.links.clock)] + [(f"topology: edge {e}", e.clock) for e in edges if e.clock]:
            if clock.hertz.denominator != 1 or clock.hertz > 10**12:
                raise ConfigError(f"{what}: {clock}", "a whole number of hertz up to 1000GHz")


def _at_least(machine: Machine, key: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigError(f"{key}: {int(value)}", f"{least} or more")


REPLACEMENT = ("lru", "tree_plru", "fifo", "random")


def _check_replacement(key: str, name: str) -> None:
    if name not in REPLACEMENT:
        raise ConfigError(f"{key}.replacement: {name!r}", f"one of {', '.join(REPLACEMENT)}")


def _check_cache(key: str, cache: Cache, line: Size) -> None:
    _check_replacement(key, cache.replacement)
    if cache.ways < 1 or cache.ways > 1024:
        raise ConfigError(f"{key}.ways: {cache.ways} ways", "1 to 1024")
    if cache.size.bytes == 0 or cache.size.bytes % (cache.ways * line.bytes):
        unit = int(cache.ways) * line.bytes
        near = max(1, round(cache.size.bytes / unit)) * unit
        raise ConfigError(
            f"{key}.size: {cache.size} is no whole number of sets of {cache.ways} ways of {line}", f"a multiple of {unit}B, such as {near}B"
        )
    _power_of_two(f"{key}.size", cache.sets(line), f"{cache.size} in {cache.ways} ways")


def _power_of_two(key: str, sets: int, what: str) -> None:
    if sets & (sets - 1):
        low = 1 << (sets.bit_length() - 1)
        raise ConfigError(f"{key}: {what} makes {sets} sets, not a power of two", f"{low} or {2 * low} sets")


def replace(base: Any, /, **changes: Any) -> Any:
    """A copy with some values changed: `replace(base, name="mine", chips=4)`."""
    if not dataclasses.is_dataclass(base) or not isinstance(base, Described):
        raise ConfigError(f"replace: {base!r:.40} is no part of a machine description", "replace(machine, key=value, ...)")
    return dataclasses.replace(base, **changes)  # type: ignore[type-var]
