# SPDX-License-Identifier: BSD-3-Clause
"""Machines made and changed in Python: the same names, values and errors as `--set` has."""

import pytest

import moscope
from moscope.config import load_machine

RING = [(chip, (chip + 1) % 8) for chip in range(8)]


def test_a_parameter_is_named_as_with_set_or_with_underscores_for_dots() -> None:
    named = moscope.Machine("opteron48", links_clock="2.4GHz", probe_filter_enabled=False)
    mapped = moscope.Machine("opteron48", {"links.clock": "2.4GHz", "probe_filter.enabled": False})
    assert named == mapped and hash(named) == hash(mapped)
    assert named.description == load_machine("opteron48", ["links.clock=2.4GHz", "probe_filter.enabled=false"])


def test_with_makes_another_machine_and_leaves_the_first() -> None:
    first = moscope.Machine("opteron48")
    second = first.with_(topology=RING).with_(topology="ring", links_width="x8")
    assert first.sets == [] and second.sets == ["topology=ring", "links.width=x8"]
    assert second["links.width"] == "x8" and first["links.width"] != "8"


def test_a_topology_is_a_list_of_pairs() -> None:
    machine = moscope.Machine("opteron48", topology=RING)
    assert machine.edges == sorted(tuple(sorted(edge)) for edge in RING) or machine.edges == RING
    assert max(machine.hops[0]) == 4


def test_parameters_are_a_table_that_marks_what_is_changed() -> None:
    rows = moscope.Machine("small", links_clock="2.4GHz").parameters.to_pylist()
    assert [(r["key"], r["value"]) for r in rows if r["changed"]] == [("links.clock", "2.4GHz")]
    assert {r["key"] for r in rows} >= {"name", "l3.size", "dram.channels"}


@pytest.mark.parametrize("base, values, said", [
    ("opteron84", {}, "no machine called 'opteron84'"),
    ("opteron48", {"links_clok": "1GHz"}, "unknown key links_clok: expected a known name, such as links_clock"),
    ("opteron48", {"links.clok": "1GHz"}, "such as links.clock"),
    ("opteron48", {"links_clock": "1GHzz"}, "--set links.clock=1GHzz: links.clock: '1GHzz' has the unknown unit"),
    ("gone.py", {}, "gone.py"),
    ("small", {"links.clock": "1GHz", "links_clock": "2GHz"},
     "links.clock is given both in the mapping and as a keyword: expected one of the two"),
])
def test_a_mistake_is_a_user_error_where_the_machine_is_made(base: str, values: dict[str, str], said: str) -> None:
    dotted = {key: value for key, value in values.items() if "." in key}
    with pytest.raises(moscope.UserError, match="expected") as error:
        moscope.Machine(base, dotted, **{key: value for key, value in values.items() if key not in dotted})
    assert said in str(error.value)
