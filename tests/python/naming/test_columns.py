# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the engine become tables with names: nothing is lost, and kernel code is the same in every address space."""

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from analysis.database import readable
from moscope.config.bindings import of_role, roles_of
from moscope.naming import columns
from moscope.naming.columns import DETAILED, PART, tables
from moscope.naming.dwarf.sources import Source
from moscope.naming.rows import CLASSES, DEVICE_PC, LINES, PAGE_KNOWN, PAIRS, TRANSFERS, WALK

KERNEL = 0xFFFFFFFF81000000
USER = 0x400100
TRUE_SHARING = CLASSES.index("true_sharing")
SUPPLIERS = ("own", "L1Cache", "Directory")


@dataclass
class Named:
    name: str
    kind: str = "slab"
    object: str = ""
    field: str = ""
    type: str = ""


class Names:
    """Functions of 256 bytes, named by their number."""

    def line(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: dict[str, int] | None = None, free: bool = False) -> Named:
        if free:
            return Named("type.free pointer")
        field = "count" if offset < 32 else "next"
        return Named("page table", "page table") if walk else Named(f"type.{field}", "slab", f"object {line}", field)

    def whole_page(self, va: int, cr3: int) -> bool:
        return False

    def allocates(self, pc: int) -> bool:
        return pc >> 8 == KERNEL + 0x900 >> 8

    def code(self, pc: int, cr3: int = 0) -> str:
        return f"f{pc >> 8 & 0xFF}" if pc >> 63 else f"u{cr3}"

    def source(self, pc: int, cr3: int = 0) -> Source | None:
        return None if pc >> 63 else Source(f"a.c:{pc}", ("get called at b.c:2", "add called at a.c:3") if pc == USER else ())

    def process(self, cr3: int) -> str:
        return ""


def line(address: int, stall: int, offset: int = 0, flags: int = 0, space: int = 7, kind: int = TRUE_SHARING, spin: int = 0, use: int = 1,
         waiters: int = 1) -> dict[str, Any]:
    by_class, counts = ([0] * len(CLASSES) for _ in range(2))
    by_class[kind] = stall
    counts[TRUE_SHARING] = 2
    return {"line": address, "va": KERNEL + address, "address_space": space, "stall": stall, "spin": spin, "transfers": 2,
            "class_stall": by_class, "class_count": counts, "offset": offset, "flags": flags, "use": use, "waiters": waiters,
            "page_flags": 1, "page_part_of": 2, "page_index": 3, "page_type": 4, "page_before": 5}


def pair(writer: int, waiter: int, line: int = 0, stall: int = 0, spin: int = 0, space: int = 0, offset: int = 0) -> dict[str, int]:
    return {"writer": writer, "waiter": waiter, "address_space": space, "stall": stall, "spin": spin, "line": line, "count": 1,
            "offset": offset}


def transfer(line: int, supplier: int, sender: int, to: int) -> dict[str, int]:
    return {"line": line, "supplier": supplier, "from": sender, "to": to, "count": 3, "stall": 9}


def packed(rows: list[dict[str, Any]], kind: np.dtype[Any]) -> bytes:
    made = np.zeros(len(rows), kind)
    for n, row in enumerate(rows):
        for name, value in row.items():
            made[name][n] = value
    return made.tobytes()


def named(lines: list[dict[str, Any]], pairs: list[dict[str, int]] | None = None, transfers: list[dict[str, int]] | None = None,
          names: Any = None) -> columns.Tables:
    return tables(names or Names(), (packed(lines, LINES), packed(pairs or [], PAIRS), packed(transfers or [], TRANSFERS)), SUPPLIERS)


def test_a_line_has_its_name_and_the_class_with_the_most_stall() -> None:
    got = named([line(64, 10), line(128, 30, 40, spin=31), line(192, 25, kind=0), line(256, 1, 0, WALK)]).lines.to_pylist()
    assert [(row["name"], row["kind"], row["class"]) for row in got] == [
        ("type.count", "slab", "true_sharing"), ("type.next", "slab", "spin"), ("type.count", "slab", "cold"),
        ("page table", "page table", "true_sharing")]
    assert (got[2]["cold_stall"], got[2]["true_sharing_stall"], got[2]["true_sharing_count"]) == (25, 0, 2)
    assert (got[0]["object"], got[0]["field"], got[3]["object"]) == ("object 64", "count", None)


