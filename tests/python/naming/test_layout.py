# SPDX-License-Identifier: BSD-3-Clause
"""The fields of the hottest lines: runs of bytes with one name cover each line, and the right lines are chosen."""

from typing import Any

import numpy as np

from moscope.naming import layout
from moscope.naming.namer import Named
from moscope.naming.rows import LINES


class Samples:
    """Lines of a structure: two fields, padding, and an array without a type."""

    def named(self, n: int, offset: int | None = None, free: bool | None = None) -> Named:
        at = offset or 0
        if at < 8:
            return Named("s.count", "slab", f"object {n}", typed="long")
        if at < 12:
            return Named("s.lock", "slab", typed=lambda: "spinlock_t")
        return Named(f"s+{at:#x}" if at < 32 else f"physical {at:#x}", "slab" if at < 32 else "unknown")


def rows(*lines: tuple[int, int]) -> Any:
    """Rows of (address, stall)."""
    made = np.zeros(len(lines), LINES)
    made["line"], made["stall"] = [line for line, _ in lines], [stall for _, stall in lines]
    made["use"] = 1
    return made


def test_runs_of_bytes_with_one_name_cover_the_line() -> None:
    got = layout.fields(rows((64, 5)), Samples(), [("s", "slab")], np.zeros(1, int)).to_pylist()  # type: ignore[arg-type]
    assert [(one["first"], one["bytes"], one["name"], one["kind"], one["object"], one["type"]) for one in got] == [
        (0, 8, "s.count", "slab", "object 0", "long"), (8, 4, "s.lock", "slab", None, "spinlock_t"),
        (12, 20, "s+0xc", "slab", None, None), (32, 32, "physical 0x20", "unknown", None, None)]
    assert {(one["line"], one["use"]) for one in got} == {(64, 1)}


def test_each_object_without_a_type_is_a_run_of_its_own() -> None:
    class Objects(Samples):
        def named(self, n: int, offset: int | None = None, free: bool | None = None) -> Named:
            distance = ((offset or 0) + 64) % 96  # the end of an object of 96 bytes and the beginning of the next one
            return Named(f"kmalloc-96+{distance:#x}" if distance else "kmalloc-96", "slab")

    got = layout.fields(rows((64, 5)), Objects(), [("k", "slab")], np.zeros(1, int)).to_pylist()  # type: ignore[arg-type]
    assert [(one["first"], one["bytes"], one["name"]) for one in got] == [(0, 32, "kmalloc-96+0x40"), (32, 32, "kmalloc-96")]


def test_the_hottest_lines_and_those_of_the_hottest_names_are_chosen() -> None:
    hot = [(64 * n, 1000 - n) for n in range(layout.LINES)]
    many = [(0x100000 + 64 * n, 500) for n in range(10)]  # more than any other name in all, each colder than the hot lines
    names = [(f"hot {n}", "slab") for n in range(len(hot))] + [("many", "slab")]
    found = layout.chosen(rows(*hot, *many), names, np.minimum(np.arange(len(hot) + len(many)), len(hot)))
    assert found == {*range(layout.LINES), *range(len(hot), len(hot) + layout.LINES_OF_NAME)}


def test_without_lines_there_are_no_fields() -> None:
    got = layout.fields(rows(), Samples(), [], np.zeros(0, int))  # type: ignore[arg-type]
    assert got.num_rows == 0 and got.schema == layout.SCHEMA
