# SPDX-License-Identifier: BSD-3-Clause
"""Uncached loads and stores past the caches, of a line or a part: the right value, and no cache has the line afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from moscope.cli import Shared
from moscope.experiment import prepare

# Who had the line before, and how: in every state of the home's entry, and the asking core itself (18, on chip 3).
BEFORE = {
    "no cache": [], "dirty on another chip": ["c6 st"], "clean on another chip": ["c6 st", "c6 flush", "c6 ld"],
    "dirty and shared": ["c6 st", "c12 ld"], "shared": ["c6 ld", "c12 ld"], "instructions": ["c6 if"],
    "dirty on its chip": ["c19 st"], "its own, dirty": ["c18 st"], "its own, shared": ["c18 ld", "c6 ld"],
}


@pytest.fixture(scope="module", params=["true", "false"], ids=["filter", "broadcast"])
def machine(request: pytest.FixtureRequest) -> Any:
    sets = ["probe_filter.enabled=" + request.param]
    return prepare(Shared(machine="opteron48", quiet=True, sets=sets), checking=True)


def values(machine: Any, *accesses: str) -> tuple[list[int], dict[str, Any]]:
    asked = [(int(core[1:]), *op.partition(":")[::2]) for core, op in (a.split() for a in accesses)]
    steps = [[{"core": core, "op": op, "address": 0x10000} | ({"size": int(size)} if size else {})] for core, op, size in asked]
    result = machine.run([{"kind": "script", "trace": True, "steps": steps}])[-1]
    return [a["value"] for a in result["accesses"]], result


@pytest.mark.parametrize("before", BEFORE)
def test_an_uncached_load_sees_the_last_store_and_leaves_no_copy(machine: Any, before: str) -> None:
    made = BEFORE[before]
    seen, result = values(machine, *made, "c18 ldu", "c18 ldu", "c30 ld")
    stored = next((i + 1 for i, a in enumerate(made) if a.endswith(" st")), 0)
    assert seen[-3:] == [stored] * 3
    # The second finds no copy: memory supplies it, and so it does for the load at last.
    last = [a for a in result["accesses"] if a["id"] >= len(made) + 1]
    assert [a["supplier"] for a in last] == ["Directory", "Directory"]


@pytest.mark.parametrize("size", ["", ":64"], ids=["word", "line"])
@pytest.mark.parametrize("before", BEFORE)
def test_what_is_stored_past_the_caches_is_what_others_find(machine: Any, before: str, size: str) -> None:
    made = BEFORE[before]
    seen, _ = values(machine, *made, f"c18 nt{size}", "c6 ld", "c18 ldu")
    assert seen[-2:] == [len(made) + 1] * 2


@pytest.mark.parametrize("before", BEFORE)
def test_the_store_of_a_line_is_complete_when_dram_has_taken_it(machine: Any, before: str) -> None:
    made = BEFORE[before]
    _, result = values(machine, *made, "c18 nt:64")
    # Otherwise nothing limits the stores that a core has under way to a home: it continues before its bytes have left the chip.
    taken = [t for t in result["transitions"] if t["machine"] == "Directory" and (t["state"], t["event"]) == ("BW", "Mem_Ack")]
    done = [t for t in result["transitions"] if t["controller"] == "L1Cache-18" and t["event"] == "NT_Done"]
    assert len(taken) == len(done) == 1 and taken[0]["at"] < done[0]["at"]
    store = result["accesses"][-1]
    assert store["done"] >= done[0]["at"]
