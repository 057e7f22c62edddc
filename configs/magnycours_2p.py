# SPDX-License-Identifier: BSD-3-Clause
"""Two Magny-Cours packages: four six-core dies, fully connected."""

from magnycours_4p import machine as magnycours_4p
from moscope.config import Count, Topology, replace

machine = replace(
    magnycours_4p,
    name="magnycours_2p",
    chips=Count(4, "L: 2 packages of two dies"),
    topology=Topology.parse("magnycours_2p", "L, and d"),
)
