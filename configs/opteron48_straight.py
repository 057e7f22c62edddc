# SPDX-License-Identifier: BSD-3-Clause
"""The 48-core machine wired as a straight ladder: at most 4 hops instead of 3."""

from moscope.config import Topology, replace
from opteron48 import machine as opteron48

machine = replace(
    opteron48,
    name="opteron48_straight",
    topology=Topology.parse("straight_ladder", "x: AMD AGESA topology list"),
)
