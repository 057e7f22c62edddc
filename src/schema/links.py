# SPDX-License-Identifier: BSD-3-Clause
"""HyperTransport links: width, clock, buffers and packets."""

from __future__ import annotations

from fractions import Fraction

from moscope.schema.errors import ConfigError
from moscope.schema.parameters import Described, Group, param
from moscope.schema.units import Count, Frequency, Size, Time, Width


class Credits(Described):
    """Buffers at the receiving end of each direction of a coherent link: a base count per channel, and a free
    list that any channel may draw on. With `per`, the counts are those of a link of that width (a sublink), and
    a link of several times the width has several times as many."""

    request: Count = param("buffers of the request channel", least=1, most=1024)
    posted: Count = param("buffers of the posted channel", least=1, most=1024)
    response: Count = param("buffers of the response channel", least=1, most=1024)
    probe: Count = param("buffers of the probe channel", least=1, most=1024)
    request_data: Count = param("data buffers of the request channel", least=1, most=1024)
    response_data: Count = param("data buffers of the response channel", least=1, most=1024)
    free: Count = param("buffers of the free list", default=Count(0, "none unless said"), least=0, most=1024)
    free_data: Count = param("data buffers of the free list", default=Count(0, "none unless said"), least=0, most=1024)
    per: Width | None = None

    def sets(self, width: Width) -> int:
        """How often a link of a width has these buffers."""
        if self.per is None:
            return 1
        if width.bits % self.per.bits:
            raise ConfigError(f"links.credits.per: a link of {width} is not made of links of {self.per}", "a width that divides all links'")
        return width.bits // self.per.bits


class Packets(Described):
    """Bytes of a packet without data, by channel. A packet with data is longer by the data: a line."""

    request: Size = param("a packet of the request channel", least="1B", most="64B")
    posted: Size = param("a packet of the posted channel", least="1B", most="64B")
    response: Size = param("a packet of the response channel", least="1B", most="64B")
    probe: Size = param("a packet of the probe channel", least="1B", most="64B")


class Links(Described):
    """HyperTransport links; edges of the topology may have widths and clocks of their own."""

    width: Width = param("bits in each direction")
    clock: Frequency = param("the link's clock; two transfers per clock")
    latency: Time = param("wire, serializer and synchronisation, one way; serialization of the packet is added", least="1fs", most="1ms")
    credits: Credits
    packets: Packets

    def byte_time(self, width: Width | None = None, clock: Frequency | None = None) -> Fraction:
        """Femtoseconds per byte in one direction."""
        return (clock or self.clock).period * 4 / (width or self.width).bits


class LinkSettings(Described):
    """A link between two routers, as the engine reads it; both directions are alike."""

    a: Count = param("the router at one end", least=0)
    b: Count = param("the router at the other end", least=0)
    width: Width = param("bits in each direction", least="x2", most="x1024")
    clock: Frequency = param("the link's clock; two transfers per clock", least="1Hz")
    latency: Time = param("wire, serializer and synchronisation, one way; serialization of the packet is added")
    credit_sets: Count = param("factor by which the link multiplies the buffer counts of the network's channels and free list",
                               Count(1, "a link of one set"), least=1, most=64)


ENGINE = (Group("LinkSettings", LinkSettings, "moscope::ruby"),)
DESCRIPTIONS = (*(Group(of.__name__, of) for of in (Credits, Packets, Links)), *ENGINE)
