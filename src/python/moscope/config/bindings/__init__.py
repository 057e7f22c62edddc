# SPDX-License-Identifier: BSD-3-Clause
"""The roles of a protocol's machines in the simulated computer, and the values of their parameters. A protocol gives them
in NAME.roles.toml (src/mem/slicc/roles.py), which the SLICC compiler adds to the interface. What the file leaves out is
decided here by the names that gem5's protocols use, and by `generic.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from moscope.schema.errors import UNPLACED, ConfigError
from moscope.schema.parameters import Described, field_kinds
from moscope.schema.units import Count, Cycles, Flag, Size

from ..machine import Machine
from .levels import kinds_of, name_of
from .names import BY_NAME, CORES_CACHE

# Limits of parameters by type: cycles as in `latencies`, and the range of C++'s int.
LIMITS = {"Cycles": (0, 1_000_000), "count": (1, (1 << 31) - 1), "int": (-(1 << 31), (1 << 31) - 1)}
KEYS = "the key of a number, time in cycles, size or flag of the machine, such as latencies.l2_hit"


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


def check_roles(interface: Mapping[str, Any]) -> None:
    """Raises ConfigError for roles of a protocol's interface that fit no machine: a value that no description has or no parameter
    can have, or no home."""
    where = roles_file(interface)
    kinds = [kind for machine in interface["machines"] for kind in kinds_of(machine)]
    for kind in kinds:
        types = {parameter["name"]: parameter["type"] for parameter in kind["params"]}
        for name, value in roles_of(kind).values.items():
            key = f"machines.{kind['type']}.values.{name}"
            if isinstance(value, str) and not _is_plain(value):
                raise ConfigError(f"{key}: {value!r}", KEYS, where)
            if isinstance(value, int) and not isinstance(value, bool):
                check_limits(value, types.get(name, "count"), key, where)
    homes = [kind for kind in kinds if roles_of(kind).role == "home" and roles_of(kind).per != "none"]
    if not homes:
        raise ConfigError("machines: none has the role \"home\"", 'role = "home" for the machine that keeps the memory of a node', where)
    for home in homes:
        if roles_of(home).per not in ("node", "chip"):
            raise ConfigError(f"machines.{name_of(home)}.per: {roles_of(home).per!r} of a home", '"node"', where)


def check_limits(value: int, type_: str, what: str, where: str = UNPLACED) -> None:
    """Raises ConfigError for a number that a parameter of this type cannot have; "count" is that of what every machine has."""
    least, most = LIMITS.get(type_, (-(1 << 63), (1 << 63) - 1))
    if not least <= value <= most:
        raise ConfigError(f"{what}: {value!r:.40}", f"{least} to {most}", where)


def roles_file(interface: Mapping[str, Any]) -> str:
    """What errors call the file that has the roles of a protocol."""
    return f"{interface['protocol']}.roles.toml"


def _is_plain(key: str) -> bool:
    """Whether every machine has a number, time in cycles, size or flag with this key."""
    kind: Any = Machine
    for part in key.split("."):
        kind = field_kinds(kind).get(part) if isinstance(kind, type) and issubclass(kind, Described) else None
    return bool({kind, *get_args(kind)} & {Count, Cycles, Flag, Size})


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
    raise ConfigError(f"parameter {parameter}: {key!r}", KEYS, f"protocol {machine.protocol}")
