# SPDX-License-Identifier: BSD-3-Clause
"""Entries for elements of arrays: lines whose names differ by indices alone are one entry, `grid[*][3].lock`. An index that most of the
waiting has in common stays: one hot element of an array has an entry of its own, and the other elements have another one. A number after
a space is no index but part of a type: `log(char const (&) [12])::calls`.
"""

import re

import duckdb

MAIN = 0.6  # of the waiting: the least portion of one index that stays in the name
INDEX = r"\[-?\d+\]"
ANY = "[*]"
_OF_TYPE, _HERE = "chr(1)", "chr(2)"  # stand for the bracket of a type, and for an index
# The names with indices, with these indices; `kept` has an index, or an asterisk, for each index that has been decided.
_INDEXED = f"""
    CREATE TEMP TABLE indexed AS SELECT point, kind, name, sum(stall + spin) AS waiting, []::VARCHAR[] AS kept,
        regexp_extract_all(plain, '\\[(-?\\d+)\\]', 1) AS indices,
        string_split(regexp_replace(plain, '{INDEX}', {_HERE}, 'g'), {_HERE}) AS parts
    FROM (SELECT *, replace(name, ' [', ' ' || {_OF_TYPE}) AS plain FROM all_lines)
    WHERE regexp_matches(plain, '{INDEX}') GROUP BY point, kind, name, plain"""
_NEXT = f"""
    CREATE OR REPLACE TEMP TABLE indexed AS
    SELECT * EXCLUDE (of_index, of_all) REPLACE (
        list_append(kept, CASE WHEN of_index > 0 AND of_index >= {MAIN} * of_all THEN indices[$at] ELSE '*' END) AS kept)
    FROM (SELECT *, sum(waiting) OVER (PARTITION BY point, kind, parts, kept) AS of_all,
                    sum(waiting) OVER (PARTITION BY point, kind, parts, kept, indices[$at]) AS of_index FROM indexed)"""
# Of names that share an entry with others. `kept` is as long as the most indices of a name.
_ENTRIES = f"""
    CREATE TABLE entries AS
    SELECT point, kind, name, replace(array_to_string([parts[n] || CASE WHEN n < len(parts) THEN '[' || kept[n] || ']' ELSE '' END
                                                       FOR n IN range(1, len(parts) + 1)], ''), {_OF_TYPE}, '[') AS entry
    FROM indexed QUALIFY count(*) OVER (PARTITION BY point, kind, parts, kept[:len(indices)]) > 1"""


def write(connection: duckdb.DuckDBPyConnection) -> None:
    """The table `entries` (point, kind, name, entry) of the names in `all_lines`; a name that is not in it is its own entry."""
    connection.execute(_INDEXED)
    (most,), = connection.execute("SELECT coalesce(max(len(indices)), 0) FROM indexed").fetchall()
    for at in range(1, most + 1):
        connection.execute(_NEXT.replace("$at", str(at)))
    connection.execute(_ENTRIES)
    connection.execute("DROP TABLE indexed")


def whole(name: str) -> str:
    """A name without the values of its indices."""
    return re.sub(f"(?<! ){INDEX}", ANY, name)
