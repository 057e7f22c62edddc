# SPDX-License-Identifier: BSD-3-Clause
"""The probe filter's published table, cell by cell, on the 48-core machine with its real filter.

Each cell is driven by a script of accesses, each from quiet to quiet; the last one is measured. Its trace has to show
that the home met the cell, once, and the probes that it sent: none (-), one to the owner's chip that leaves a shared
copy (D), one that takes the copy (DI), or one to each chip that takes all copies (B).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import pytest

from moscope.cli import Shared
from moscope.experiment import Subject, prepare

# HT Assist lecture. Lower half: the requested line is uncached, its set is full, and an entry of this state goes.
HIT = """
        | I  | O  | S  | S1 | EM
FETCH   | -  | D  | -  | -  | D
LOAD    | -  | D  | -  | -  | D
STORE   | -  | B  | B  | B  | DI
"""
MISS = """
        | I  | O  | S  | S1 | EM
FETCH   | -  | B  | B  | DI | DI
LOAD    | -  | B  | B  | DI | DI
STORE   | -  | B  | B  | DI | DI
"""

# Accesses that bring an entry into a state, by cores of the chips 1 (cores 6 to 11) and 2 (12 to 17).
MAKE = {
    "I": ["c6 ld", "c6 flush"],
    "O": ["c6 st", "c12 ld"],
    "S": ["c6 ld", "c12 ld"],
    "S1": ["c6 if"],
    "EM": ["c6 st"],
}
# Other ways to a state: sharers within one chip by loads, a clean only copy.
MAKE_OTHERWISE = {
    "S1": ["c6 ld", "c7 ld"],
    "EM": ["c6 ld"],
}
OWNER_CHIP = 1
OPS = {"FETCH": "if", "LOAD": "ld", "STORE": "st"}
REQUESTOR = 18  # on chip 3, holds nothing
LINE_A = 0x10000  # homed at node 0, as all lines here


@dataclass(frozen=True)
class Cell:
    request: str
    state: str
    probes: str


def cells(table: str) -> list[Cell]:
    head, *rows = [[word.strip() for word in line.split("|")] for line in table.strip("\n").splitlines()]
    return [Cell(row[0], state, probes) for row in rows for state, probes in zip(head[1:], row[1:], strict=True)]


def named(cell: Cell) -> str:
    return f"{cell.request}-{cell.state}"


@functools.cache
def opteron48(*sets: str) -> Subject:
    return prepare(Shared(machine="opteron48", sets=list(sets), quiet=True), checking=True)


@dataclass(frozen=True)
class Seen:
    """What the last access of a script did."""

    transitions: list[dict[str, Any]]
    probes: list[dict[str, Any]]

    def at_home(self, address: int) -> list[tuple[str, str]]:
        return [(t["state"], t["event"]) for t in self.transitions
                if t["controller"] == "Directory-0" and int(t["address"], 16) == address]

    def left_with(self, core: int, address: int) -> str | None:
        """The state in which a core's line was left; None if nothing happened to it."""
        states = [t["next"] for t in self.transitions
                  if t["controller"] == f"L1Cache-{core}" and int(t["address"], 16) == address]
        return states[-1] if states else None


def run(subject: Subject, accesses: list[tuple[str, int]]) -> Seen:
    """`("c6 ld", address)`..: one after the other on a fresh machine."""
    steps = [[{"core": int(text.split()[0][1:]), "op": text.split()[1], "address": address}] for text, address in accesses]
    result = subject.run([{"kind": "script", "trace": True, "steps": steps}])[-1]
    last = len(accesses) - 1
    probes = [m for m in result["messages"] if m["access"] == last and m["structure"] == "ProbeMsg"
              and m["from"].startswith("Directory")]
    return Seen([t for t in result["transitions"] if t["access"] == last], probes)


def holders(make: list[str]) -> list[int]:
    """The cores that have copies afterwards, the owner first."""
    return [] if any("flush" in text for text in make) else [int(text.split()[0][1:]) for text in make]


def check_probes(seen: Seen, wanted: str, address: int, make: list[str]) -> None:
    """The probes are those of the cell, and their effect on the copies is the cell's."""
    chips = int(opteron48().machine.chips)
    sent = [(m["type"], sorted(d["to"] for d in m["deliveries"])) for m in seen.probes]
    assert sent == {
        "-": [],
        "D": [("ProbeRead", [f"L3Cache-{OWNER_CHIP}"])],
        "DI": [("ProbeInv", [f"L3Cache-{OWNER_CHIP}"])],
        "B": [("ProbeInv", [f"L3Cache-{chip}" for chip in range(chips)])],
    }[wanted]
    assert all(int(m["address"], 16) == address for m in seen.probes)
    if wanted == "D":
        assert seen.left_with(holders(make)[0], address) in ("S", "O")
    elif wanted in ("DI", "B"):
        assert {core: seen.left_with(core, address) for core in holders(make)} == dict.fromkeys(holders(make), "I")


def filter_set_stride() -> int:
    """Lines this far apart fall into the same set of the filter."""
    return opteron48().machine.filter_sets() * 64


