# SPDX-License-Identifier: BSD-3-Clause
"""docs/protocol-moesi-htassist.md says what caches and races of MOESI_HTAssist do: traces show the caches, random runs the races."""

import json
from functools import cache
from typing import Any

import pytest

from moscope import buildproto
from moscope.protocol import check as protocol_check
from moscope.stepping.history import run
from moscope.stepping.spec import Spec

OPS = 150_000
SAME_SET = 1 << 22  # lines that lie in the same set of every cache


@cache
def history(script: str) -> dict[str, Any]:
    return run(Spec(script))


def taken(script: str, access: int, controller: str) -> list[tuple[str, str, str]]:
    """State, event and next state of a controller's transitions for an access (from 1)."""
    return [(t["state"], t["event"], t["next"]) for t in history(script)["trace"]["transitions"]
            if t["access"] == access - 1 and t["controller"] == controller]


def lines(core: int, count: int, op: str = "ld") -> str:
    """Accesses to lines of one set."""
    return "; ".join(f"c{core} {op} {0x10000 + n * SAME_SET:#x}" for n in range(count))


def places(script: str, controller: str) -> dict[str, set[str]]:
    """The arrays in which a controller has each line at the end."""
    held: dict[tuple[str, str], bool] = {}
    for c in history(script)["changes"]:
        if c["kind"] == "way" and c["controller"] == controller:
            held[c["line"], c["array"]] = c["way"] is not None
    return {line: {a for (at, a), there in held.items() if at == line and there} for line, _ in held}


# --- caches -------------------------------------------------------------------------------------------------------

def test_a_line_is_in_exactly_one_of_l1i_l1d_and_l2() -> None:
    for script in (lines(0, 3), lines(0, 4), f"{lines(0, 3)}; c0 if 0x10000", f"{lines(0, 3)}; c0 ld 0x10000"):
        held = places(script, "L1Cache-0")
        assert held and all(len(arrays) == 1 for arrays in held.values())


def test_an_l2_hit_moves_the_line_to_the_l1_and_the_l1s_victim_takes_its_way() -> None:
    before, script = lines(0, 3), f"{lines(0, 3)}; c0 ld 0x10000"
    assert places(before, "L1Cache-0")["0x10000"] == {"L2cache"}
    assert taken(script, 4, "L1Cache-0") == [("E", "L2_Read", "ET"), ("ET", "L2_Read_Done", "E")]
    after = places(script, "L1Cache-0")
    assert after["0x10000"] == {"L1Dcache"} and sorted("".join(a) for a in after.values()) == ["L1Dcache", "L1Dcache", "L2cache"]
    assert [m for m in history(script)["trace"]["messages"] if m["access"] == 3 and m["network"]] == []


def test_a_data_access_to_a_line_in_the_l1i_is_handled_like_an_l2_hit() -> None:
    script = "c0 if A@n0; c0 ld A@n0"
    assert taken(script, 2, "L1Cache-0") == [("S", "L2_Read", "ST"), ("ST", "L2_Read_Done", "S")]
    assert places(script, "L1Cache-0") == {"0x10000": {"L1Dcache"}}


def victims(core: int, op: str = "ld") -> str:
    """As many lines of a set as it takes until the first leaves the core for the L3: two ways of the L1 and 16 of the L2."""
    return lines(core, 19, op)


@pytest.mark.parametrize("op, state", [("ld", "E"), ("st", "M")])
def test_the_l3_accepts_each_victim_and_an_m_or_e_line_moves_to_the_requesting_core(op: str, state: str) -> None:
    script = victims(0, op).replace("0x10000", "A@n7")
    # The filter has four ways in a set, so that the lines' homes differ: the script spreads them over the nodes.
    script = "; ".join(part if "A@n7" in part else f"c0 {op} {(n % 8 << 33) + 0x10000 + n * SAME_SET:#x}"
                       for n, part in enumerate(script.split("; "))) + "; c1 ld A@n7"
    last = len(script.split("; "))
    moved = [t for t in history(script)["trace"]["transitions"] if t["controller"] == "L3Cache-0" and t["address"] == "0xe00010000"]
    assert ("NP", f"Vic_{state}", state) in [(t["state"], t["event"], t["next"]) for t in moved]
    assert (moved[-1]["state"], moved[-1]["next"], moved[-1]["access"]) == (state, "NP", last - 1)
    assert not [m for m in history(script)["trace"]["messages"] if m["access"] == last - 1 and m["from"].startswith("Directory")]


