# SPDX-License-Identifier: BSD-3-Clause
"""All lines of a point by name: an array or many objects of a kind may cost much although none of their lines does."""

from collections.abc import Iterable
from typing import Any

from analysis.chains import called_at
from analysis.contention import contention
from analysis.database import shares
from analysis.places import CALLED, ROLES, after_writes, callers, places
from analysis.run_directory import Point, Run
from analysis.tables.base import NO_WRITER, Row, Table, key, once, table
from analysis.tables.lines import hot_lines, measures

NO_PLACES: dict[str, list[Row]] = {role: [] for role in ROLES}
MOST_FUNCTIONS, MOST_PAIRS, MOST_SOURCES = 10, 20, 12
# Of each name its functions, those that wrote most often or waited longest first, with the `whole` of all of them.
FUNCTIONS = f"""
    WITH sums AS (SELECT name, kind, {{function}} AS function, sum({{weight}})::BIGINT AS weight FROM pairs
                  WHERE point = ? AND {{function}} IS NOT NULL GROUP BY ALL)
    SELECT *, sum(weight) OVER (PARTITION BY name, kind)::BIGINT AS whole FROM sums
    QUALIFY row_number() OVER (PARTITION BY name, kind ORDER BY weight DESC, function) <= {MOST_FUNCTIONS}
    ORDER BY weight DESC, function"""
PAIRS = f"""
    WITH sums AS (SELECT name, kind, coalesce(writer_function, '{NO_WRITER}') AS writer, waiter_function AS waiter,
                         sum(waiting)::BIGINT AS waiting
                  FROM pairs WHERE point = ? GROUP BY ALL)
    SELECT * FROM sums QUALIFY row_number() OVER (PARTITION BY name, kind ORDER BY waiting DESC, writer, waiter) <= {MOST_PAIRS}
    ORDER BY waiting DESC, writer, waiter"""

# Of each name its pairs by source line; code without debug information by function. Nothing of a name without any source line.
_ORDER = "waiting DESC, writer, waiter, writer_source, waiter_source, accessed, writer_inlined, waiter_inlined"
SOURCES = f"""
    WITH sums AS (SELECT name, kind, coalesce(writer_function, '{NO_WRITER}') AS writer, writer_source, writer_inlined,
                         waiter_function AS waiter, waiter_source, waiter_inlined, accessed, sum(waiting)::BIGINT AS waiting
                  FROM pairs WHERE point = ? AND waiting > 0 GROUP BY ALL)
    SELECT * FROM sums QUALIFY row_number() OVER (PARTITION BY name, kind ORDER BY {_ORDER}) <= {MOST_SOURCES}
        AND count(coalesce(writer_source, waiter_source)) OVER (PARTITION BY name, kind) > 0
    ORDER BY {_ORDER}"""


@once
def hot_names(p: Point) -> list[Row]:
    """A row for each name and kind, those with the most waiting first: the columns of `names` (analysis/database.py), what (its largest
    objects), address (of a single line), writers and waiters [(function, share)], pairs [(writer, waiter, fs)], sources (rows of SOURCES),
    written_at, waited_at and after_writes (`analysis.places`), called_at (`callers`), and the measures of `hot_lines`; of the first row
    alone, pair (writer, waiter), pair_share, file and shared (`analysis.contention`). If only run.json is left of a run, the hottest names
    in it."""
    found = p.database.rows("SELECT * FROM names WHERE point = ? ORDER BY waiting DESC, name, kind", p.name)
    if not found:
        return [_summary(one) for one in p.record.get("top_names") or [] if isinstance(one, dict)]
    functions = {role: p.database.by_name(FUNCTIONS.format(function=function, weight=weight), p.name)
                 for role, function, weight in (("writers", "writer_function", "count"), ("waiters", "waiter_function", "waiting"))}
    pairs, sources = (p.database.by_name(query, p.name) for query in (PAIRS, SOURCES))
    at, called, written = places(p.database, p.name, "names"), called_at(p), after_writes(p.database, p.name, "names")
    contended = contention(p.database, p.name, 1)
    hottest: dict[tuple[str, str], list[Row]] = {}
    for line in hot_lines(p):
        hottest.setdefault((line["entry"], line["kind"]), []).append(line)
    return [{**_row(p, one, hottest.get(key, []), {role: by.get(key, []) for role, by in functions.items()}, pairs.get(key, [])),
             "sources": sources.get(key, []), "after_writes": written.get(key), **(own := at.get(key, NO_PLACES)),
             CALLED: callers(own["waited_at"], called.get(key, [])), **_contention(contended.get(key, {}))}
            for one in found for key in [(one["name"], one["kind"])]]


def waited_for(p: Point) -> tuple[int, int]:
    """The numbers of lines and of names with waiting. A line that had several names, one after the other, is one line; lines of two
    kinds of memory may have the same name."""
    query = "SELECT count(DISTINCT line) AS lines, count(DISTINCT entry) AS names FROM lines WHERE point = ? AND waiting > 0"
    found = p.database.rows(query, p.name)
    return (found[0]["lines"], found[0]["names"]) if found else (0, 0)


def _row(p: Point, one: Row, lines: list[Row], functions: dict[str, list[Row]], pairs: list[Row]) -> Row:
    return {**one, **measures(p, one), "what": objects(lines), "address": lines[0]["address"] if one["lines"] == 1 and lines else "",
            **{role: shares(found) for role, found in functions.items()},
            "pairs": [(pair["writer"], pair["waiter"], pair["waiting"]) for pair in pairs]}


def _contention(one: dict[str, Any]) -> Row:
    pair = one.get("pair")
    functions = tuple(str(pair[role]) for role in ("writer", "waiter") if role in pair) if isinstance(pair, dict) else ()
    return {"shared": str(one.get("shared") or ""), "file": str(one.get("file") or ""), "pair": functions if len(functions) == 2 else (),
            "pair_share": pair.get("share") if isinstance(pair, dict) else None}


def _summary(one: dict[str, Any]) -> Row:
    """A name of point.json."""
    return {"name": str(one.get("name") or ""), "kind": "", "what": "", "address": "",
            **dict.fromkeys(("lines", "waited"), int(one.get("lines") or 1)),
            "stall_share": float(one.get("stall_share") or 0), "wait_share": float(one.get("wait_share") or 0),
            "stall_us": None, "spin_us": None, "transfers": int(one.get("transfers") or 0), "cores": None,
            "class": str(one.get("class") or ""), "classes": {}, "pairs": [], "sources": [], "after_writes": one.get("after_writes"),
            **{role: one.get(role) or [] for role in (*NO_PLACES, CALLED)}, **_contention(one),
            **{role: [(str(f), None) for f in one.get(role) or []] for role in ("writers", "waiters")}}


def objects(lines: Iterable[Row]) -> str:
    """The objects of the hottest lines."""
    found = list(dict.fromkeys(one["what"] for one in lines if one["what"]))
    return ", ".join(found[:2]) + (f" and {len(found) - 2} more" if len(found) > 2 else "")


def names(run: Run) -> Table:
    """One row per name."""
    columns = ("name", "kind", "lines", "what", "wait_share", "stall_share", "stall_us", "spin_us", "transfers", "cores", "class")
    return table(("name", "kind", "lines", "objects", *columns[4:9], "cores_accessing", "class"), (
        (*key(p), *(one[c] for c in columns)) for p in run.points for one in hot_names(p)))


TABLES = {"names": names}
