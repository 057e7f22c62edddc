# SPDX-License-Identifier: BSD-3-Clause
"""The single lines of a point with the most waiting."""

from typing import Any

from analysis.described import SPIN, WAITS
from analysis.run_directory import Point, Run
from analysis.tables.base import Row, Table, key, once, share, table, us

# Only these have objects and fields; lines.parquet has all lines.
MOST = 500
# The function that wrote most often and the one that waited longest, of each use of a line.
TOP = """
    WITH hottest AS (SELECT line, use FROM lines WHERE point = ? ORDER BY waiting DESC, line, use LIMIT ?),
         sums AS (SELECT line, use, {function} AS function, sum({weight}) AS weight FROM pairs JOIN hottest USING (line, use)
                  WHERE point = ? AND {function} IS NOT NULL GROUP BY ALL)
    SELECT line, use, function FROM sums QUALIFY row_number() OVER (PARTITION BY line, use ORDER BY weight DESC, function) = 1"""


@once
def hot_lines(p: Point) -> list[Row]:
    """A row for each line and use of its page: line, use, name, kind, what (object and field), class, writer, waiter, address, sums in fs
    and in microseconds, shares of the point's waiting and stall."""
    found = p.database.rows(f"SELECT * FROM lines WHERE point = ? ORDER BY waiting DESC, line, use LIMIT {MOST}", p.name)
    writers, waiters = ({(row["line"], row["use"]): row["function"] for row in
                         p.database.rows(TOP.format(function=function, weight=weight), p.name, MOST, p.name)}
                        for function, weight in (("writer_function", "count"), ("waiter_function", "waiting")))
    return [{**one, "what": what(one), "writer": writers.get((one["line"], one["use"])),
             "waiter": waiters.get((one["line"], one["use"])), **measures(p, one), "address": f"{one['line']:#x}"} for one in found]


def measures(p: Point, one: Row) -> dict[str, Any]:
    """The sums of a row in the units of a report; `classes` has the fs by class, and spinning."""
    return {"stall_us": us(one["stall"]), "spin_us": us(one["spin"]), "wait_share": share(one["waiting"], p),
            "stall_share": one["stall"] / p.memory_stall_fs if p.memory_stall_fs else 0.0,
            "classes": {c: one[SPIN if c == SPIN else f"{c}_stall"] for c in WAITS}}


def what(one: Row) -> str:
    """Object and field, each unless the name includes it."""
    return ", ".join(said for said in (one["object"], one["field"]) if said and said not in one["name"])


def lines(run: Run) -> Table:
    """One row per line and use of its page."""
    columns = ("name", "kind", "what", "address", "wait_share", "stall_share", "stall_us", "spin_us", "transfers", "cores", "class",
               "writer", "waiter")
    return table(("name", "kind", "object_field", *columns[3:9], "cores_accessing", *columns[10:]),
                 ((*key(p), *(one[c] for c in columns)) for p in run.points for one in hot_lines(p)))


TABLES = {"lines": lines}
