# SPDX-License-Identifier: BSD-3-Clause
"""A run's tables of lines, pairs and transfers (docs/run-directory.md) as one DuckDB database, which tables, figures and the
report query. Its tables have a column `point`, the point's name. They add these columns to those of the files:

    lines       waiting (stall + spin); entry: its name, or that of the elements of an array which it is one of (analysis/arrays.py)
    pairs       waiting; name, which is the entry, kind and element, which is the name, of the line
    transfers   name and kind of the line, as in pairs
    fields      as in the file; without rows where a run has none
    loads, card likewise
    names       sums of `lines` by entry, as `name`, and kind; `lines` counts addresses, `waited` those with waiting; `class` is the class
                with most of the time, apart from misses that wait for older ones
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from analysis import arrays
from analysis.described import MISS_CLASS, SPIN
from moscope.parquet import TEXT, TRUTH, WHOLE, held, holds, quoted, scan, unreadable
from moscope.schema.records import TRANSACTIONS

FILES = ("lines", "pairs", "transfers")
# Files that some runs lack, with their columns.
OPTIONAL = {"fields": {"line": "UBIGINT", "use": "UINTEGER", "first": "UTINYINT", "bytes": "UTINYINT", "name": "VARCHAR", "kind": "VARCHAR",
                       "object": "VARCHAR", "type": "VARCHAR"},
            "card": dict.fromkeys(("begin", "length", "queue", "in_packets", "out_packets", "dropped", "in_waiting", "in_buffers",
                                   "out_waiting", "fifo_frames", "fifo_bytes", "out_fifo_frames", "dropped_fifo_full", "dropped_not_ready",
                                   "dropped_bad_request"), "BIGINT"),
            "loads": {"function": "VARCHAR", "kernel": "BOOLEAN", **dict.fromkeys(("loads", "latency", "occupied"), "BIGINT")}}
# Columns without which a file is none of a run.
NEEDED = {"lines": ("line", "use", "name", "kind", "object", "field", "class", "stall", "spin", "transfers", "cores", "waiters"),
          "pairs": ("line", "use", "writer", "writer_function", "waiter", "waiter_function", "kernel", "stall", "spin", "count"),
          "transfers": ("line", "use", "supplier", "from_chip", "to_chip", "count", "stall"),
          "stacks": ("frames", "process", "name", "kind", "waiting", "samples"),
          "episodes": ("line", "name", "name_kind", "va", "core", "pc", "kind", "class", "buffer_wait"),
          "links": ("from", "to", "begin", "length", "bytes"), **OPTIONAL}
OF_CLASSES = tuple(f"{c}_{what}" for c in MISS_CLASS.names for what in ("stall", "count"))
# Columns that runs of earlier versions lack, besides those of later miss classes.
_ADDED = {"lines": {"va": "UBIGINT", "address_space": "UBIGINT", '"fetch"': "BOOLEAN"},
          "transfers": dict.fromkeys(("supplier_role", "supplier_per"), "VARCHAR"),
          "pairs": {**dict.fromkeys(("writer_source", "writer_inlined", "waiter_source", "waiter_inlined", "accessed"), "VARCHAR"),
                    '"offset"': "UTINYINT"}}
# The contents of columns whose types are not given above: whole numbers, except for these.
_TEXTS = ("name", "kind", "object", "field", "class", "writer_function", "waiter_function", "supplier", "process")
_OTHERS = {"pairs": {"kernel": TRUTH}, "stacks": {"frames": f"lists of {TEXT}"}}


def _held(name: str) -> dict[str, str]:
    """The contents of each column of a file."""
    typed = {**OPTIONAL.get(name, {}), **_ADDED.get(name, {})}
    return {**{column: TEXT if column in _TEXTS else WHOLE for column in (*NEEDED[name], *(OF_CLASSES if name == "lines" else ()))},
            **{column.strip('"'): holds(kind) for column, kind in typed.items()}, **_OTHERS.get(name, {})}


HELD = {**{name: _held(name) for name in NEEDED}, **dict.fromkeys(("transactions", "episodes"), held(TRANSACTIONS))}
# The class with the most stall; among several, the one with the most misses, then the first in the order of their description.
# Secondary misses of a line with another class do not count: the class of the older miss says why the line was not there. Those of a line
# without another class waited for prefetches.
_ALONE = " AND ".join(f"{c}_count = 0" for c in MISS_CLASS.names if c != "secondary")
_COUNTED = ", ".join(f"coalesce(sum(secondary_{what}) FILTER ({_ALONE}), 0)::BIGINT AS alone_{what}" for what in ("stall", "count"))
_MAIN_CLASS = "list_sort([" + ", ".join(
    f"{{'stall': {of}_stall, 'count': {of}_count, 'order': {-n}, 'class': '{c}'}}"
    for n, c in enumerate(MISS_CLASS.names) for of in ["alone" if c == "secondary" else c]) + "], 'DESC')[1]"
_MOST = f"greatest({', '.join(f'{c}_stall' for c in MISS_CLASS.names)})"
_SUMS = ", ".join(f"sum(coalesce({column}, 0))::BIGINT AS {column}" for column in ("stall", "spin", "waiting", "transfers", *OF_CLASSES))
# The names of `$lines` (the table `lines`), by the columns `$by`.
NAMES = f"""
        WITH sums AS (SELECT $by, count(DISTINCT line) AS lines, count(DISTINCT line) FILTER (waiting > 0) AS waited,
                             bit_count(bit_or(waiters)) AS cores, {_SUMS}, {_COUNTED} FROM $lines GROUP BY $by),
             main AS (SELECT *, {_MAIN_CLASS} AS main FROM sums)
        SELECT * EXCLUDE (main, alone_stall, alone_count), CASE WHEN spin > {_MOST} THEN '{SPIN}' ELSE main.class END AS class FROM main"""
# `stored`: TABLE or VIEW.
_DERIVED = (
    """CREATE {stored} lines AS SELECT l.*, coalesce(e.entry, l.name) AS entry, l.stall + l.spin AS waiting
        FROM all_lines l LEFT JOIN entries e USING (point, kind, name)""",
    """CREATE {stored} pairs AS SELECT p.*, p.stall + p.spin AS waiting, l.entry AS name, l.kind, l.name AS element
        FROM all_pairs p JOIN lines l USING (point, line, use)""",
    "CREATE {stored} transfers AS SELECT t.*, l.entry AS name, l.kind FROM all_transfers t JOIN lines l USING (point, line, use)",
    "CREATE TABLE names AS" + NAMES.replace("$by", "point, name, kind").replace(
        "$lines", "(SELECT * EXCLUDE name, entry AS name FROM lines)"))


class Database:
    """The tables of any number of points. Without points, all queries return no rows."""

    def __init__(self, points: Mapping[str, Path | Mapping[str, Any]], copied: bool = True) -> None:
        """`points`: by name, the folder with the files, or the three as Arrow tables. Queries read Arrow tables where they are: a point can
        have ten million lines, and copies of them take three times their memory. `copied`: files are read once into memory, which suits
        many queries; otherwise each query reads them."""
        self._connection = connect()
        self._folders = {point: place for point, place in points.items() if isinstance(place, Path)}
        self._entries: dict[str, dict[tuple[str, str], str]] = {}  # kept, as each map of a name needs them
        self._empty = not points
        stored = "TABLE" if self._folders and copied else "VIEW"
        if self._empty:
            return
        for name in (*FILES, *OPTIONAL):
            parts = [self._part(name, point, place, n) for n, (point, place) in enumerate(points.items()) if _has(place, name)]
            if columns := _ADDED.get(name) or OPTIONAL.get(name):
                nothing = ", ".join(f"NULL::{kind} AS {column}" for column, kind in columns.items())
                parts.append(f"SELECT NULL::VARCHAR AS point, {nothing} WHERE false")
            target = f"all_{name}" if name in FILES else name
            self._connection.execute(f"CREATE {stored} {target} AS SELECT * FROM ({' UNION ALL BY NAME '.join(parts)})")
        arrays.write(self._connection)
        for derived in _DERIVED:
            self._connection.execute(derived.replace("{stored}", stored))

    def _part(self, name: str, point: str, place: Path | Mapping[str, Any], n: int) -> str:
        """A query for one table of one point."""
        if isinstance(place, Path):
            table = scan(place / f"{name}.parquet")
        else:
            table = f"source_{name}_{n}"
            self._connection.register(table, place[name])
        return f"SELECT {quoted(point)} AS point, * FROM {with_classes(table) if name == 'lines' else table}"

    def file(self, point: str, name: str, *columns: str) -> Path | None:
        """A Parquet file of a point that is not one of the tables (`transactions`), if there is one that can be read and has these columns
        besides."""
        file = self._file(point, name)
        return file if file and not readable(file, columns) else None

    def damaged(self, point: str, name: str) -> str:
        """Such a file, and why it cannot be read; empty if there is none or it can."""
        file = self._file(point, name)
        return f"{file}: cannot be read ({why})" if file and (why := readable(file)) else ""

    def _file(self, point: str, name: str) -> Path | None:
        file = self._folders[point] / f"{name}.parquet" if point in self._folders else None
        return file if file and file.is_file() else None

    def rows(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        """The rows of a query in SQL, by column."""
        if self._empty:
            return []
        found = self._connection.execute(query, list(parameters))
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def entries(self, point: str) -> dict[tuple[str, str], str]:
        """By name and kind of lines, the entry of each that is another name."""
        if point not in self._entries:
            rows = self.rows("SELECT * FROM entries WHERE point = ?", point)
            self._entries[point] = {(row["name"], row["kind"]): row["entry"] for row in rows}
        return self._entries[point]

    def by_name(self, query: str, *parameters: object) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """The same by (name, kind)."""
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in self.rows(query, *parameters):
            found.setdefault((row["name"], row["kind"]), []).append(row)
        return found


def _has(place: Path | Mapping[str, Any], name: str) -> bool:
    if isinstance(place, Path):
        return name in FILES or ((place / f"{name}.parquet").is_file() and not readable(place / f"{name}.parquet"))
    return name in FILES or name in place


def with_classes(lines: str) -> str:
    """A table of lines with columns for all miss classes. Columns that the run's version did not have are 0."""
    nothing = ", ".join(f"NULL::BIGINT AS {column}" for column in OF_CLASSES)
    known = ", ".join(f"coalesce({column}, 0) AS {column}" for column in OF_CLASSES)
    return f"(SELECT * REPLACE ({known}) FROM (SELECT * FROM {lines} UNION ALL BY NAME SELECT {nothing} WHERE false))"


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory that draws no progress bar."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection


def readable(file: Path, columns: Iterable[str] = ()) -> str:
    """Why the file cannot be used: it is not Parquet, it lacks a column of its table or one of `columns`, or a column has another type.
    Empty if the file can be used."""
    return unreadable(file, HELD.get(file.stem, {}), (*NEEDED.get(file.stem, ()), *columns))


def shares(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, float]]:
    """(function, share) of rows with `function`, `weight` and the `whole` that it is a part of, in their order."""
    return [(str(row["function"]), int(row["weight"]) / int(row["whole"]) if row["whole"] else 0.0) for row in rows]
