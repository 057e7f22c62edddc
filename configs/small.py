# SPDX-License-Identifier: BSD-3-Clause
"""Eight cores for quick tests and first looks: four two-core chips in a square, so that there are lines at
0, 1 and 2 hops; caches of a sixteenth; everything else as in `opteron48`. Not a real machine."""

from moscope.config import Cache, Count, References, Size, Topology, replace
from opteron48 import machine as opteron48

CHOSEN = "chosen: quick to fill"

machine = replace(
    opteron48,
    name="small",
    chips=Count(4, CHOSEN),
    cores_per_chip=Count(2, CHOSEN),
    l1i=Cache(Size("4KiB", CHOSEN), Count(2, CHOSEN)),
    l1d=Cache(Size("4KiB", CHOSEN), Count(2, CHOSEN)),
    l2=Cache(Size("32KiB", CHOSEN), Count(16, CHOSEN)),
    l3=Cache(Size("384KiB", CHOSEN), Count(48, CHOSEN)),
    topology=Topology.parse("0-1 0-2 1-3 2-3", CHOSEN),
    memory_per_node=Size("256MiB", CHOSEN),
    references=References(),
)
