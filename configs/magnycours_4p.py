# SPDX-License-Identifier: BSD-3-Clause
"""Four Magny-Cours packages: eight six-core dies, HyperTransport 3, DDR3. Caches, protocol and latencies
within a die are those of `opteron48`, whose generation this is. A chip is a die here.

Link buffers: the counts of `opteron48` taken per x8, so that an x16 has twice and the x16 + x8 between siblings three
times as many. They come from the tables for the whole family, in which a 16-bit link may also be run as two of 8 bits
with buffers of their own (d). It takes 68 bytes of response x 4 buffers per 42 ns to keep an x8 at 6.4 GT/s busy."""

from moscope.config import Count, Dram, Frequency, Name, References, Topology, Width, replace
from opteron48 import machine as opteron48

machine = replace(
    opteron48,
    name="magnycours_4p",
    chips=Count(8, "L: 4 packages of two dies"),
    cores_per_chip=Count(6, "L"),
    cpu=Name("opteron6174", "x: the part with these clocks"),
    core_clock=Frequency("2.2GHz", "x: AMD product data, Opteron 6174"),
    nb_clock=Frequency("1.8GHz", "x: AMD product data, Opteron 6174"),
    outstanding_misses=Count(10, "x: miss buffers of family 10h"),
    topology=Topology.parse("magnycours_4p", "L, and d"),
    links=replace(
        opteron48.links,
        clock=Frequency("3.2GHz", "L: 6.4 GT/s, two transfers per clock"),
        credits=replace(opteron48.links.credits, per=Width("x8", "d: buffers of each 8-bit half of a link")),
    ),
    dram=Dram(standard=Name("ddr3_1333", "L"), channels=Count(2, "L: two channels per die")),
    references=References(),  # no latencies are published for it here
)
