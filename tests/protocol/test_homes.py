# SPDX-License-Identifier: BSD-3-Clause
"""One home or several: a protocol that stalls forwards at the head of their queue is safe with one only.

`Handover` (protocols/) is such a protocol, as gem5's MI_example is: docs/slicc.md, "Stalled forwards".
"""

import json
from pathlib import Path
from typing import Any

import pytest

from moscope import buildproto, config, jsonio
from moscope.buildproto import BuiltProtocol
from moscope.errors import ProtocolError, UserError
from moscope.experiment import Subject
from moscope.protocol import check as protocol_check
from moscope.traces.document import run_script
from moscope.traces.script import parse

HANDOVER = Path(__file__).parent / "protocols" / "Handover.slicc"
CORES = 16


@pytest.fixture(scope="module")
def handover() -> BuiltProtocol:
    return buildproto.ensure_protocol(str(HANDOVER))


def scripted(made: BuiltProtocol, script: str) -> dict[str, Any]:
    machine = config.replace(config.load_machine("opteron48"), protocol=config.Name(made.name))
    interface = json.loads(made.interface.read_text(encoding="utf-8"))
    subject = Subject(machine, interface, config.elaborate(machine, interface), made.checking(), 1)
    return run_script(subject, parse(script, machine), script)


# Core 0 has B, core 42 has A; each wants the other's line, and core 1 and 43 want the same lines after them.
STEPS = "c42 st A@n{a}; c0 st B@n{b}; c0 st A@n{a} | c1 st A@n{a} | c42 st B@n{b} | c43 st B@n{b}"


def test_four_stores_to_two_lines_of_two_homes_wait_for_each_other_in_a_circle(handover: BuiltProtocol) -> None:
    with pytest.raises(ProtocolError, match="no progress") as stopped:
        scripted(handover, STEPS.format(a=0, b=7))
    said = str(stopped.value)
    # At each of the two cores the forward for the line that it waits for is in front of the one for the line that it has.
    for core in (0, 42):
        assert said.count(f"L1Cache-{core}.forwardToCache") == 2, said


@pytest.mark.parametrize("home", [0, 3, 7])
def test_the_same_stores_to_lines_of_one_home_complete(handover: BuiltProtocol, home: int) -> None:
    done = scripted(handover, STEPS.format(a=home, b=home))
    assert len(done["accesses"]) == 6


@pytest.mark.parametrize("seed", [1, 2])
def test_random_accesses_with_one_home_come_to_their_end(handover: BuiltProtocol, seed: int) -> None:
    subject = protocol_check.prepare(handover, "opteron48", cores=CORES, homes=1)
    answer = protocol_check.random_test(subject, 100_000, seed)
    assert answer["ops"] == 100_000 and not answer["violations"]


def test_a_protocol_from_elsewhere_is_tested_with_one_home_unless_asked_for_more(handover: BuiltProtocol) -> None:
    assert protocol_check.prepare(handover, "opteron48", cores=CORES).homes == 1
    assert protocol_check.prepare(handover, "opteron48", cores=CORES, homes=4).homes == 4
    assert protocol_check.prepare("MSI", "opteron48", cores=CORES).homes == 8


def test_the_projects_own_protocols_pass_with_any_number_of_homes() -> None:
    for homes in (1, 3, 8):
        subject = protocol_check.prepare("MOESI_HTAssist", "opteron48", cores=CORES, homes=homes)
        assert len(subject.machine["address_map"]) == homes
        assert not protocol_check.random_test(subject, 20_000, 1)["violations"]


def test_the_pool_keeps_its_size_with_fewer_homes() -> None:
    sizes = {homes: protocol_check.prepare("MSI", "opteron48", cores=CORES, homes=homes).pool() for homes in (1, 8)}
    assert sizes[1] == {k: 8 * n for k, n in sizes[8].items()}


@pytest.mark.parametrize("homes", [0, 9])
def test_homes_that_the_machine_cannot_have_are_refused(homes: int) -> None:
    with pytest.raises(UserError, match=f"{homes} homes on 8 chips: expected 1 to 8"):
        protocol_check.prepare("MSI", "opteron48", cores=CORES, homes=homes)


def test_a_protocol_of_the_users_own_runs_on_a_machine_by_its_path(moscope: Any, handover: BuiltProtocol) -> None:
    got = moscope("trace", "c0 ld A@n0; c6 st A@n0", "--machine", "small", "--set", f"protocol={HANDOVER}", "--json",
                  "--set", "cores_per_chip=4")
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    assert document["protocol"] == handover.name == "Handover"
    assert {t["machine"] for t in document["transitions"]} == {"Directory", "L1Cache"}


def test_a_check_that_a_protocol_error_ends_says_what_was_reached_until_then(moscope: Any, handover: BuiltProtocol, tmp_path: Path) -> None:
    got = moscope("protocol", "check", str(HANDOVER), "--cores", str(CORES), "--homes", "8", "--shrink", "0", "--json", "--out", "kept",
                  timeout=600)
    assert got.returncode == ProtocolError.exit_code, got.stderr
    document = json.loads(got.stdout)
    jsonio.validate(document)
    assert json.loads((tmp_path / "kept" / "protocol-check.json").read_text(encoding="utf-8")) == document
    assert not document["ok"] and document["violations"][0] == f"protocol error: {document['protocol_error']}"
    assert 0 < document["ops"] < 1_000_000 and document["seconds"] > 0
    # Some lines were handed on before it stopped, so many transitions must have been reached.
    assert document["declared"] == len(transitions(handover))
    assert set(document["unreached"]) < transitions(handover)
    assert document["reached"] == document["declared"] - len(document["unreached"]) > document["declared"] / 2


def transitions(made: BuiltProtocol) -> set[str]:
    """machine.state.event of all that the protocol declares."""
    interface = json.loads(made.interface.read_text(encoding="utf-8"))
    return {f"{m['type']}.{t['state']}.{t['event']}" for m in interface["machines"] for t in m["transitions"]}
