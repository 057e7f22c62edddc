# SPDX-License-Identifier: BSD-3-Clause
"""Every machine of configs/ runs every protocol of the project: random accesses with no violation, finite latencies."""

from __future__ import annotations

import json
import math

import pytest

from moscope import buildproto
from moscope.cli import Shared
from moscope.config import load_machine, machine_names
from moscope.experiment import prepare
from moscope.latencies.rows import levels, measure
from moscope.protocol import check as protocol_check

OPS = 5_000
PROTOCOLS = sorted(buildproto.known_protocols())
every_machine = pytest.mark.parametrize("name", machine_names())
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


def test_there_are_six_machines_and_two_protocols() -> None:
    assert len(machine_names()) >= 6 and {"MSI", "MOESI_HTAssist"} <= set(PROTOCOLS)


@every_protocol
@every_machine
def test_random_accesses_with_the_machines_own_caches_show_no_violation(name: str, protocol: str) -> None:
    subject = protocol_check.prepare(protocol, name, [f"protocol={protocol}"], caches="machine")
    assert subject.machine["cores"] == load_machine(name).cores
    answer = protocol_check.random_test(subject, OPS)
    assert not answer["violations"]
    assert answer["ops"] == OPS and answer["checked_loads"] > OPS / 2


@every_protocol
@every_machine
def test_latencies_are_finite_and_grow_from_level_to_level(name: str, protocol: str) -> None:
    subject = prepare(Shared(machine=name, sets=[f"protocol={protocol}"], quiet=True))
    rows = [measure(subject, level) for level in levels(subject)]
    names = [row.name for row in rows]
    diameter = max(map(max, subject.machine.hops()))
    assert names[0] == "L1" and names[-(diameter + 1):] == [f"DRAM {h} hop{'' if h == 1 else 's'}" for h in range(diameter + 1)]
    measured = [row.measured for row in rows]
    assert all(math.isfinite(cycles) and cycles > 0 for cycles in measured)
    assert measured == sorted(measured)
    for row in rows:
        assert row.recomputed == pytest.approx(row.measured, rel=0.02, abs=2), row.name


@every_machine
def test_the_latency_command_reports_a_number_in_every_row(moscope: object, name: str) -> None:
    got = moscope("latency", "--machine", name, "--json")  # type: ignore[operator]
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    assert document["machine"] == name and len(document["rows"]) >= 5
    assert all(math.isfinite(row["measured"]) and row["measured"] > 0 for row in document["rows"])