def test_what_a_page_was_at_the_miss_reaches_the_names_of_its_lines() -> None:
    class ByPage(Names):
        def line(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: dict[str, int] | None = None,
                 free: bool = False) -> Named:
            return Named(str(page))

    got = named([line(64, 30, flags=PAGE_KNOWN), line(128, 10)], names=ByPage()).lines.to_pylist()
    assert [row["name"] for row in got] == ["{'flags': 1, 'part_of': 2, 'index': 3, 'type': 4, 'before': 5}", "None"]
    assert [row["page_part_of"] for row in got] == [2, None]


def test_a_device_that_wrote_last_is_a_writer_without_an_instruction() -> None:
    got = named([line(64, 30)], [pair(DEVICE_PC, KERNEL + 0x200, 0, 20), pair(0, KERNEL + 0x200, 0, 10)]).pairs.to_pylist()
    assert [(row["writer"], row["writer_function"], row["writer_source"]) for row in got] == [(None, "a device", None), (None, None, None)]


def test_a_line_that_the_allocator_waited_for_most_of_the_time_is_a_free_pointer() -> None:
    rows = [line(64, 20, spin=10), line(128, 20, spin=10), line(192, 0)]
    pairs = [pair(0, KERNEL + 0x910, 0, 9, 7), pair(0, KERNEL + 0x200, 0, 11, 3), pair(0, KERNEL + 0x910, 1, 8, 7),
             pair(0, KERNEL + 0x200, 1, 12, 3),
             pair(0, KERNEL + 0x910, 2)]
    assert named(rows, pairs).lines["name"].to_pylist() == ["type.free pointer", "type.count", "type.count"]


def test_a_pair_has_functions_and_the_name_of_the_byte_that_the_waiter_accessed() -> None:
    pairs = [pair(KERNEL + 0x100, KERNEL + 0x201, 1, 19, offset=40), pair(0, 0x400000, 0, 10, 5, space=9),
             pair(0x400000, KERNEL + 0x200, 0, 6)]
    got = named([line(64, 16, spin=5), line(128, 19)], pairs).pairs.to_pylist()
    assert [(row["line"], row["writer_function"], row["waiter_function"], row["kernel"], row["accessed"]) for row in got] == [
        (128, "f1", "f2", True, "type.next"), (64, None, "u9", False, "type.count"),
        (64, "u7", "f2", True, "type.count")], "a user's write in the line's space"
    assert [row["writer"] for row in got] == [KERNEL + 0x100, None, 0x400000] and got[1]["spin"] == 5


def test_user_instructions_have_lines_and_the_calls_inlined_there() -> None:
    pairs = [pair(KERNEL + 0x100, USER, 0, 5), pair(USER + 1, KERNEL + 0x200, 0, 5), pair(0, USER + 1, 0, 5)]
    got = named([line(64, 15)], pairs).pairs.to_pylist()
    assert [(row["writer_source"], row["waiter_source"], row["waiter_inlined"]) for row in got] == [
        (None, f"a.c:{USER}", "get called at b.c:2; add called at a.c:3"), (f"a.c:{USER + 1}", None, None),
        (None, f"a.c:{USER + 1}", None)]


class Paged(Names):
    """Names by page; `whole`: the pages without a part that has its own are known."""

    def __init__(self, whole: bool = False) -> None:
        self._whole, self.asked = whole, 0

    def line(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: dict[str, int] | None = None, free: bool = False) -> Named:
        self.asked += 1
        if va >> 12 == 0x7:
            return Named(f"variable at {va:#x}", "user symbol")
        if va >> 12 == 0x8:
            return Named(f"at {va:#x}", "page cache")
        return Named(f"heap of {cr3} at {va >> 12:#x}, walk {walk}, of {page['part_of'] if page else None}", "heap")

    def whole_page(self, va: int, cr3: int) -> bool:
        return self._whole and va >> 12 != 0x7


