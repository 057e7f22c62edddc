# SPDX-License-Identifier: BSD-3-Clause
"""Recorded transactions of lines by byte, core and instruction: of transactions.parquet, else of the names' episodes."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from analysis.described import WRITES
from analysis.run_directory import Point
from moscope.parquet import scan

ALL, SOME = "transactions", "episodes"
COLUMNS = ("line", "name", "name_kind", "va", "core", "pc", "kind", "class", "buffer_wait")
QUERY = """SELECT line // 64 * 64 AS line, name, name_kind AS kind, CASE WHEN va > 0 THEN (va % 64)::INTEGER END AS byte, core, pc,
    access_kind IN {writes} AS writes, bool_or("class" = 'true_sharing') AS changed, bool_or("class" = 'false_sharing') AS beside,
    count(*) AS count FROM (SELECT *, "kind" AS access_kind FROM {file})
    WHERE NOT buffer_wait AND line IN (SELECT unnest(?::UBIGINT[])) GROUP BY ALL ORDER BY ALL"""


@dataclass(frozen=True)
class Accesses:
    """Transactions of one core by one instruction; `at`: the byte, None for page walks and fetches. By their classes, whether other
    cores had written bytes of the access since the core had the line (`changed`), or only other bytes of the line (`beside`)."""

    at: int | None
    core: int
    pc: int
    writes: bool
    changed: bool
    beside: bool
    count: int


def complete(p: Point) -> bool:
    """Whether all transactions of the windows are recorded."""
    return p.database.file(p.name, ALL, *COLUMNS) is not None


def of_lines(p: Point, lines: Sequence[tuple[int, str, str]]) -> dict[int, list[Accesses]]:
    """By line, of lines with their names and kinds. Other uses of a line have another name."""
    file = p.database.file(p.name, ALL, *COLUMNS) or p.database.file(p.name, SOME)
    if file is None or not lines:
        return {}
    wanted, found = set(lines), dict[int, list[Accesses]]()
    rows = duckdb.execute(QUERY.format(writes=WRITES, file=scan(file)), [[line for line, _, _ in lines]]).fetchall()
    for line, name, kind, *access in rows:
        if (line, name, kind) in wanted:
            found.setdefault(line, []).append(Accesses(*access))
    return found
