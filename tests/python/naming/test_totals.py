# SPDX-License-Identifier: BSD-3-Clause
"""All lines of a run, added up by name: nothing is lost, and code of the kernel is the same in every address space."""

from typing import Any

import numpy as np
import pytest
from test_document import KERNEL, Names

from moscope import jsonio
from moscope.naming.document import lines_document
from moscope.naming.totals import LINES, MOVES, PAGE_SEEN, PAIRS, WALK, totals


SUPPLIERS = ("own", "L1Cache", "Directory")


def tables(lines: list[tuple[object, ...]], pairs: list[tuple[int, ...]], moves: list[tuple[int, ...]] | None = None) -> tuple[Any, ...]:
    return np.array(lines, LINES).tobytes(), np.array(pairs, PAIRS).tobytes(), np.array(moves or [], MOVES).tobytes(), SUPPLIERS


def line(address: int, stall: int, offset: int = 0, flags: int = 0, space: int = 7, kind: int = 3, spin: int = 0, use: int = 1,
         waiters: int = 1) -> tuple[object, ...]:
    by_class = [0] * 5
    by_class[kind] = stall
    return (address, KERNEL + address, space, stall, spin, 2, tuple(by_class), (0, 0, 0, 2, 0), offset, flags, 0, 1, 2, 3, 4, 5, use, 0, waiters)


def test_lines_of_one_name_add_up_and_the_largest_comes_first() -> None:
    got = totals(Names(), *tables([line(64, 10), line(128, 30, 40), line(192, 25, 8, kind=0), line(256, 1, 0, WALK)], []))
    assert [(n["name"], n["lines"], n["stall"], n["transfers"]) for n in got["names"]] == [
        ("type.count", 2, 35, 4), ("type.next", 1, 30, 2), ("page table", 1, 1, 2)]
    assert got["names"][0]["class"] == "cold" and got["names"][0]["classes"]["true_sharing"] == {"count": 4, "stall": 10}
    assert got["kinds"] == [{"kind": "slab", "lines": 4, "stall": 66, "spin": 0}] and got["all"] == {"lines": 4, "stall": 66, "spin": 0}


def test_what_a_page_was_at_the_miss_reaches_the_names_of_its_lines() -> None:
    class Told(Names):
        def brief(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: dict[str, int] | None = None,
                  free: bool = False) -> tuple[str, str]:
            return str(page), "slab"

    got = totals(Told(), *tables([line(64, 30, flags=PAGE_SEEN), line(128, 10)], []))
    assert [n["name"] for n in got["names"]] == ["{'flags': 1, 'part_of': 2, 'index': 3, 'type': 4, 'before': 5}", "None"]


def test_a_line_of_several_uses_has_the_name_of_each_and_is_one_line() -> None:
    class ByUse(Names):
        def brief(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: dict[str, int] | None = None,
                  free: bool = False) -> tuple[str, str]:
            return "page table" if walk else "file", "page table" if walk else "slab"

    rows = [line(64, 30, use=1), line(64, 10, flags=WALK, use=2), line(64, 5, use=3), line(128, 1)]
    got = totals(ByUse(), *tables(rows, []))
    assert [(n["name"], n["stall"], n["lines"]) for n in got["names"]] == [("file", 36, 2), ("page table", 10, 1)]
    assert got["all"]["lines"] == 2


def test_a_line_that_the_allocator_waited_for_most_of_the_time_is_told_so() -> None:
    rows = [line(64, 20, spin=10), line(128, 20, spin=10), line(192, 0)]
    pairs = [(0, KERNEL + 0x910, 0, 9, 7, 0, 1), (0, KERNEL + 0x200, 0, 11, 3, 0, 1),
             (0, KERNEL + 0x910, 0, 8, 7, 1, 1), (0, KERNEL + 0x200, 0, 12, 3, 1, 1), (0, KERNEL + 0x910, 0, 0, 0, 2, 1)]
    assert {n["name"]: n["lines"] for n in totals(Names(), *tables(rows, pairs))["names"]} == {"type.free pointer": 1, "type.count": 2}


