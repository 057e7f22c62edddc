# SPDX-License-Identifier: BSD-3-Clause
"""Hardware prefetchers: those of a core's L1 caches and that of a memory controller. Their policies register themselves
(src/mem/prefetch)."""

from __future__ import annotations

from moscope.schema.describe import Counter, Counters
from moscope.schema.parameters import Described, Group, param
from moscope.schema.units import Count, Name


def l1d_policies() -> list[str]:
    from moscope import _engine

    names: list[str] = _engine.prefetch_policies("l1d")
    return names


def l1i_policies() -> list[str]:
    from moscope import _engine

    names: list[str] = _engine.prefetch_policies("l1i")
    return names


def dram_policies() -> list[str]:
    from moscope import _engine

    names: list[str] = _engine.prefetch_policies("dram")
    return names


class L1dPrefetch(Described):
    """The prefetcher of a core's L1 data cache. It learns from accesses that miss the L1 and from the first use of a line that it
    has brought, and fetches lines of the same 4 KiB page into the L1."""

    policy: Name = param("which lines it fetches; `off`: none", default=Name("stride", "x: AMD 40546, L1 data prefetcher"),
                         choices=l1d_policies)
    streams: Count = param("instructions whose strides it remembers", default=Count(32, "assumed"), least=1, most=4096)
    ahead: Count = param("how many strides ahead of an access it fetches", default=Count(
        3, "x: AMD 25112, section 5.6, of the previous family: the third line after two in a row"), least=1, most=32)
    buffers: Count = param("no prefetch is sent while this many lines of the core are in flight, prefetches included",
                           default=Count(10, "x: miss buffers of family 10h"), least=1, most=64)


class L1iPrefetch(Described):
    """The prefetcher of a core's L1 instruction cache. With each line that is absent when it is requested, it fetches the lines
    after it, within the 4 KiB page."""

    policy: Name = param("which lines it fetches; `off`: none", default=Name(
        "next_line", "x: AMD 25112, section A.5, of the previous family: the line and the next one"), choices=l1i_policies)
    ahead: Count = param("how many lines after the requested one it fetches", default=Count(1, "x: AMD 25112, section A.5"),
                         least=1, most=32)
    buffers: Count = param("no prefetch is sent while this many lines of the core are in flight, prefetches included",
                           default=Count(10, "x: miss buffers of family 10h"), least=1, most=64)


class DramPrefetch(Described):
    """The prefetcher of a node's memory controller. It learns from all reads of the node's DRAM, and reads lines of the same 4 KiB
    page into a buffer of the controller. A write to a line empties its entry."""

    policy: Name = param("which lines it reads; `off`: none", default=Name("stride", "x: AMD 31116, F2x11C"), choices=dram_policies)
    streams: Count = param("sequences of reads that it tracks at a time", default=Count(16, "assumed"), least=1, most=1024)
    reach: Count = param("the largest stride in lines", default=Count(4, "x: AMD 31116"), least=1, most=63)
    ahead: Count = param("how many strides ahead of a read it reads", default=Count(
        2, "assumed; x: AMD 31116, register F2x11C: one to three, by confidence"), least=1, most=32)
    lines: Count = param("lines of its buffer", default=Count(16, "assumed"), least=1, most=1024)
    in_flight: Count = param("most prefetch reads in the DRAM at a time", default=Count(8, "assumed"), least=1, most=64)


STATS = Counters("PrefetchStats", "What a prefetcher counts. A fetched line is `useful`, `late` or `useless` once that is known.", (
    Counter("fetched", "lines", "lines that the prefetcher requested"),
    Counter("useful", "lines", "lines that had arrived when they were first requested"),
    Counter("late", "lines", "lines that were still under way when they were first requested"),
    Counter("useless", "lines", "lines that were lost, or forgotten by the prefetcher, before any request"),
), namespace="moscope")

DESCRIPTIONS = (Group("L1dPrefetchParams", L1dPrefetch, "moscope"), Group("L1iPrefetchParams", L1iPrefetch, "moscope"),
                Group("DramPrefetchParams", DramPrefetch, "moscope"), STATS)
