# SPDX-License-Identifier: BSD-3-Clause
"""The home of MOESI_HTAssist serves reads that leave the filter's entry as it is side by side, and nothing else so."""

from __future__ import annotations

from typing import Any

import pytest

from moscope.cli import Shared
from moscope.experiment import Subject, prepare

LINE = 0x10000  # homed at node 0
# What makes the entry this, by cores of chip 1 and the first of chip 2; who asks afterwards has no copy.
READERS = [core for chip in range(2, 8) for core in range(chip * 6, chip * 6 + 6)][1:]
MAKE = {"O": ["st", "ld"], "S": ["ld", "ld"], "S1": ["if", "if"]}


@pytest.fixture(scope="module")
def machine() -> Subject:
    return prepare(Shared(machine="opteron48", quiet=True), checking=True)


def step(*accesses: tuple[int, str]) -> list[dict[str, Any]]:
    return [{"core": core, "op": op, "address": LINE} for core, op in accesses]


def last(machine: Subject, state: str, *accesses: tuple[int, str]) -> dict[str, Any]:
    """The answer for accesses at the same time, once two cores of different chips have made the entry."""
    first = [step((core, op)) for core, op in zip((6, 12 if state != "S1" else 7), MAKE[state], strict=True)]
    result: dict[str, Any] = machine.run([{"kind": "script", "trace": True, "steps": [*first, step(*accesses)]}])[-1]
    return result


def latencies(result: dict[str, Any], number: int) -> list[int]:
    return [a["done"] - a["issued"] for a in result["accesses"][-number:]]


@pytest.mark.parametrize("state", sorted(MAKE))
def test_35_reads_of_a_shared_line_take_little_longer_than_the_slowest_alone(machine: Subject, state: str) -> None:
    slowest = max(latencies(last(machine, state, (core, "ld")), 1)[0] for core in READERS[5::6])
    together = max(latencies(last(machine, state, *((core, "ld") for core in READERS)), len(READERS)))
    # One after the other they would take 35 times as long; data packets queue on the links of one chip.
    assert slowest < together < 6 * slowest


def test_a_store_among_reads_waits_for_those_under_way_and_later_ones_wait_for_it(machine: Subject) -> None:
    writer = READERS[12]
    seen = last(machine, "O", (writer, "st"), *((core, "ld") for core in READERS if core != writer))
    home = [(t["state"], t["event"]) for t in seen["transitions"]
            if t["controller"] == "Directory-0" and t["access"] >= 2]
    begun = home.index(("O", "Store"))
    joined = [i for i, met in enumerate(home[:begun]) if met in (("O", "Load"), ("RO", "Load"))]
    assert joined and max(joined) < home.index(("RO", "Store"))
    # A read that arrives after the store begins after it.
    assert ("RD", "Load") in home[:begun] and ("EM", "Load") in home[begun:]


def test_a_read_of_an_exclusive_line_is_alone_until_its_outcome_is_known(machine: Subject) -> None:
    result = machine.run([{"kind": "script", "trace": True, "steps": [step((6, "st")), step((12, "ld"), (18, "ld"))]}])[-1]
    home = [(t["state"], t["event"]) for t in result["transitions"] if t["controller"] == "Directory-0"]
    assert home.index(("BU", "Load")) < home.index(("BU", "SrcDone_O")) < home.index(("O", "Load"))


def test_probes_that_meet_at_the_owners_chip_share_one_probe_of_its_cores(machine: Subject) -> None:
    seen = last(machine, "O", *((core, "ld") for core in READERS))
    chip = [(t["state"], t["event"]) for t in seen["transitions"] if t["controller"] == "L3Cache-1" and t["access"] >= 2]
    begun, answered = chip.count(("NP", "Probe_Read")), len(READERS)
    assert begun < answered / 2
    assert begun + sum(chip.count(("CD", event)) for event in ("Probe_Read", "Probe_Read_More")) == answered
