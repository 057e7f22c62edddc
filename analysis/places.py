# SPDX-License-Identifier: BSD-3-Clause
"""Source lines that write and that wait for lines, where a program's debug information gives them (docs/naming.md). Code without it is
listed among them by function, with an empty source."""

from collections.abc import Iterable, Mapping
from typing import Any

from analysis.database import Database
from moscope.naming.own_code import WORTH_SHOWING

Row = dict[str, Any]
# By the key in point.json: the role in a pair, and the weight by which places are ranked.
ROLES = {"written_at": ("writer", "count"), "waited_at": ("waiter", "waiting")}
MOST = 5
# A place whose code has called what waits: of names that no code of the program with source lines waits for.
CALLED = "called_at"
# Nothing of a name or line without any source line: its functions are listed already.
QUERY = """
    WITH sums AS (SELECT {by}, {role}_function AS function, {role}_source AS source, {role}_inlined AS inlined,
                         sum({weight})::BIGINT AS weight
                  FROM pairs {among} WHERE point = $1 AND {role}_function IS NOT NULL GROUP BY ALL),
         parts AS (SELECT *, weight / greatest(sum(weight) OVER (PARTITION BY {by}), 1) AS share FROM sums)
    SELECT * FROM parts WHERE weight > 0
    QUALIFY row_number() OVER (PARTITION BY {by} ORDER BY weight DESC, source, function) <= {most}
        AND count(source) OVER (PARTITION BY {by}) > 0
    ORDER BY weight DESC, source, function"""
KEYS = {"names": ("name", "kind"), "lines": ("line", "use")}
# The portion of the waiting that follows a write by another core or a device. A device has a `writer_function` and no `writer`.
AFTER_WRITES = """
    SELECT {by}, coalesce(sum(waiting) FILTER (WHERE writer_function IS NOT NULL), 0) / greatest(sum(waiting), 1) AS share
    FROM pairs {among} WHERE point = $1 GROUP BY ALL"""
HOTTEST = "JOIN (SELECT {by} FROM {table} WHERE point = $1 ORDER BY waiting DESC, {by} LIMIT {hottest}) USING ({by})"


def places(database: Database, point: str, table: str, hottest: int | None = None) -> dict[tuple[Any, Any], dict[str, list[Row]]]:
    """By the key of `table`, `names` or `lines`: of each role its source lines with `function`, `inlined` (innermost first) and their share
    of the role's weight, the largest first; `source` is empty for the part of a function that has none. `hottest`: only of so many rows of
    the table, those with the most waiting; a point can have millions of lines."""
    found: dict[tuple[Any, Any], dict[str, list[Row]]] = {}
    by = KEYS[table]
    columns, chosen = among(table, hottest)
    for key, (role, weight) in ROLES.items():
        for row in database.rows(QUERY.format(by=columns, among=chosen, role=role, weight=weight, most=MOST), point):
            place = {"function": row["function"], "source": row["source"] or "", "inlined": calls(row["inlined"]), "share": row["share"]}
            found.setdefault((row[by[0]], row[by[1]]), {role: [] for role in ROLES})[key].append(place)
    return found


def after_writes(database: Database, point: str, table: str, hottest: int | None = None) -> dict[tuple[Any, Any], float]:
    """By the same key, the portion of its waiting that follows a write by another core or a device."""
    columns, chosen = among(table, hottest)
    rows = database.rows(AFTER_WRITES.format(by=columns, among=chosen), point)
    return {(row[KEYS[table][0]], row[KEYS[table][1]]): float(row["share"]) for row in rows}


def among(table: str, hottest: int | None) -> tuple[str, str]:
    """For a query: the columns of the key of `table`, and the clause that limits it to the hottest rows."""
    columns = ", ".join(KEYS[table])
    return columns, HOTTEST.format(by=columns, table=table, hottest=hottest) if hottest else ""


def called(rows: Iterable[Mapping[str, Any]], entries: Mapping[tuple[str, str], str]) -> dict[tuple[Any, Any], list[Row]]:
    """By entry (`Database.entries`) and kind: the innermost source lines of call chains (rows of stacks.parquet), each with its share of
    the waiting of all chains of the name, the largest first."""
    sums: dict[tuple[Any, Any], dict[tuple[str, str, str], int]] = {}
    whole: dict[tuple[Any, Any], int] = {}
    for row in rows:
        key = entries.get((row["name"], row["kind"]), row["name"]), row["kind"]
        whole[key] = whole.get(key, 0) + row["waiting"]
        if row["at_source"]:
            place = row["at_function"], row["at_source"], row["at_inlined"]
            of_name = sums.setdefault(key, {})
            of_name[place] = of_name.get(place, 0) + row["waiting"]
    return {key: [{"function": function, "source": source, "inlined": calls(inlined), "share": waiting / max(whole[key], 1)}
                  for (function, source, inlined), waiting in sorted(of_name.items(), key=lambda one: (-one[1], one[0]))[:MOST]]
            for key, of_name in sums.items()}


def callers(waited_at: Iterable[Row], found: list[Row]) -> list[Row]:
    """The callers of the code that waits for a name: `found`, which are places of the program's own code. Empty if one of these
    functions also waits itself, with a share worth showing."""
    own = {place["function"] for place in found}
    return [] if any(place["function"] in own and place["share"] >= WORTH_SHOWING for place in waited_at) else found


def calls(inlined: str | None) -> list[str]:
    """Each inlined function with the place of its call."""
    return inlined.split("; ") if inlined else []