def test_a_line_that_two_cores_of_a_chip_use_is_shared_by_the_homes_probe() -> None:
    script = "c0 ld A@n7; c1 ld A@n7"
    assert [t[1] for t in taken(script, 2, "Directory-7")][0] == "Load"
    assert taken(script, 2, "L1Cache-0") == [("E", "Probe_Read", "S")]
    assert taken(script, 2, "L1Cache-1")[-1][2] == "S"


# --- races --------------------------------------------------------------------------------------------------------

# Machine, state, event, next state: what the page's table of races says. A random run takes each, with right values.
RACES = {
    "a request waits for the transaction of its line": [("Directory", "BU", "Load", "BU"), ("Directory", "BM", "Store", "BM")],
    "concurrent reads against stores and victims": [("Directory", "RM", "Store", "RD"), ("Directory", "RO", "Store", "RD"),
                                                    ("Directory", "RO", "VicBlk", "RD"), ("Directory", "RD", "Load", "RD")],
    "probe against an L2 victim in transit": [("L3Cache", "C", "Vic_Merge", "C"), ("L3Cache", "C", "Last_Answer_Held", "OI")],
    "probe against a line that leaves the chip": [("L3Cache", "MI", "Probe_Read", "OI"), ("L3Cache", "MI", "Probe_Inv", "II"),
                                                  ("L3Cache", "EI", "Probe_Read", "II"), ("L3Cache", "EI", "Probe_Inv", "II"),
                                                  ("L3Cache", "II", "VicGo", "NP")],
    "another copy leaves while the chip's victim waits": [("L3Cache", "II", "Vic_M", "MI")],
    "a victim of a core that has answered": [("L3Cache", "C", "Vic_Late", "C")],
    "upgrade against an invalidation": [("L1Cache", "SM", "Probe_Inv", "IM"), ("L1Cache", "OM", "Probe_Inv", "IM")],
    "upgrade of an owner against reads": [("L1Cache", "OM", "Probe_Read", "OM")],
    "back-invalidation against a request": [("Directory", "RC", "Load", "RC"), ("Directory", "RC", "Store", "RC")],
    "replacement of a busy entry": [("Directory", "BU", "Replace_Load", "BU")],
    "silent S drop against an invalidation": [("L1Cache", "I", "Probe_Inv", "I")],
    "victim of O against an upgrade": [("Directory", "O", "VicBlk", "VG"), ("L3Cache", "OI", "Probe_Inv", "CV")],
    "probe during a move": [("L1Cache", "MT", "Probe_Inv", "MT"), ("L1Cache", "ET", "Probe_Read", "ET")],
}


@pytest.fixture(scope="module")
def unreached(subject: Any) -> set[str]:
    """MACHINE.STATE.EVENT that no random run with tiny caches reaches; every value that they find is right."""
    runs = [protocol_check.random_test(subject("MOESI_HTAssist", cores, jitter="400ns"), OPS, seed)
            for cores in (8, 48) for seed in range(1, 9)]
    assert not [violation for answer in runs for violation in answer["violations"]]
    return set.intersection(*(set(answer["unreached"]) for answer in runs))


@pytest.mark.parametrize("race", RACES)
def test_a_race_of_the_table_occurs_and_is_resolved_as_it_says(race: str, unreached: set[str]) -> None:
    interface = json.loads(buildproto.ensure_protocol("MOESI_HTAssist").interface.read_text(encoding="utf-8"))
    table = {(m["type"], t["state"], t["event"]): t["next"] for m in interface["machines"] for t in m["transitions"]}
    for machine, state, event, after in RACES[race]:
        assert table[machine, state, event] in (after, None), (machine, state, event, table[machine, state, event])
        assert f"{machine}.{state}.{event}" not in unreached, (machine, state, event)
