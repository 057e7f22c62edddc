# SPDX-License-Identifier: BSD-3-Clause
"""moscope.lines/1: instructions add up by function, shares to one, and nothing of the attribution is lost."""

from typing import Any

import pytest

from moscope.naming.document import lines_document
from moscope.naming.namer import hottest

KERNEL = 0xFFFFFFFF81000000


class Names:
    """Functions of 256 bytes, named by their number."""

    def line(self, attribution: dict[str, Any], offset: int | None = None) -> dict[str, Any]:
        return {"name": f"line {attribution['line']}" + (f"+{offset}" if offset else ""), "object": "", "field": "", "kind": "slab", "fields": []}

    def brief(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: dict[str, int] | None = None,
              free: bool = False) -> tuple[str, str]:
        if free:
            return "type.free pointer", "slab"
        return ("page table" if walk else f"type.{'count' if offset < 32 else 'next'}"), "slab"

    def allocates(self, pc: int) -> bool:
        return pc >> 8 == KERNEL + 0x900 >> 8

    def code(self, pc: int, cr3: int = 0) -> str:
        return f"f{pc >> 8 & 0xFF}" if pc >> 63 else f"u{cr3}"

    def process(self, cr3: int) -> str:
        return ""


def attribution() -> dict[str, Any]:
    miss = {"cold": {"count": 9, "stall": 1}, "true_sharing": {"count": 3, "stall": 50}}
    return {"schema": "moscope.attribution/1", "exposed": 60, "lines": [{
        "line": 64, "va": KERNEL, "address_space": 7, "stall": 51, "classes": miss,
        "pairs": [{"writer": KERNEL + 0x100, "waiter": KERNEL + 0x201, "stall": 19, "count": 2, "offset": 8},
                  {"writer": KERNEL + 0x180, "waiter": KERNEL + 0x2F0, "stall": 21, "count": 1, "offset": 16},
                  {"writer": 0, "waiter": 0x400000, "stall": 10, "count": 4}],
        "writers": [{"pc": KERNEL + 0x100, "count": 1}, {"pc": KERNEL + 0x180, "count": 2}, {"pc": KERNEL + 0x300, "count": 1}]}],
        "instructions": [{"pc": KERNEL + 0x201, "stall": 30, "count": 3}, {"pc": 0x400000, "address_space": 5, "stall": 35, "count": 1},
                         {"pc": KERNEL + 0x2F0, "stall": 10, "count": 1}]}


def test_pairs_writers_and_waiters_add_up_by_function() -> None:
    (line,) = lines_document(Names(), attribution())["lines"]
    assert line["class"] == "true_sharing"
    assert line["pairs"] == [{"writer_function": "f1", "waiter_function": "f2", "stall": 40, "spin": 0, "count": 3, "name": "line 64+16"},
                             {"writer_function": "", "waiter_function": "u7", "stall": 10, "spin": 0, "count": 4, "name": "line 64"}]
    assert line["waiters"] == [{"function": "f2", "share": 0.8}, {"function": "u7", "share": 0.2}]
    of_its_own = attribution()
    of_its_own["lines"][0]["pairs"][2]["address_space"] = 9
    assert [w["function"] for w in lines_document(Names(), of_its_own)["lines"][0]["waiters"]] == ["f2", "u9"], "not the line's"
    assert line["writers"] == [{"function": "f1", "share": 0.75}, {"function": "f3", "share": 0.25}]
    assert (line["name"], line["stall"], line["line"]) == ("line 64", 51, 64)


def test_functions_come_with_the_largest_stall_first_and_none_is_lost() -> None:
    document = lines_document(Names(), attribution())
    assert document["schema"] == "moscope.lines/1"
    assert document["functions"] == [{"function": "f2", "kernel": True, "stall": 40, "spin": 0, "count": 4},
                                     {"function": "u5", "kernel": False, "stall": 35, "spin": 0, "count": 1}]


def test_an_empty_attribution_is_an_empty_document() -> None:
    assert lines_document(Names(), {}) == {"schema": "moscope.lines/1", "lines": [], "functions": [], "names": [], "kinds": [],
                                           "all": {"lines": 0, "stall": 0, "spin": 0}}


@pytest.mark.parametrize("stall", [0, 5])
def test_shares_of_nothing_are_nothing(stall: int) -> None:
    whole = attribution()
    whole["lines"][0]["pairs"] = [{"writer": 0, "waiter": KERNEL, "stall": stall, "count": 1}]
    (line,) = lines_document(Names(), whole)["lines"]
    assert line["waiters"] == [{"function": "f0", "share": float(stall > 0)}]


def test_the_field_is_the_one_that_was_waited_for_longest() -> None:
    pairs = [{"stall": 5, "offset": 8}, {"stall": 6, "offset": 24}, {"stall": 4, "offset": 8}]
    assert hottest({"va": 0x1030, "pairs": pairs}) == 8
    assert hottest({"va": 0x1030, "pairs": [{"stall": 5}]}) == 0x30
    assert hottest({"va": 0x1030}) == 0x30
