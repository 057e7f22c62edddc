# SPDX-License-Identifier: BSD-3-Clause
"""Uncached loads and stores of a part of a line past the caches: the right value, and no cache has the line afterwards."""

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
    steps = [[{"core": int(core[1:]), "op": op, "address": 0x10000}] for core, op in (a.split() for a in accesses)]
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


@pytest.mark.parametrize("before", BEFORE)
def test_a_word_stored_past_the_caches_is_what_others_find(machine: Any, before: str) -> None:
    made = BEFORE[before]
    seen, _ = values(machine, *made, "c18 nt", "c6 ld", "c18 ldu")
    assert seen[-2:] == [len(made) + 1] * 2