def full_set(state: str) -> list[tuple[str, int]]:
    """Fills the set of LINE_A's entry: the oldest is that of LINE_A, in `state`; the others name chip 7."""
    ways = int(opteron48().machine.probe_filter.ways)
    fillers = [(f"c{41 + way} ld", LINE_A + way * filter_set_stride()) for way in range(1, ways)]
    return [(text, LINE_A) for text in MAKE[state]] + fillers


REQUESTED = LINE_A + 64 * 1024 * 1024  # same set again, of an uncached line


def test_the_tables_have_thirty_cells() -> None:
    assert len(cells(HIT)) == len(cells(MISS)) == 15
    assert REQUESTED % filter_set_stride() == LINE_A % filter_set_stride()


@pytest.mark.parametrize("cell", cells(HIT), ids=named)
def test_a_hit_sends_the_probes_of_its_cell(cell: Cell) -> None:
    makes = [MAKE[cell.state]] + ([MAKE_OTHERWISE[cell.state]] if cell.state in MAKE_OTHERWISE else [])
    for make in makes:
        seen = run(opteron48(), [(text, LINE_A) for text in make] + [(f"c{REQUESTOR} {OPS[cell.request]}", LINE_A)])
        assert seen.at_home(LINE_A).count((cell.state, cell.request.title())) == 1
        assert not [event for _, event in seen.at_home(LINE_A) if event.startswith("Replace")]
        check_probes(seen, cell.probes, LINE_A, make)


@pytest.mark.parametrize("cell", cells(MISS), ids=named)
def test_a_miss_sends_the_probes_of_the_entry_that_it_replaces(cell: Cell) -> None:
    request = cell.request.title()
    seen = run(opteron48(), full_set(cell.state) + [(f"c{REQUESTOR} {OPS[cell.request]}", REQUESTED)])
    assert seen.at_home(LINE_A).count((cell.state, f"Replace_{request}")) == 1
    assert seen.at_home(REQUESTED)[0] == ("NP", request)
    assert seen.at_home(REQUESTED).count(("NP", request)) == 1
    check_probes(seen, cell.probes, LINE_A, MAKE[cell.state])


@pytest.mark.parametrize("request_name", OPS)
def test_a_miss_with_a_free_way_replaces_nothing_and_sends_no_probe(request_name: str) -> None:
    seen = run(opteron48(), full_set("EM")[1:] + [(f"c{REQUESTOR} {OPS[request_name]}", REQUESTED)])
    assert seen.at_home(REQUESTED)[0] == ("NP", request_name.title())
    assert not [t for t in seen.transitions if t["event"].startswith("Replace")]
    assert not seen.probes


@pytest.mark.parametrize("cell", [c for c in cells(HIT) if c.request == "STORE" and c.state in ("O", "S", "S1")], ids=named)
def test_a_store_by_a_sharer_sends_the_probes_of_its_cell(cell: Cell) -> None:
    sharer = holders(MAKE[cell.state])[-1]
    seen = run(opteron48(), [(text, LINE_A) for text in MAKE[cell.state]] + [(f"c{sharer} st", LINE_A)])
    assert seen.at_home(LINE_A).count((cell.state, "Upgrade")) == 1
    assert [(m["type"], len(m["deliveries"])) for m in seen.probes] == [("ProbeInv", 8)]
    assert seen.left_with(sharer, LINE_A) == "M"


@pytest.mark.parametrize("op, event", [("flush", "Flush"), ("nt", "Uncached"), ("ldu", "Uncached")])
@pytest.mark.parametrize("cell", [c for c in cells(HIT) if c.request == "STORE"], ids=named)
def test_flushes_and_accesses_past_the_caches_follow_the_store_row(cell: Cell, op: str, event: str) -> None:
    seen = run(opteron48(), [(text, LINE_A) for text in MAKE[cell.state]] + [(f"c{REQUESTOR} {op}", LINE_A)])
    assert seen.at_home(LINE_A).count((cell.state, event)) == 1
    check_probes(seen, cell.probes, LINE_A, MAKE[cell.state])


@pytest.mark.parametrize("op, event", [("flush", "Flush"), ("nt", "Uncached"), ("ldu", "Uncached")])
def test_flushes_and_accesses_past_the_caches_take_no_way_of_the_filter(op: str, event: str) -> None:
    seen = run(opteron48(), full_set("EM") + [(f"c{REQUESTOR} {op}", REQUESTED)])
    assert seen.at_home(REQUESTED)[0] == ("NP", event)
    assert not seen.at_home(LINE_A) and not seen.probes


@pytest.mark.parametrize("request_name", OPS)
@pytest.mark.parametrize("state", MAKE)
def test_without_the_filter_every_request_probes_every_chip(state: str, request_name: str) -> None:
    seen = run(opteron48("probe_filter.enabled=false"),
               [(text, LINE_A) for text in MAKE[state]] + [(f"c{REQUESTOR} {OPS[request_name]}", LINE_A)])
    assert seen.at_home(LINE_A).count(("U", request_name.title())) == 1
    kind = "ProbeInv" if request_name == "STORE" else "ProbeReadAll"
    assert [(m["type"], len(m["deliveries"])) for m in seen.probes] == [(kind, 8)]