def test_moves_and_cores_of_a_name_are_those_of_all_its_lines() -> None:
    rows = [line(64, 10, waiters=0b0011), line(128, 10, waiters=0b1010), line(192, 1, 40, waiters=1 << 47)]
    moves = [(5, 2, 0, 1, 0, 1, 0), (7, 1, 1, 1, 0, 1, 0), (9, 9, 1, 2, 3, 0, 0), (1, 1, 2, 2, 3, 0, 0)]
    first, other = totals(Names(), *tables(rows, [], moves))["names"]
    assert (first["cores"], other["cores"]) == (3, 1)
    assert first["moves"] == [{"supplier": "Directory", "from": 3, "to": 0, "count": 9, "stall": 9},
                              {"supplier": "L1Cache", "from": 0, "to": 1, "count": 3, "stall": 12}]
    assert other["moves"] == [{"supplier": "Directory", "from": 3, "to": 0, "count": 1, "stall": 1}]


def test_a_name_that_is_spun_on_comes_before_one_with_more_stall() -> None:
    rows = [line(64, 10, spin=50), line(128, 30, 40), line(192, 25, 8)]
    pairs = [(KERNEL + 0x100, KERNEL + 0x200, 0, 10, 50, 0, 1), (KERNEL + 0x100, KERNEL + 0x300, 0, 25, 0, 2, 9)]
    got = totals(Names(), *tables(rows, pairs))
    assert [(n["name"], n["stall"], n["spin"], n["class"]) for n in got["names"]] == [
        ("type.count", 35, 50, "spin"), ("type.next", 30, 0, "true_sharing")]
    first = got["names"][0]
    assert [p["waiter_function"] for p in first["pairs"]] == ["f2", "f3"] == [w["function"] for w in first["waiters"]]
    assert first["waiters"][0]["share"] == pytest.approx(60 / 85) and got["all"]["spin"] == 50 == got["kinds"][0]["spin"]


def test_functions_of_a_name_are_those_of_all_its_lines() -> None:
    rows = [line(64, 10, space=7), line(128, 30, space=8)]
    pairs = [(KERNEL + 0x100, KERNEL + 0x200, 0, 6, 0, 0, 1), (KERNEL + 0x100, KERNEL + 0x210, 0, 20, 0, 1, 2), (0, 0x400000, 7, 4, 0, 0, 1),
             (0, 0x400000, 8, 10, 0, 1, 1)]
    (name,) = totals(Names(), *tables(rows, pairs))["names"]
    assert name["writers"] == [{"function": "f1", "share": 1.0}]
    assert name["waiters"] == [{"function": "f2", "share": 0.65}, {"function": "u8", "share": 0.25}, {"function": "u7", "share": 0.1}]
    assert name["pairs"][0] == {"writer_function": "f1", "waiter_function": "f2", "stall": 26, "spin": 0, "count": 3}


def test_the_kernel_after_a_users_write_waited_in_that_users_process() -> None:
    (name,) = totals(Names(), *tables([line(64, 10, space=7)], [(0x400000, KERNEL + 0x200, 0, 6, 0, 0, 1)]))["names"]
    assert name["writers"][0]["function"] == "u7" and name["waiters"][0]["function"] == "f2"


def test_a_stall_beyond_32_bits_is_not_cut() -> None:
    given = tables([line(64, 1 << 60), line(128, 1 << 60)], [(0, KERNEL, 0, 1 << 60, 0, 0, 1), (0, KERNEL, 0, 1 << 60, 0, 1, 1)])
    got = totals(Names(), *given)
    assert got["all"]["stall"] == got["names"][0]["stall"] == got["names"][0]["pairs"][0]["stall"] == 1 << 61


def test_a_table_that_is_cut_off_is_refused() -> None:
    *given, _ = tables([line(64, 1)], [])
    with pytest.raises(ValueError):
        totals(Names(), given[0][:-1], *given[1:], SUPPLIERS)


def test_the_document_is_what_its_schema_says() -> None:
    *given, _ = tables([line(64, 10)], [(KERNEL + 0x100, KERNEL + 0x200, 0, 10, 0, 0, 1)])
    jsonio.validate(lines_document(Names(), {}, tuple(given), SUPPLIERS))
