# SPDX-License-Identifier: BSD-3-Clause
"""Which published figures a machine is compared with. They hold for the machine of its file: a `--set` that changes how
long accesses take leaves none of them, so that a prediction for another machine is not judged by them. Nothing is computed
from references.

Bandwidths are in GB/s, by machine. The 48-core machine: the whole-machine peak of the MOSBENCH paper (section 5.1).
Magny-Cours: the memory and XFIRE (every core reads all nodes' memory evenly) figures of AMD's slides (docs/machines.md, L). A node's
figure is derived, the machine's divided by its nodes. Variants without published figures have none.
"""

from collections.abc import Sequence
from dataclasses import replace

from moscope.config import References

_PUBLISHED = {
    "opteron48": (8, {"machine": 51.5}),
    "magnycours_2p": (4, {"machine": 85.6, "XFIRE": 71.7}),
    "magnycours_4p": (8, {"machine": 170.4, "XFIRE": 143.4}),
}
# Keys whose values an idle latency does not depend on, and those that only an access beyond the L3 depends on.
NEUTRAL = ("name", "references", "memory_per_node", "cpu")
BEYOND_L3 = ("chips", "topology", "routing", "links", "dram", "probe_filter")


def _groups(sets: Sequence[str]) -> set[str]:
    """The keys' first parts; what is set to `references` is meant for the machine as it is changed."""
    return {text.partition("=")[0].strip().partition(".")[0] for text in sets} - set(NEUTRAL)


def latency_references(references: References, sets: Sequence[str]) -> References:
    """Of the machine's references, those that hold for it with these `--set`, and those that are set themselves."""
    groups = _groups(sets)
    beyond = {"dram", "dram_hop"}
    lost = beyond | ({"l1", "l2", "l3"} if groups - set(BEYOND_L3) else set()) if groups else set()
    given = {text.partition("=")[0].strip().removeprefix("references.") for text in sets}
    return replace(references, **dict.fromkeys(lost - given))


def bandwidth_references(machine: str, sets: Sequence[str] = ()) -> dict[str, tuple[float, str]]:
    """Load name to (GB/s, "published" or "derived")."""
    if _groups(sets):
        return {}
    nodes, figures = _PUBLISHED.get(machine, (1, {}))
    known = {name: (value, "published") for name, value in figures.items()}
    if "machine" in figures:
        known["node"] = (figures["machine"] / nodes, "derived")
    return known


def note(machine: str, references: References, sets: Sequence[str]) -> str:
    """What people read under a table that lacks references; empty if it lacks none."""
    if latency_references(references, sets) == references and (not _groups(sets) or machine not in _PUBLISHED):
        return ""
    changed = " ".join(f"--set {text}" for text in sets if text.partition("=")[0].strip().partition(".")[0] not in NEUTRAL)
    return f"The published values are those of {machine} without {changed}. Rows that such an option may change have no reference."
