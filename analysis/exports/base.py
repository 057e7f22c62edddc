# SPDX-License-Identifier: BSD-3-Clause
"""What exports have in common: the stack that waited for a line, and a point's recorded transactions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.database import connect, readable
from analysis.places import calls
from analysis.run_directory import Point, RunDirectoryError
from moscope.parquet import scan

STACKS = """
    WITH sums AS (SELECT waiter_function AS function, waiter_source AS source, waiter_inlined AS inlined, kernel, name,
                         sum(stall)::BIGINT AS stall, sum(spin)::BIGINT AS spin, sum(count)::BIGINT AS count
                  FROM pairs WHERE point = ? GROUP BY ALL)
    SELECT * FROM sums ORDER BY stall + spin DESC, function, source, inlined, name"""


@dataclass(frozen=True)
class Slice:
    """A part of a point's time, in fs from its first transaction; `length` None: to the end."""

    begin: int = 0
    length: int | None = None


@dataclass(frozen=True)
class Export:
    """`files` makes the contents by the end of the file's name; `sliced`: it takes a Slice, and needs recorded transactions."""

    about: str
    files: Callable[[Point, Slice], dict[str, bytes]]
    sliced: bool = False


@dataclass(frozen=True)
class Frame:
    """A function and where in it the one below was called, or the access is; the place is empty where it is not known."""

    function: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Stack:
    """`frames`: outermost first, the inlined functions last; then the name of the line that they wait for. Times in fs."""

    frames: tuple[Frame, ...]
    name: str
    kernel: bool
    stall: int
    spin: int
    count: int


def stacks(p: Point) -> Iterator[Stack]:
    if p.database.file(p.name, "pairs") is None:
        raise RunDirectoryError(f"{p.name}: has no tables of lines: expected a run of the embedded engine")
    for row in p.database.rows(STACKS, p.name):
        yield Stack(frames(row["function"] or "unknown", row["source"], calls(row["inlined"])), row["name"], row["kernel"], row["stall"],
                    row["spin"], row["count"])


def frames(function: str, source: str | None, inlined: list[str]) -> tuple[Frame, ...]:
    """Of an instruction: `inlined` has, innermost first, `FUNCTION called at FILE:LINE`."""
    found, place = [], source or ""
    for call in inlined:
        name, _, called_at = call.partition(" called at ")
        found.append(_frame(name, place))
        place = called_at
    found.append(_frame(function, place))
    return tuple(reversed(found))


def _frame(function: str, place: str) -> Frame:
    file, _, line = place.rpartition(":")
    return Frame(function, file, int(line) if line.isdigit() else 0)


def transactions(p: Point, query: str, *parameters: object) -> list[dict[str, Any]]:
    """The rows of a query over the point's `transactions`."""
    file = recorded(p)
    database = connect()
    database.execute(f"CREATE VIEW transactions AS SELECT * FROM {scan(file)}")
    result = database.execute(query, list(parameters))
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def recorded(p: Point, *columns: str) -> Path:
    """The file of a point's transactions, which has these columns."""
    file = p.database.file(p.name, "transactions")
    if file is None and (damaged := p.database.damaged(p.name, "transactions")):
        raise RunDirectoryError(f"{damaged}: expected the file that the run wrote")
    if file is None:
        raise RunDirectoryError(f"{p.name}: has no recorded transactions: expected a run with --detail full")
    if columns and (damaged := readable(file, columns)):
        raise RunDirectoryError(f"{file}: cannot be used ({damaged}): expected a run of this version")
    return file
