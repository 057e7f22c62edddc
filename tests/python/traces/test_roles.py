# SPDX-License-Identifier: BSD-3-Clause
"""A trace knows homes and caches by the roles that the protocol gives its machines, not by their names."""

from typing import Any

import pytest

from moscope.traces.text import supplier_text

CACHE = {"name": "L0Cache-3", "machine": "L0Cache", "version": 3, "core": 3, "chip": 0}
SHARED = {"name": "L3Cache-1", "machine": "L3Cache", "version": 1, "core": None, "chip": 1}
HOME = {"name": "RegionDir-1", "machine": "RegionDir", "version": 1, "core": None, "chip": 1, "role": "home"}


@pytest.mark.parametrize("supplier, messages, said", [
    ("RegionDir", [{"access": 0, "from": "DRAM-1"}], "the memory of node 1"),
    ("RegionDir", [], "node 1, which had it from a cache"),
    ("L0Cache", [], "another core's cache"),
    ("L3Cache", [], "an L3"),
])
def test_the_supplier_is_named_by_its_role(supplier: str, messages: list[dict[str, Any]], said: str) -> None:
    document = {"controllers": [CACHE, SHARED, HOME], "messages": messages}
    assert supplier_text(document, {"id": 0, "op": "ld", "supplier": supplier, "home": 1, "hops": 1, "segments": []}) == said
