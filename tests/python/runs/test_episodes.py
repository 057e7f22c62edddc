# SPDX-License-Identifier: BSD-3-Clause
"""The episodes of a point: one line of each of the hottest names, its transactions in their order."""

from pathlib import Path

import numpy
from fake_machine import FakeNames
from pyarrow import parquet

from moscope.naming import columns, rows
from moscope.naming.namer import Named
from moscope.runs import episodes, lines, transactions

SUPPLIERS = ["own", "L1Cache", "Directory"]


class Names(FakeNames):
    """Lines are named by page."""

    def line(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: dict[str, int] | None = None, free: bool = False) -> Named:
        return Named(f"page {line >> 12}", "unknown")


def tables(stalls: dict[int, int]) -> columns.Tables:
    made = numpy.zeros(len(stalls), rows.LINES)
    made["line"], made["stall"], made["use"] = list(stalls), list(stalls.values()), 1
    return columns.tables(Names(), (made.tobytes(), b"", b""), SUPPLIERS)


def records(line: int, count: int) -> bytes:
    made = numpy.zeros(count, transactions.RECORD)
    made["line"], made["use"], made["supplier_state"] = line, 1, 0
    made["done"] = 1000 * numpy.arange(count, 0, -1)
    made["core"] = numpy.arange(count) % 2
    return made.tobytes()


def written(tmp_path: Path, stalls: dict[int, int], raw: bytes) -> list[dict[str, object]]:
    of_point = tables(stalls)
    episodes.write(tmp_path, raw, lines.database(of_point), SUPPLIERS, {}, transactions.Naming(Names(), of_point.lines))
    assert parquet.read_schema(tmp_path / episodes.NAME).metadata == {b"schema": b"moscope.episodes/1"}
    return parquet.read_table(tmp_path / episodes.NAME).to_pylist()


def test_each_name_has_the_line_that_costs_most_and_enough_transactions(tmp_path: Path) -> None:
    stalls = {0x1000: 900, 0x1040: 50, 0x2000: 400, 0x3000: 100}
    raw = records(0x1000, 3) + records(0x1040, 12) + records(0x2000, 9) + records(0x4000, 20)
    found = written(tmp_path, stalls, raw)
    assert [(row["name"], row["line"]) for row in found] == [("page 1", 0x1040)] * 12 + [("page 2", 0x2000)] * 9


def test_transactions_are_in_the_order_of_their_ends(tmp_path: Path) -> None:
    ends = [row["issued"] + row["latency"] for row in written(tmp_path, {0x1000: 1}, records(0x1000, 20))]
    assert ends == sorted(ends)


def test_a_point_without_transactions_has_no_episodes(tmp_path: Path) -> None:
    assert written(tmp_path, {}, b"") == []
