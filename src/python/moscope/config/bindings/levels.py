# SPDX-License-Identifier: BSD-3-Clause
"""Machines that stand for several levels of a hierarchy, such as the one cache controller of gem5's CHI. `kinds` in
NAME.roles.toml lists the levels; controllers of different levels differ only in the values of their parameters and in the next
machine towards memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moscope.schema.errors import ConfigError

Description = Mapping[str, Any]


def kinds_of(description: Description) -> list[Description]:
    """The description itself, or one description for each of its kinds, in the order of the controllers' versions."""
    roles = description.get("roles", {})
    return [{**description, "kind": kind["name"], "roles": {**kind, "values": {**roles.get("values", {}), **kind.get("values", {})}}}
            for kind in roles.get("kinds", ())] or [description]


def name_of(description: Description) -> str:
    """The name that `below` uses for a machine or for a kind of it."""
    return str(description.get("kind") or description["type"])


def has_cores(description: Description, all_kinds: Sequence[Description]) -> bool:
    """Whether the controllers of a kind serve cores directly, because no other kind is above it."""
    return not any(other["roles"].get("below") == name_of(description) for other in all_kinds)


def connect(made: Sequence[tuple[Description, dict[str, Any]]], homes: int) -> None:
    """Fills in `downstream` and `upstream` of the controllers. If the level below has a controller for each core, a controller is
    connected to that of its own core; otherwise to one for each home, selected by address."""
    for description, controller in made:
        below = description["roles"].get("below")
        if not below:
            continue
        under = [c for d, c in made if name_of(d) == below]
        if not under:
            raise ConfigError(f"protocol: {name_of(description)}: below: {below!r}", "a machine, or the name of a kind of one",
                              "NAME.roles.toml")
        of_core = next(d for d, _ in made if name_of(d) == below)["roles"].get("per") == "core"
        if of_core and homes > 1:
            raise ConfigError(f"protocol: {name_of(description)}: each core has its own {below}, but the machine has {homes} homes",
                              "one home", "--homes")
        chosen = [c for c in under if c["place"] == controller["place"]] if of_core else under
        controller["downstream"] = _name(chosen[0])
        for other in chosen:
            other.setdefault("upstream", []).append(_name(controller))
    for _, controller in made:
        controller.pop("place")


def _name(controller: Mapping[str, Any]) -> dict[str, Any]:
    return {"machine": controller["machine"], "version": controller["version"]}
