# SPDX-License-Identifier: BSD-3-Clause
"""Which published figures a machine is compared with. They hold for the machine as its file describes it. A `--set` that changes
how long accesses take removes them, so that predictions for another machine are not compared with them. A machine with the name or
all references of one of moscope's machines is an edited copy: what it changes removes references in the same way. Other references
are their author's. Nothing is computed from references.

Bandwidths are in GB/s, by machine. The 48-core machine: the whole-machine peak of the MOSBENCH paper (section 5.1). Magny-Cours:
the memory and XFIRE (every core reads all nodes' memory evenly) figures of AMD's slides (docs/machines.md, L). A node's figure is
derived, the machine's divided by its nodes. Variants without published figures have none.
"""

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from moscope.config import Machine, References, load_machine, machine_names
from moscope.config.machine import field_kinds

_PUBLISHED = {
    "opteron48": (8, {"machine": 51.5}),
    "magnycours_2p": (4, {"machine": 85.6, "XFIRE": 71.7}),
    "magnycours_4p": (8, {"machine": 170.4, "XFIRE": 143.4}),
}
# Keys that do not affect loads without an instruction stream, and keys that affect only accesses beyond the L3.
NEUTRAL = ("name", "references", "memory_per_node", "cpu", "core", "pipeline", "nic")
BEYOND_L3 = ("chips", "topology", "routing", "links", "dram", "probe_filter")


def _groups(sets: Sequence[str]) -> set[str]:
    """The first parts of the keys, without neutral ones. A value set for `references` is meant for the changed machine."""
    return {text.partition("=")[0].strip().partition(".")[0] for text in sets} - set(NEUTRAL)


@functools.cache
def _supplied(name: str) -> Machine:
    return load_machine(name)


def original(machine: Machine) -> Machine:
    """The supplied machine of which this one is a copy: the one with the same name, or else the most similar one with the same
    references. The machine itself if there is none."""
    if machine.name in machine_names():
        return _supplied(machine.name)
    if machine.references == References():
        return machine
    same = [own for own in map(_supplied, machine_names()) if own.references == machine.references]
    return min(same, key=lambda own: len(_differences(machine, own)), default=machine)


def _differences(machine: Machine, own: Machine) -> set[str]:
    return {key for key in field_kinds(Machine) if _comparable(machine, key) != _comparable(own, key)} - set(NEUTRAL)


def _edited(machine: Machine) -> set[str]:
    """The keys in which a machine differs from the supplied machine of which it is a copy, through its file or options."""
    return _differences(machine, original(machine))


def _comparable(machine: Machine, key: str) -> Any:
    return {(*sorted((e.a, e.b)), e.width, e.clock) for e in machine.edges()} if key == "topology" else getattr(machine, key)


def latency_references(machine: Machine, sets: Sequence[str]) -> References:
    """The references of the machine that still hold with these `--set`, and those that a `--set` gives."""
    groups = _groups(sets) | _edited(machine)
    beyond = {"dram", "dram_hop"}
    lost = beyond | ({"l1", "l2", "l3"} if groups - set(BEYOND_L3) else set()) if groups else set()
    given = {text.partition("=")[0].strip().removeprefix("references.") for text in sets}
    return replace(machine.references, **dict.fromkeys(lost - given))


def bandwidth_references(machine: Machine, sets: Sequence[str] = ()) -> dict[str, tuple[float, str]]:
    """Load name to (GB/s, "published" or "derived")."""
    if _groups(sets) or _edited(machine):
        return {}
    nodes, figures = _PUBLISHED.get(machine.name, (1, {}))
    known = {name: (value, "published") for name, value in figures.items()}
    if "machine" in figures:
        known["node"] = (figures["machine"] / nodes, "derived")
    return known


def note(machine: Machine, sets: Sequence[str], bandwidths: bool = False) -> str:
    """What people read under a table of latencies, and of bandwidths if there is one, that lacks references of the machine; empty if
    it lacks none."""
    groups, edited = _groups(sets), _edited(machine)
    lacks_bandwidths = bandwidths and bool(groups | edited) and machine.name in _PUBLISHED
    if latency_references(machine, sets) == machine.references and not lacks_bandwidths:
        return ""
    changed = " ".join(f"--set {text}" for text in sets if text.partition("=")[0].strip().partition(".")[0] not in NEUTRAL)
    file = f"this file's {', '.join(sorted(edited - groups))}" if edited - groups else ""
    return (f"The published values are those of {original(machine).name} without {' and '.join(filter(None, (changed, file)))}. Rows "
            f"that such {'an option' if changed else 'a difference'} may change have no reference.")
