# SPDX-License-Identifier: BSD-3-Clause
"""Machine descriptions: what a machine file imports, and what the commands use. See docs/machines.md."""

from moscope.schema.errors import ConfigError
from moscope.schema.units import Count, Cycles, Flag, Frequency, Name, ProtocolName, Size, Time, Width

from .bindings import check_roles
from .elaborate import cores_together, elaborate, with_cores
from .keys import apply_sets, bytes_of, walk
from .load import blamed, load_machine, machine_names
from .machine import (
    Cache,
    Credits,
    Crossbar,
    Dram,
    Latencies,
    Links,
    Machine,
    Packets,
    Pipeline,
    ProbeFilter,
    References,
    replace,
)
from .routing import Routing
from .topology import Edge, Topology, topology

__all__ = [
    "Cache", "ConfigError", "Count", "Credits", "Crossbar", "Cycles", "Dram", "Edge", "Flag", "Frequency",
    "Latencies", "Links", "Machine", "Name", "Packets", "Pipeline", "ProbeFilter", "ProtocolName", "References", "Routing", "Size",
    "Time", "Topology", "Width", "apply_sets", "blamed", "bytes_of", "check_roles", "elaborate", "load_machine",
    "machine_names", "replace", "topology", "cores_together", "walk", "with_cores",
]  # fmt: skip
