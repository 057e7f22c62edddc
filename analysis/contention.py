# SPDX-License-Identifier: BSD-3-Clause
"""What contends for the lines of a name, in a sentence's terms: what to call the lines, and one pair of writer and waiter."""

from typing import Any

from analysis import arrays
from analysis.database import Database
from analysis.places import among, calls
from analysis.whatif.lines import whole
from moscope.naming.own_code import shown

MAIN = 0.6  # of the waiting for a name: the least portion of one field by which the lines are called after it
# The largest portion of one field, of all elements if the name is that of several, and the field in the name of the hottest line.
FIELDS = f"""
    WITH fields AS (SELECT {{by}}, CASE WHEN contains(name, '{arrays.ANY}') THEN regexp_replace(coalesce(accessed, element),
                               '{arrays.INDEX}', '{arrays.ANY}', 'g') ELSE coalesce(accessed, element) END AS field,
                           sum(waiting)::BIGINT AS weight
                    FROM pairs {{among}} WHERE point = $1 AND waiting > 0 GROUP BY ALL),
         shares AS (SELECT {{by}}, max(weight) / sum(weight) AS share FROM fields GROUP BY ALL),
         hottest AS (SELECT entry AS name, kind, arg_max(lines.name, waiting) AS element, arg_max(coalesce(field, ''), waiting) AS field
                     FROM lines WHERE point = $1 GROUP BY ALL)
    SELECT * FROM shares JOIN hottest USING (name, kind)"""
# The pair of functions with the most waiting, with its share of all waiting for the name, and of it the pair of source lines.
PAIRS = """
    WITH sums AS (SELECT {by}, writer_function, waiter_function, writer_source, writer_inlined, waiter_source, waiter_inlined,
                         sum(waiting)::BIGINT AS weight
                  FROM pairs {among} WHERE point = $1 AND waiting > 0 GROUP BY ALL),
         pairs_of_functions AS (SELECT *, sum(weight) OVER (PARTITION BY {by}, writer_function, waiter_function) AS of_functions,
                                       of_functions / sum(weight) OVER (PARTITION BY {by}) AS share FROM sums)
    SELECT * FROM pairs_of_functions WHERE writer_function IS NOT NULL QUALIFY row_number() OVER (
        PARTITION BY {by} ORDER BY of_functions DESC, writer_function, waiter_function, weight DESC, writer_source, waiter_source,
        writer_inlined, waiter_inlined) = 1"""


# The file with most of the waiting of a name of mapped files.
FILES = f"""
    WITH sums AS (SELECT entry AS name, kind, object, sum(waiting)::BIGINT AS weight FROM lines
                  WHERE point = $1 AND kind = 'page cache' AND waiting > 0 GROUP BY ALL)
    SELECT * FROM sums {{among}} QUALIFY object IS NOT NULL AND weight >= {MAIN} * sum(weight) OVER (PARTITION BY name, kind)"""


def contention(database: Database, point: str, hottest: int) -> dict[tuple[str, str], dict[str, Any]]:
    """By name and kind, of so many names with the most waiting: `shared`, if several fields or elements share the waiting, the object or
    variable of the lines, or the field of all elements; `file`, if one has most of the waiting; and `pair`, writer and waiter with their
    source lines (empty where they are not known) and their `share` of the waiting, if there is a writer."""
    columns, chosen = among("names", hottest)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in database.rows(FIELDS.format(by=columns, among=chosen), point):
        name, field = row["element"], row["field"]
        entry, one_field = row["name"], row["share"] >= MAIN
        shared = entry if one_field or not name.endswith(field) else whole(name, field)
        found[entry, row["kind"]] = {} if one_field and arrays.ANY not in entry else {"shared": shared}
    for row in database.rows(FILES.format(among=chosen), point):
        found.setdefault((row["name"], row["kind"]), {})["file"] = row["object"]
    for row in database.rows(PAIRS.format(by=columns, among=chosen), point):
        found[row["name"], row["kind"]]["pair"] = {"share": row["share"]} | {
            key: value for role in ("writer", "waiter") for key, value in (
                (role, row[f"{role}_function"]), (f"{role}_source", _place(row, role)))}
    return found


def _place(row: dict[str, Any], role: str) -> str:
    source = row[f"{role}_source"]
    return shown(row[f"{role}_function"], source, calls(row[f"{role}_inlined"]))[0] if source else ""
