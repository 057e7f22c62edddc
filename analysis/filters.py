# SPDX-License-Identifier: BSD-3-Clause
"""What the probe filter of each home node decided, from the transitions of the homes. A protocol with probe filters says what its
transitions mean in PROTOCOL.filter.toml beside its other files.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from analysis.run_directory import Point

PROTOCOLS = Path(__file__).resolve().parent.parent / "src/mem/ruby/protocol"


@dataclass(frozen=True)
class Filter:
    """The outcomes of a protocol's probe filters, and the machine that has them."""

    machine: str
    outcomes: list[dict[str, Any]]

    @property
    def names(self) -> list[str]:
        return [str(one["name"]) for one in self.outcomes]

    def outcome(self, transition: str) -> int | None:
        """Index of the outcome of STATE.EVENT; None for a transition that decides nothing."""
        state, _, event = transition.partition(".")
        return next((n for n, one in enumerate(self.outcomes) for group in one["transitions"]
                     if state in group["states"] and any(fnmatchcase(event, pattern) for pattern in group["events"])), None)

    def requests(self, transitions: Mapping[str, int]) -> int:
        """How many requests the filters decided, from the counts of STATE.EVENT."""
        return self._count(transitions, replaced=False)

    def replaced(self, transitions: Mapping[str, int]) -> int:
        """How many entries the filters replaced that some cache still needed."""
        return self._count(transitions, replaced=True)

    def _count(self, transitions: Mapping[str, int], replaced: bool) -> int:
        return sum(n for transition, n in transitions.items()
                   if (which := self.outcome(transition)) is not None and self.outcomes[which].get("replaced", False) == replaced)


@cache
def of_protocol(name: str) -> Filter | None:
    """None if the protocol has no probe filters."""
    file = PROTOCOLS / f"{name}.filter.toml"
    if not name.isidentifier() or not file.is_file():
        return None
    read = tomllib.loads(file.read_text(encoding="utf-8"))
    return Filter(read["machine"], read["outcomes"])


def by_node(point: Point) -> tuple[list[str], list[list[int]]]:
    """The names of the outcomes, and per home node how often each came; both empty if the protocol has no probe filters."""
    found = of_protocol(str(point.machine.get("protocol")))
    if found is None:
        return [], []
    nodes = []
    for controller in point.machine.get("controllers") or []:
        if str(controller.get("name", "")).startswith(found.machine):
            counts = [0] * len(found.outcomes)
            for transition, n in (controller.get("transitions") or {}).items():
                which = found.outcome(transition)
                if which is not None:
                    counts[which] += n
            nodes.append(counts)
    return found.names, nodes
