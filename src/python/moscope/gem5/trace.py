# SPDX-License-Identifier: BSD-3-Clause
"""gem5's output as data: its trace of protocol transitions (debug flag ProtocolTrace) and its statistics file."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# TIME VERSION MACHINE EVENT STATE>NEXT [ADDRESS, line LINE] COMMENT; the columns may run into each other's padding.
TRANSITION = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\w+)\s+(\w+)\s+(\w*)>(\w*)\s+\[0x[0-9a-f]+, line (0x[0-9a-f]+)\]\s*(.*)$")
STALLS = ("Resource Stall", "Protocol Stall")


@dataclass(frozen=True, slots=True)
class Transition:
    """One transition of a controller; `at` is left out of comparisons."""

    machine: str
    version: int
    event: str
    state: str
    next: str
    line: int


def transitions(lines: Iterable[str]) -> Iterator[tuple[int, Transition]]:
    """(time, transition) of each line of the trace that is a transition. Stalls, which change nothing, and the lines of the
    sequencers are left out."""
    for text in lines:
        found = TRANSITION.match(text)
        if found and found[3] != "Seq" and found[8].strip() not in STALLS:
            at, version, machine, event, state, after, line, _ = found.groups()
            yield int(at), Transition(machine, int(version), event, state, after, int(line, 16))


def statistics(text: str) -> dict[str, float]:
    """Name and value of the last dump of a stats.txt; values that are no numbers are left out."""
    last = text.rsplit("---------- Begin Simulation Statistics ----------", 1)[-1]
    values = {}
    for row in last.splitlines():
        words = row.split()
        if len(words) >= 2:
            try:
                values[words[0]] = float(words[1])
            except ValueError:
                continue
    return values


BUFFER = re.compile(r"^system\.ruby\.([A-Za-z0-9]+?)_(\d+)\.(\w+)\.m_msg_count$")


def received(stats: dict[str, float]) -> dict[tuple[str, str], int]:
    """Messages taken from each buffer, by machine and buffer name, over all controllers."""
    counts: dict[tuple[str, str], int] = {}
    for name, value in stats.items():
        if found := BUFFER.match(name):
            key = found[1], found[3]
            counts[key] = counts.get(key, 0) + int(value)
    return counts
