# SPDX-License-Identifier: BSD-3-Clause
"""Four Magny-Cours packages: eight six-core dies, HyperTransport 3, DDR3. Caches, protocol and latencies
within a die are those of `opteron48`, whose generation this is. A chip is a die here.

Link buffers: the per-channel counts that AGESA programs (those of `opteron48`) are base counts; the family has a free
list of command and data buffers beside them that any channel may draw on. An HT3 link at 6.4 GT/s needs more than two
data buffers to be busy at all over the fitted 15.4 ns of a hop, so the free list counts here: enough buffers to cover
bandwidth times round trip. With the base counts alone XFIRE comes to 49 (2P) and 55 GB/s (4P)."""

from opteron48 import machine as opteron48

from moscope.config import Count, Credits, Dram, Frequency, Name, References, Topology, replace

FREE_LIST = "d: base count and free list, to cover bandwidth x round trip"

machine = replace(
    opteron48,
    name="magnycours_4p",
    chips=Count(8, "L: 4 packages of two dies"),
    cores_per_chip=Count(6, "L"),
    core_clock=Frequency("2.2GHz", "x: AMD product data, Opteron 6174"),
    nb_clock=Frequency("1.8GHz", "x: AMD product data, Opteron 6174"),
    outstanding_misses=Count(10, "x: miss buffers of family 10h"),
    topology=Topology.parse("magnycours_4p", "L, and d"),
    links=replace(
        opteron48.links,
        clock=Frequency("3.2GHz", "L: 6.4 GT/s, two transfers per clock"),
        credits=Credits(
            request=Count(8, FREE_LIST),
            posted=Count(2, "x: AMD AGESA tables"),
            response=Count(16, FREE_LIST),
            probe=Count(9, "x: AMD AGESA tables"),
            request_data=Count(2, "x: AMD AGESA tables"),
            response_data=Count(8, FREE_LIST),
        ),
    ),
    dram=Dram(standard=Name("ddr3_1333", "L"), channels=Count(2, "L: two channels per die")),
    references=References(),  # no latencies are published for it here
)