def test_lines_of_a_programs_page_are_named_once_where_no_part_of_it_has_a_name() -> None:
    rows = []
    for n in range(600):
        page, within, use = n // 60 % 7 + 3, n % 60 // 3 * 64, n % 3
        row = line(page * 0x5000 + within, 0, use=use, flags=PAGE_KNOWN if use else 0, space=7 + n // 420)
        rows.append(row | {"va": page << 12 | (within if n % 59 else 0), "page_part_of": use // 2})
    rows.append(rows[0] | {"flags": WALK})
    one, each, whole = Paged(), Paged(), Paged(whole=True)
    wanted = [one.line(row["line"], row["va"], row["offset"], row["address_space"], bool(row["flags"] & WALK),
                       {"part_of": row["page_part_of"]} if row["flags"] & PAGE_KNOWN else None) for row in rows]
    for names in (each, whole):
        got = named(rows, names=names).lines.to_pylist()
        assert [(row["name"], row["kind"]) for row in got] == [(found.name, found.kind) for found in wanted]
    assert whole.asked < each.asked - 300


def test_only_the_hottest_lines_have_objects() -> None:
    got = named([line(64 * n, n) for n in range(DETAILED + 2)]).lines["object"].to_pylist()
    assert got[:3] == [None, None, "object 128"] and got.count(None) == 2


def test_each_of_many_lines_has_its_own_name_and_names_do_not_stay_in_memory() -> None:
    alive: list[weakref.ref[Named]] = []
    most = 0

    class Counted(Names):
        def line(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: dict[str, int] | None = None,
                 free: bool = False) -> Named:
            nonlocal most
            one = Named(f"of line {line % 7}")
            alive.append(weakref.ref(one))
            most = max(most, sum(one() is not None for one in alive[-100:]))
            return one

    many = 2 * PART + 5
    got = named([line(n, 10) for n in range(many)], [pair(KERNEL + n, USER, n) for n in range(many)], names=Counted()).lines.to_pylist()
    assert [row["name"] for row in got] == [f"of line {n % 7}" for n in range(many)]
    assert most <= 64  # the bytes of one line, for its fields


def test_user_instructions_differ_by_address_space_and_kernel_instructions_do_not() -> None:
    pcs, spaces = np.array([USER, KERNEL, USER, KERNEL, USER, 0], np.uint64), np.array([1, 2, 1, 3, 4, 5], np.uint64)
    distinct, which = columns.instructions(pcs, spaces)
    assert [distinct[n] for n in which] == [(USER, 1), (KERNEL, 0), (USER, 1), (KERNEL, 0), (USER, 4), (0, 5)]
    assert len(distinct) == 4


def test_a_transfer_has_its_line_and_the_type_of_its_supplier() -> None:
    got = named([line(64, 1), line(128, 2, use=5)], [], [transfer(1, 2, 3, 0)]).transfers.to_pylist()
    assert got == [{"line": 128, "use": 5, "supplier": "Directory", "supplier_role": None, "supplier_per": None, "from_chip": 3,
                    "to_chip": 0, "count": 3, "stall": 9}]


def test_a_transfer_has_the_role_of_its_supplier_in_the_protocol() -> None:
    rows = (packed([line(64, 1)], LINES), b"", packed([transfer(0, 1, 0, 0), transfer(0, 2, 3, 0)], TRANSFERS))
    interface = {"machines": [{"type": "Private", "roles": {"per": "core", "role": "cache"}},
                              {"type": "Keeper", "roles": {"per": "node", "role": "home"}}]}
    got = tables(Names(), rows, ("own", "Private", "Keeper"), {one["type"]: roles_of(one) for one in interface["machines"]}).transfers
    assert [(row["supplier"], row["supplier_role"], row["supplier_per"]) for row in got.to_pylist()] == [
        ("Private", "cache", "core"), ("Keeper", "home", "node")]
    assert of_role(interface, "home") == {"Keeper"}


def test_a_stall_beyond_32_bits_is_not_cut() -> None:
    assert named([line(64, 1 << 60), line(128, 1 << 60)]).total("stall") == 1 << 61


def test_rows_that_are_cut_off_are_refused() -> None:
    with pytest.raises(ValueError):
        tables(Names(), (packed([line(64, 1)], LINES)[:-1], b"", b""), SUPPLIERS)


def test_no_lines_give_tables_without_rows(tmp_path: Any) -> None:
    got = named([])
    assert (got.lines.num_rows, got.pairs.num_rows, got.transfers.num_rows, got.total("stall")) == (0, 0, 0, 0)
    got.write(tmp_path)
    assert parquet.read_schema(tmp_path / "pairs.parquet").metadata[b"schema"] == b"moscope.pairs/1"
    assert {readable(file) for file in tmp_path.iterdir()} == {""}, "their columns have the types that reports expect"
