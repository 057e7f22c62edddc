# SPDX-License-Identifier: BSD-3-Clause
"""Published bandwidths, GB/s, by machine; for comparison only, nothing is computed from them.

The 48-core machine: the whole-machine peak of the MOSBENCH paper (section 5.1). Magny-Cours: the memory and XFIRE
(every core reads all nodes' memory evenly) figures of the HT Assist lecture. A node's figure is derived, the
machine's divided by its nodes. Variants that nobody published figures of have none.
"""

_PUBLISHED = {
    "opteron48": (8, {"machine": 51.5}),
    "magnycours_2p": (4, {"machine": 85.6, "XFIRE": 71.7}),
    "magnycours_4p": (8, {"machine": 170.4, "XFIRE": 143.4}),
}


def bandwidth_references(machine: str) -> dict[str, tuple[float, str]]:
    """Load name to (GB/s, "published" or "derived")."""
    nodes, figures = _PUBLISHED.get(machine, (1, {}))
    known = {name: (value, "published") for name, value in figures.items()}
    if "machine" in figures:
        known["node"] = (figures["machine"] / nodes, "derived")
    return known
