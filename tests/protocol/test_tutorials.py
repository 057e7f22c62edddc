# SPDX-License-Identifier: BSD-3-Clause
"""The tutorials of the protocols (docs/protocol-msi.md, docs/protocol-moesi-htassist.md) say what the protocols do: flows, states, the
entries that transactions leave, and the answers to the exercises."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mutations import ALL, Mutation

from moscope import buildproto, paths
from moscope.protocol import check as protocol_check
from moscope.protocol import counterexample
from moscope.protocol.counterexample.write import script_text
from moscope.stepping.spec import Spec
from moscope.stepping.subject import prepared
from moscope.traces.document import run_script
from moscope.traces.text import message_word


@cache
def trace(script: str, protocol: str | None = None, caches: str = "machine") -> dict[str, Any]:
    subject, steps = prepared(Spec(script, protocol=protocol, caches=caches))
    return run_script(subject, steps, script)


def messages(document: dict[str, Any], access: int) -> list[str]:
    """Messages between controllers and with DRAM that an access (from 1) causes, in the order in which they are sent."""
    return [message_word(m) for m in document["messages"]
            if m["access"] == access - 1 and (m["network"] or m["structure"] == "MemoryMsg")]


def path(document: dict[str, Any], access: int, controller: str) -> list[str]:
    """The states that a controller goes through for an access."""
    taken = [t for t in document["transitions"]
             if t["access"] == access - 1 and t["controller"] == controller and t["state"] != t["next"]]
    return [taken[0]["state"], *(t["next"] for t in taken)] if taken else []


# --- MSI: the three diagrams and the write-back -------------------------------------------------------------------

def test_msi_a_read_miss_with_valid_memory_follows_its_diagram() -> None:
    d = trace("c0 ld A@n0", "MSI")
    assert messages(d, 1) == ["GetS", "read", "data", "Data", "UnblockS"]
    assert path(d, 1, "L1Cache-0") == ["I", "IS", "S"] and path(d, 1, "Directory-0") == ["I", "B_D", "B_U", "S"]


def test_msi_a_read_miss_with_an_owner_follows_its_diagram() -> None:
    d = trace("c1 st A@n0; c0 ld A@n0", "MSI")
    assert [m for m in messages(d, 2) if m not in ("write", "written")] == ["GetS", "Fwd_GetS", "OwnerData", "Data", "UnblockS"]
    assert "write" in messages(d, 2)
    assert path(d, 2, "L1Cache-1") == ["M", "S"] and path(d, 2, "Directory-0") == ["M", "B_O", "B_U", "S"]


def test_msi_a_write_miss_with_sharers_follows_its_diagram() -> None:
    d = trace("c1 ld A@n0; c2 ld A@n0; c0 st A@n0", "MSI")
    got = messages(d, 3)
    assert got[0] == "GetM" and got.count("InvAck") == 2 and got[-2:] == ["Data", "UnblockM"]
    assert path(d, 3, "L1Cache-1") == path(d, 3, "L1Cache-2") == ["S", "I"]
    assert path(d, 3, "Directory-0") == ["S", "B_A", "B_D", "B_U", "M"] and path(d, 3, "L1Cache-0") == ["I", "IM", "M"]


def test_msi_a_write_miss_with_an_owner_ends_in_i_at_the_owner() -> None:
    d = trace("c1 st A@n0; c0 st A@n0", "MSI")
    assert {"Fwd_GetM", "UnblockM"} <= set(messages(d, 2)) and path(d, 2, "L1Cache-1") == ["M", "I"]


def test_msi_the_only_sharer_upgrades_without_invalidations() -> None:
    d = trace("c0 ld A@n0; c0 st A@n0", "MSI")
    assert "Inv" not in messages(d, 2) and "GetM_Sole" in [t["event"] for t in d["transitions"] if t["access"] == 1]


def test_msi_a_replaced_line_in_m_is_written_back_and_one_in_s_is_dropped_silently() -> None:
    d = trace("c0 st A@n0; c0 ld B@n0; c0 ld C@n0; c0 ld D@n0", "MSI", "tiny")
    assert {"PutM", "PutAck", "write"} <= set(messages(d, 3))
    assert [(t["state"], t["next"]) for t in d["transitions"] if t["controller"] == "L1Cache-0" and t["access"] == 2
            and "M" in t["state"] and t["state"] != t["next"] and t["state"] != "IM"] == [("M", "MI"), ("MI", "I")]
    assert "PutM" not in messages(d, 4)


def test_msi_has_the_states_of_the_tutorial_and_about_a_thousand_lines() -> None:
    page = (paths.root() / "docs/protocol-msi.md").read_text(encoding="utf-8")
    interface = json.loads(buildproto.ensure_protocol("MSI").interface.read_text(encoding="utf-8"))
    states = {s["name"] for m in interface["machines"] for s in m["states"]}
    assert states == {"M", "S", "I", "IS", "IM", "SM", "MI", "II", "B_D", "B_O", "B_A", "B_U"}
    assert all(f"`{state}`" in page for state in states - {"M", "S", "I"})
    lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in (paths.root() / "src/mem/ruby/protocol").glob("MSI*.sm"))
    assert 950 <= lines <= 1050


# --- MSI: the exercises -------------------------------------------------------------------------------------------

def fault(name: str) -> Mutation:
    return next(m for m in ALL if m.name == name)


def shortest(subject: Any, library: Path) -> tuple[str, str, Any]:
    """Script, kind and violation of the shrunk failure on four cores."""
    broken = subject("MSI", 4).with_library(library)
    found = counterexample.find(broken, 20_000, 1, 60)
    assert found
    shrunk = found[0]
    node = int(broken.machine["address_map"][0]["bytes"])
    return script_text(shrunk.candidate, node), shrunk.outcome.kind, shrunk.outcome


@pytest.mark.long
def test_exercise_1_a_missing_acknowledgement_blocks_the_store_that_waits_for_it(subject: Any, mutant: Callable[..., Path]) -> None:
    script, kind, outcome = shortest(subject, mutant(fault("msi-lost-ack")))
    assert kind == "stuck" and re.fullmatch(r"c(\d) ld (A@n\d); c(?!\1)\d st \2", script)
    assert outcome.access == 1


def test_exercise_2_a_sharer_that_keeps_its_copy_loads_an_old_value(subject: Any, mutant: Callable[..., Path]) -> None:
    script, kind, outcome = shortest(subject, mutant(fault("msi-kept-copy")))
    assert kind == "value" and outcome.violation["found"] == -1 and outcome.violation["expected"] == [1]
    assert re.fullmatch(r"c(\d) ld (A@n\d); c\d st \2; c\1 ld \2", script)


SM_STAYS = Mutation("msi-sm-stays", "MSI", "  transition(SM, Inv, IM) {", "  transition(SM, Inv, SM) {",
                    "an upgrade that was overtaken waits in SM")


@pytest.mark.long
def test_exercise_3_an_overtaken_upgrade_that_stays_in_sm_is_no_fault_in_a_million_accesses(
        subject: Any, mutant: Callable[..., Path]) -> None:
    changed = subject("MSI", 4).with_library(mutant(SM_STAYS))
    assert protocol_check.random_test(changed, 1_000_000)["violations"] == []


# --- MOESI_HTAssist -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("script, entry", [
    ("c0 ld A@n0", "EM"),
    ("c0 if A@n0", "S1"),
    ("c0 st A@n0; c6 ld A@n0", "O"),
    ("c0 ld A@n0; c1 ld A@n0", "S1"),
    ("c0 ld A@n0; c6 ld A@n0", "S"),
    ("c0 ld A@n0; c1 ld A@n0; c2 ld A@n0", "S1"),
    ("c0 ld A@n0; c1 ld A@n0; c6 ld A@n0", "S"),
    ("c0 ld A@n0; c6 ld A@n0; c0 st A@n0", "EM"),
    ("c0 st A@n0; c0 flush A@n0", "I"),
    ("c0 st A@n0; c6 ldu A@n0", "I"),
])
def test_moesi_a_transaction_leaves_the_entry_that_its_table_says(script: str, entry: str) -> None:
    last = [t for t in trace(script)["transitions"] if t["controller"] == "Directory-0"][-1]
    assert last["next"] == entry


def test_moesi_its_pages_name_each_state_and_no_other() -> None:
    interface = json.loads(buildproto.ensure_protocol("MOESI_HTAssist").interface.read_text(encoding="utf-8"))
    states = {m["type"]: {s["name"] for s in m["states"]} for m in interface["machines"]}
    page = (paths.root() / "docs/protocol-moesi-htassist.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\b[A-Z][A-Z0-9]{0,2}\b", page))
    stable = {"M", "O", "E", "S"}
    transient = {"IS", "IM", "SM", "OM", "IU", "IW", "IN", "MT", "ET", "OT", "ST"}
    assert stable | transient <= states["L1Cache"] and states["L1Cache"] - stable - transient <= {"I", "NP"}
    assert {"MI", "EI", "OI", "II", "C", "CV", "CD"} <= states["L3Cache"]
    assert {"EM", "O", "S", "S1", "I", "NP", "U", "RM", "RO", "RD", "RC", "BM", "BU", "BW"} <= states["Directory"] and "RD" in words


def test_moesi_a_flow_takes_the_messages_of_the_page() -> None:
    d = trace("c0 ld A@n0; c0 st A@n0; c6 st A@n0")
    assert messages(d, 2) == []  # a store to E needs no message
    assert messages(d, 3) == ["Store", "Store", "ProbeInv", "ProbeInv", "AnswerDirty", "Data", "SrcDoneX"]


def test_moesi_the_number_of_seeded_faults_is_that_of_the_page() -> None:
    page = (paths.root() / "docs/protocol-moesi-htassist.md").read_text(encoding="utf-8")
    assert "`tests/protocol/mutations.py` has sixteen seeded" in page
    assert sum(m.protocol == "MOESI_HTAssist" for m in ALL) == 16
