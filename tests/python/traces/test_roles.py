# SPDX-License-Identifier: BSD-3-Clause
"""A trace knows homes and caches by the roles that the protocol gives its machines, not by their names."""

from typing import Any

import pytest

from moscope.traces.plan import Plan
from moscope.traces.text import supplier_text

CACHE = {"name": "L0Cache-3", "machine": "L0Cache", "version": 3, "core": 3, "chip": 0}
SHARED = {"name": "L3Cache-1", "machine": "L3Cache", "version": 1, "core": None, "chip": 1}
HOME = {"name": "RegionDir-1", "machine": "RegionDir", "version": 1, "core": None, "chip": 1, "role": "home"}
ACCESS = {"id": 0, "op": "ld", "home": 1, "hops": 1, "segments": [], "supplier_number": 1, "supplier_chip": 0}


@pytest.mark.parametrize("supplier, messages, said", [
    ("RegionDir", [{"access": 0, "from": "DRAM-1"}], "the memory of node 1"),
    ("RegionDir", [{"access": 0, "from": "RegionDir-1"}], "node 1, which got the data from a cache"),
    ("L0Cache", [{"access": 0, "from": "L0Cache-3"}], "another core's cache"),
    ("L3Cache", [{"access": 0, "from": "L3Cache-1"}], "an L3"),
])
def test_the_supplier_is_named_by_its_role(supplier: str, messages: list[dict[str, Any]], said: str) -> None:
    document = {"controllers": [CACHE, SHARED, HOME], "messages": messages}
    assert supplier_text(document, {**ACCESS, "supplier": supplier}) == said


@pytest.mark.parametrize("older, said", [
    ({"core": 3, "address": "0x40"}, "c3 ld A@n1, an older access of its core to the line"),
    ({"core": 4, "address": "0x40"}, "a prefetch of its core"),
    ({"core": 3, "address": "0x80"}, "a prefetch of its core"),
])
def test_an_access_that_sent_nothing_and_only_waited_was_served_by_an_older_request_of_its_core(older: dict[str, Any], said: str) -> None:
    first = {"id": 0, "text": "c3 ld A@n1", "op": "ld", "done": 900, **older}
    second = {"id": 1, "text": "c3 ld A@n1+8", "op": "ld", "done": 900, "core": 3, "address": "0x48", "supplier": "RegionDir", "home": 1,
              "hops": 0, "segments": [{"name": "queue", "fs": 900}]}
    document = {"controllers": [CACHE, HOME], "messages": [{"access": 0, "from": "DRAM-1"}], "accesses": [first, second]}
    assert supplier_text(document, second) == said


def test_the_lifeline_of_a_device_is_that_of_the_machine_with_its_role() -> None:
    controllers = [CACHE, HOME, {"name": "Reader-1", "machine": "Reader", "version": 1, "core": None, "chip": 1, "role": "dma"}]
    plan = Plan({"controllers": controllers, "permissions": {}, "accesses": [], "transitions": [], "messages": []})
    assert plan.lanes[plan.lane("device 1")].chip == 1


def test_lifelines_have_the_names_that_controllers_have_in_text() -> None:
    plan = Plan({"controllers": [CACHE, SHARED, HOME], "permissions": {}, "accesses": [], "transitions": [], "messages": []})
    names = ["L0Cache-3", "L3Cache-1", "RegionDir-1", "DRAM-1", "core 3"]
    assert [plan.lanes[plan.lane(name)].title for name in names] == names


def test_a_store_whose_core_had_the_line_names_no_supplier() -> None:
    access = {**ACCESS, "op": "st", "supplier": "L0Cache", "supplier_number": None, "supplier_chip": None,
              "segments": [{"name": "crossbar", "fs": 900}]}
    document = {"controllers": [CACHE, SHARED, HOME], "messages": [{"access": 0, "from": "RegionDir-1"}]}
    assert supplier_text(document, access) == "no cache: the core had the line, and waited to write it"
