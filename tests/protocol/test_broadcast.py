# SPDX-License-Identifier: BSD-3-Clause
"""With the filter off, a local clean miss costs the longer of DRAM and the farthest probe.

Each of the three is measured on its own: the miss on the machine without the filter; DRAM as the local miss of the
same machine with the filter, which sends no probe; the farthest probe as an upgrade of a shared line there, which
asks all chips and reads no DRAM. Core cycles of an idle machine, chip 0 and its memory.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import pytest

from moscope.cli import Shared
from moscope.experiment import Subject, prepare
from moscope.latencies.rows import mean_cycles, middle_half

LINES = 128
ON, OFF = "probe_filter.enabled=true", "probe_filter.enabled=false"
FULLY_CONNECTED = ("topology=fully_connected",)


def chain(chips: int) -> tuple[str, ...]:
    """Chips in a row: each one more is one hop farther away."""
    edges = " ".join(f"{n}-{n + 1}" for n in range(chips - 1))
    return (f"chips={chips}", f"topology={edges}" if edges else "topology=fully_connected")


def access(core: int, op: str = "ld") -> dict[str, Any]:
    """A phase: one core walks the first lines of node 0, one access at a time."""
    stream = {"core": core, "op": op, "ranges": [[0, LINES * 64]], "log": LINES}
    return {"kind": "loads", "accesses": LINES, "streams": [stream]}


def last_of(subject: Subject, phases: list[dict[str, Any]]) -> tuple[float, list[dict[str, Any]]]:
    log = subject.run(phases)[-1]["streams"][0]["log"]
    middle = middle_half(log, subject.machine.memory_per_node.bytes)
    return mean_cycles(subject, middle), middle


def subject(*sets: str) -> Subject:
    return prepare(Shared(machine="opteron48", sets=list(sets), quiet=True))


@dataclass(frozen=True)
class Measured:
    miss: float  # without the filter
    dram: float
    probe: float  # the farthest


@functools.cache
def measured(*sets: str) -> Measured:
    with_filter = subject(*sets, ON)
    dram, loads = last_of(with_filter, [access(0)])
    assert all(segment["name"] != "responder" for a in loads for segment in a["segments"]), "a probe was waited for"
    another = with_filter.machine.cores - 1
    probe, upgrades = last_of(with_filter, [access(0), access(another), access(0, "st")])
    assert all(segment["name"] != "dram" for a in upgrades for segment in a["segments"]), "memory was waited for"
    miss, _ = last_of(subject(*sets, OFF), [access(0)])
    return Measured(miss, dram, probe)


@pytest.mark.parametrize("sets", [(), FULLY_CONNECTED, ("topology=straight_ladder",), ("links.clock=2.4GHz",),
                                  *(chain(chips) for chips in (1, 2, 3, 4))], ids=" ".join)
def test_a_local_clean_miss_costs_the_longer_of_dram_and_the_farthest_probe(sets: tuple[str, ...]) -> None:
    seen = measured(*sets)
    assert seen.miss == pytest.approx(max(seen.dram, seen.probe), rel=0.02), seen


def test_the_probe_is_longer_on_the_48_core_machine_and_dram_on_one_chip() -> None:
    assert measured().probe > 2 * measured().dram
    assert measured(*chain(1)).probe < measured(*chain(1)).dram


def test_the_miss_costs_more_with_each_farther_chip_while_dram_stays_the_same() -> None:
    rows = [measured(*chain(chips)) for chips in (2, 3, 4)]
    per_hop = [far.miss - near.miss for near, far in zip(rows, rows[1:], strict=False)]
    machine = subject(*chain(2)).machine
    links = machine.links
    # Of a probe: its bits on a link that moves data at both edges of its clock, the link, the crossbar.
    probe = links.packets.probe.bytes * 8 / (2 * links.width.bits) * links.clock.period + links.latency.fs + machine.crossbar.latency.fs
    # The answer is shorter than the probe, and with data longer; the farthest chip's has none.
    answer = probe - (links.packets.probe.bytes - links.packets.response.bytes) * 8 / (2 * links.width.bits) * links.clock.period
    assert per_hop == pytest.approx([float((probe + answer) / machine.core_clock.period)] * 2, rel=0.02)
    assert [row.dram for row in rows] == pytest.approx([rows[0].dram] * 3, rel=0.005)


def test_the_smaller_the_diameter_the_nearer_the_miss_is_to_dram() -> None:
    straight, twisted, full = (measured(*sets) for sets in (("topology=straight_ladder",), (), FULLY_CONNECTED))
    assert straight.miss - straight.dram > twisted.miss - twisted.dram > 4 * (full.miss - full.dram) > 0
    fast = measured(*FULLY_CONNECTED, "links.latency=1ns")
    assert fast.miss == pytest.approx(fast.dram, rel=0.02)


def test_a_load_on_opteron48_broadcast_takes_as_long_as_that_miss() -> None:
    named = prepare(Shared(machine="opteron48_broadcast", quiet=True))
    assert last_of(named, [access(0)])[0] == measured().miss


def test_the_miss_waits_for_the_last_chips_answer() -> None:
    """Recomputed from the messages of one miss: it ends with the last answer, which is from a farthest chip."""
    without = subject(OFF)
    step = [{"core": 0, "op": "ld", "address": 0}]
    result = without.run([{"kind": "script", "trace": True, "steps": [step]}])[-1]
    answers = {m["from"]: m["deliveries"][0]["at"] for m in result["messages"]
               if m["structure"] == "ResponseMsg" and m["deliveries"][0]["to"] == "L1Cache-0"}
    assert len(answers) == 9  # eight chips and memory
    last = max(answers, key=lambda sender: answers[sender])
    hops = without.machine.hops()[0]
    assert last.startswith("L3Cache-") and hops[int(last.split("-")[1])] == max(hops)
    done = result["accesses"][0]["done"]
    assert 0 <= without.cycles(done - answers[last]) <= 5
    assert without.cycles(answers[last] - answers["Directory-0"]) > 150
