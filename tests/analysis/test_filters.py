# SPDX-License-Identifier: BSD-3-Clause
"""What the transitions of a home mean for its probe filter."""

import json
from fnmatch import fnmatchcase

import pytest

from analysis.filters import of_protocol
from moscope import paths

HT_ASSIST = of_protocol("MOESI_HTAssist")


@pytest.mark.parametrize("transition, which", [
    ("NP.Load", 0), ("S.Fetch", 1), ("EM.Load", 2), ("EM.Store", 2), ("O.Load", 2), ("O.Upgrade", 3), ("S1.Store", 3), ("RM.Load", 1),
    ("RO.Fetch", 2), ("RM.Store", None), ("RO.Store", None), ("RD.Load", None), ("EM.Replace_Load", 4), ("I.Replace_Load", None),
    ("BM.Mem_Data", None)])
def test_filter_outcomes_are_those_of_ht_assist(transition: str, which: int | None) -> None:
    assert HT_ASSIST is not None and HT_ASSIST.outcome(transition) == which


def test_the_outcomes_of_a_filter_name_states_and_events_of_the_protocol() -> None:
    interface = json.loads((paths.protocol_dir() / "MOESI_HTAssist.json").read_text())
    assert HT_ASSIST is not None
    (machine,) = (m for m in interface["machines"] if m["type"] == HT_ASSIST.machine)
    groups = [group for one in HT_ASSIST.outcomes for group in one["transitions"]]
    assert {state for group in groups for state in group["states"]} <= {s["name"] for s in machine["states"]}
    events = {e["name"] for e in machine["events"]}
    assert all(any(fnmatchcase(event, pattern) for event in events) for group in groups for pattern in group["events"])


def test_a_replacement_counts_once_it_is_decided_and_not_while_it_waits() -> None:
    assert HT_ASSIST is not None
    counts = {"S.Replace_Load": 5, "EM.Replace_Store": 3, "I.Replace_Load": 70, "BM.Replace_Load": 900, "NP.Load": 11, "EM.Fetch": 2,
              "BM.Load": 400}
    assert HT_ASSIST.replaced(counts) == 8 and HT_ASSIST.requests(counts) == 13


def test_a_protocol_without_probe_filters_has_no_outcomes() -> None:
    assert of_protocol("MSI") is None and of_protocol("../secret") is None
