# SPDX-License-Identifier: BSD-3-Clause
"""The 48-core machine with HT Assist off: no probe filter, all 48 ways of the L3 for data, and every miss
probes all caches (L: the "old" broadcast protocol). The published DRAM latencies are those of the machine with
the filter, so only those of the caches are references here."""

from moscope.config import Flag, References, replace
from opteron48 import machine as opteron48

cached = opteron48.references

machine = replace(
    opteron48,
    name="opteron48_broadcast",
    probe_filter=replace(opteron48.probe_filter, enabled=Flag(False, "L: before HT Assist")),
    references=References(l1=cached.l1, l2=cached.l2, l3=cached.l3),
)
