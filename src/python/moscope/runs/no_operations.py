# SPDX-License-Identifier: BSD-3-Clause
"""The note of a point whose windows contain no operation: what its clients and its network card counted."""

from collections.abc import Mapping

from moscope.schema.card import DROPS

LOST = ("link_lost", *DROPS)


def note(operation: str, clients: Mapping[str, int], card: Mapping[str, int]) -> str:
    """One text. `clients`: counts since the clients' start; `card`: counts since the boot, of which the frames that were lost are
    given."""
    said = [f"the windows contain no operation ({operation}): throughput is 0"]
    if clients:
        said.append(f"The clients counted since their start: {_listed(clients)}")
    if lost := {name: card[name] for name in LOST if card.get(name)}:
        said.append(f"The network card counted lost frames since the boot: {_listed(lost)}")
    return ". ".join(said)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
