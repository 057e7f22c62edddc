# SPDX-License-Identifier: BSD-3-Clause
"""The roles of a protocol's machines in the simulated computer, and the values of their parameters. A protocol gives them
in NAME.roles.toml (src/mem/slicc/roles.py), which the SLICC compiler adds to the interface. What the file leaves out is
decided here by the names that gem5's protocols use, and by `generic.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moscope.schema.errors import ConfigError
from moscope.schema.units import Count, Cycles, Flag, Size

from ..machine import Machine
from .names import BY_NAME, CORES_CACHE


@dataclass(frozen=True)
class Roles:
    """`per`: core, pair (of cores), chip, node or none.
    `role`: cache, home or dma. `arrays`: parameter to array. `values`: parameter to value or key."""

    per: str
    role: str
    arrays: Mapping[str, str]
    values: Mapping[str, Any]


def role_by_name(machine_type: str) -> str:
    """The role of a machine type in a protocol that gives no roles."""
    return BY_NAME.get(machine_type, CORES_CACHE)[1]


def roles_of(description: Mapping[str, Any]) -> Roles:
    """The roles of one machine of a protocol's interface."""
    given = description.get("roles", {})
    per, role = BY_NAME.get(description["type"], CORES_CACHE)
    return Roles(given.get("per", per), given.get("role", role), given.get("arrays", {}), given.get("values", {}))


def of_role(interface: Mapping[str, Any], role: str) -> set[str]:
    """The machine types of a protocol's interface that have a role."""
    return {m["type"] for m in interface["machines"] if roles_of(m).role == role}


def value_of_machine(machine: Machine, key: str, parameter: str) -> bool | int:
    """The value of a machine description that a role names by its key: a count, cycles, bytes, or a switch (on or off)."""
    value: Any = machine
    for part in key.split("."):
        value = getattr(value, part, None)
    if isinstance(value, Cycles):
        return value.count
    if isinstance(value, Size):
        return value.bytes
    if isinstance(value, Flag):
        return bool(value)
    if isinstance(value, Count):
        return int(value)
    raise ConfigError(f"protocol {machine.protocol}: parameter {parameter}: {key!r}", "the key of a number, time in cycles, size or "
                      "flag of the machine, such as latencies.l2_hit")
