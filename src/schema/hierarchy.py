# SPDX-License-Identifier: BSD-3-Clause
"""Caches, the probe filter, and what each step of an access costs by itself: core cycles inside a core, northbridge cycles
outside. Whole latencies follow from these, the crossbar, the links and the DRAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from moscope.schema.parameters import Described, Group, param
from moscope.schema.units import Count, Cycles, Flag, Name, Size, Time

MOST_CYCLES = "1000000cycles"


def replacement_policies() -> list[str]:
    """Names of the policies, each of which registers itself (src/mem/ruby/runtime/replacement)."""
    from moscope import _engine

    names: list[str] = _engine.replacement_policies()
    return names


class Cache(Described):
    """A set-associative cache array: size = sets x ways x line."""

    size: Size = param("capacity, without tags")
    ways: Count = param("associativity: ways of a set", least=1, most=1024)
    replacement: Name = param("the replacement policy", default=Name("lru", "assumed"), choices=replacement_policies)

    def sets(self, line: Size) -> int:
        return self.size.bytes // (int(self.ways) * line.bytes)


class ProbeFilter(Described):
    """The sparse directory of HT Assist. It lives in some ways of the L3 of its node."""

    enabled: Flag = param("whether the machine uses a probe filter")
    l3_ways: Count = param("ways of the L3 that the filter occupies")
    entry: Size = param("size of an entry", least="1B")
    ways: Count = param("associativity: entries of a set", least=1)
    replacement: Name = param("the replacement policy", default=Name("lru", "assumed"), choices=replacement_policies)


class Latencies(Described):
    """What each step of an access costs by itself."""

    l1_hit: Cycles = param("load-to-use latency of the first-level cache, core cycles", least="1cycle", most=MOST_CYCLES)
    l2_hit: Cycles = param("from the L1 miss until the data of the L2 is used, core cycles", most=MOST_CYCLES)
    l2_miss: Cycles = param("from a core to its L3, past the L2: requests, victims and answers to probes, core cycles", most=MOST_CYCLES)
    done: Cycles = param("from the last response at the core until the core reports completion to the home, core cycles", most=MOST_CYCLES)
    l3_hit: Cycles = param("from a request's arrival at the L3 to its data, northbridge cycles", most=MOST_CYCLES)
    l3_miss: Cycles = param("from a request's arrival at the L3 to the request to the home, northbridge cycles", most=MOST_CYCLES)
    core_tags: Cycles = param("a probe's lookup in the tags of cores that do not have the line, northbridge cycles", most=MOST_CYCLES)
    probe_response: Cycles = param("from the last core's answer to a probe to the chip's response, northbridge cycles", most=MOST_CYCLES)
    home: Cycles = param("the home agent's work until it sends data or a grant, northbridge cycles", most=MOST_CYCLES)
    probe_filter: Cycles = param("the lookup before the home sends probes, northbridge cycles", most=MOST_CYCLES)
    memory_controller: Cycles = param("from a request's arrival at the home to its place in the DRAM queue, northbridge cycles",
                                      most=MOST_CYCLES)
    dma: Cycles = param("from a device's request to the crossbar, northbridge cycles", most=MOST_CYCLES)


class Crossbar(Described):
    """The crossbar of a chip, clocked by the northbridge."""

    latency: Time = param("one crossing", least="1fs", most="1ms")
    port: Size = param("bytes per northbridge cycle that the crossbar delivers to one controller", least="1B",
                       most="1GiB")


class Dram(Described):
    """Memory of one node: a standard out of configs/dram, the channels, and settings that differ from the standard's table."""

    standard: Name = param("the table of timings, a file in configs/dram")
    channels: Count = param("64-bit channels of the node", least=1)
    settings: Mapping[str, Any] = field(default_factory=dict)


DESCRIPTIONS = tuple(Group(of.__name__, of) for of in (Cache, ProbeFilter, Latencies, Crossbar, Dram))
