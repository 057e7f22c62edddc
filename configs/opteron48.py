# SPDX-License-Identifier: BSD-3-Clause
"""The 48-core machine of the MOSBENCH paper: eight six-core Opteron 8431 ("Istanbul") on a Tyan S4985 with
its M4985 extension, HT Assist on. Sources are abbreviated as in docs/machines.md: P the paper (section 5.1),
L AMD's slides on HT Assist, x published elsewhere, d derived, fit fitted.

To change the topology, copy this file, edit TOPOLOGY, and run `./moscope latency --machine yours.py`.
"""

from moscope.config import (  # noqa: I001 (in rows, not one a line)
    Cache, Count, Credits, Crossbar, Cycles, Dram, Flag, Frequency, Latencies, Links, Machine, Name, Packets,
    ProbeFilter, ProtocolName, References, Size, Time, Topology, Width,
)  # fmt: skip

# Which chips are linked: the twisted ladder (x: AMD AGESA topology list). Chips 0, 1, 6 and 7 have two
# coherent links, their third is for I/O.
TOPOLOGY = [
    (0, 1),
    (0, 2), (1, 3),
    (2, 4), (2, 5), (3, 4), (3, 5),
    (4, 6), (5, 7),
    (6, 7),
]  # fmt: skip

# What is fitted to the seven idle latencies stands here, see docs/calibration.md; what is fitted to the bandwidth in
# dram/_family10h.py. No probe is sent in those loads, so what a probe takes is assumed.
FITTED = "fitted to the seven idle latencies, see docs/calibration.md"
LATENCIES = Latencies(
    l1_hit=Cycles("3cycles", "P: 3 cycles load to use"),
    l2_hit=Cycles("11cycles", "d: 14 load to use less 3 of the L1 (P)"),
    l2_miss=Cycles("4cycles", FITTED),
    done=Cycles("1cycle", "assumed: no load on an idle machine waits for it"),
    l3_hit=Cycles("14cycles", FITTED),
    l3_miss=Cycles("5cycles", FITTED),
    core_tags=Cycles("6cycles", "d: what a core's answer takes, l2_miss and a pass through the crossbar"),
    probe_response=Cycles("4cycles", "assumed: as home"),
    home=Cycles("4cycles", FITTED),
    probe_filter=Cycles("4cycles", "assumed: as home"),
    memory_controller=Cycles("14cycles", FITTED),
    dma=Cycles("6cycles", "assumed"),
)
CROSSBAR_LATENCY = Time("1ns", FITTED)
LINK_LATENCY = Time("15.9ns", FITTED)

machine = Machine(
    name="opteron48",
    protocol=ProtocolName("MOESI_HTAssist", "L: HT Assist"),
    chips=Count(8, "P"),
    cores_per_chip=Count(6, "P"),
    core_clock=Frequency("2.4GHz", "P"),
    nb_clock=Frequency("2.2GHz", "x: AMD product data, Opteron 8431"),
    line=Size("64B", "x: AMD 25112"),
    l1i=Cache(Size("64KiB", "x: hwloc dumps"), Count(2, "x: hwloc dumps")),
    l1d=Cache(Size("64KiB", "x: hwloc dumps"), Count(2, "x: hwloc dumps")),
    l2=Cache(Size("512KiB", "P"), Count(16, "x: hwloc dumps")),  # exclusive of the L1s
    l3=Cache(Size("6MiB", "P"), Count(48, "x: hwloc dumps")),  # victim cache; the filter takes 8 of the ways
    probe_filter=ProbeFilter(
        enabled=Flag(True, "L"),
        l3_ways=Count(8, "d: 1 MB (L) of 6 MB in 48 ways"),
        entry=Size("4B", "L"),
        ways=Count(4, "L"),
    ),
    latencies=LATENCIES,
    outstanding_misses=Count(8, "x: AMD 25112; the family's 10 miss buffers bound it (x)"),
    crossbar=Crossbar(latency=CROSSBAR_LATENCY, port=Size(
        "32B", "assumed: half a line per port and cycle, so that the L3 keeps up with victims")),
    topology=Topology.parse(TOPOLOGY, "x: AMD AGESA topology list"),
    links=Links(
        width=Width("x16", "x: HyperTransport 16-bit coherent links"),
        clock=Frequency("1.0GHz", "x: HT1, boards of this series; HT3 is 2.4GHz"),
        latency=LINK_LATENCY,
        credits=Credits(
            request=Count(4, "x: AMD AGESA tables"),
            posted=Count(2, "x: AMD AGESA tables"),
            response=Count(9, "x: AMD AGESA tables"),
            probe=Count(9, "x: AMD AGESA tables"),
            request_data=Count(2, "x: AMD AGESA tables"),
            response_data=Count(2, "x: AMD AGESA tables"),
            free=Count(8, "x: AMD AGESA tables, FreeCmd of coherent links"),
            free_data=Count(2, "x: AMD AGESA tables, FreeData of coherent links"),
        ),
        packets=Packets(
            request=Size("8B", "x: HyperTransport specification, request with 40-bit address"),
            posted=Size("8B", "x: HyperTransport specification, as request"),
            response=Size("4B", "x: HyperTransport specification, response: tag, no address"),
            probe=Size("8B", "d: carries an address, as requests do"),
        ),
    ),
    memory_per_node=Size("8GiB", "P"),
    dram=Dram(  # P says DDR2; with DDR2-800 the model streams 7 % above the published rate (docs/dram.md)
        standard=Name("ddr2_667", "x: a memory vendor's list for the M4985; fitted to 51.5 GB/s (P)"),
        channels=Count(2, "P"),
    ),
    references=References(
        l1=Cycles("3cycles", "P"),
        l2=Cycles("14cycles", "P"),
        l3=Cycles("28cycles", "P; others publish 40-75"),
        dram=Cycles("122cycles", "P"),
        dram_hop=Cycles("127cycles", "d: (503 - 122) / 3 hops, P"),
    ),
)
