# SPDX-License-Identifier: BSD-3-Clause
"""Lines that the two sides name by different bytes. A line has the name of its byte with the longest waiting (docs/naming.md), so two
bytes with about the same waiting can give one line two names. `pairs` has the names of all bytes that were accessed (`accessed`)."""

from collections.abc import Callable

from analysis.run_directory import Point
from analysis.tables.base import Row

Name = Callable[[str, str], str]  # the name to compare, of a name and its kind
Accessed = dict[tuple[str, str], dict[str, int]]


def accessed(p: Point, name: Name) -> Accessed:
    """By name and kind of lines, the names of their other bytes that were accessed, with the waiting for these."""
    rows = p.database.rows("""SELECT name, kind, accessed, sum(waiting)::BIGINT AS waiting FROM pairs
        WHERE point = ? AND accessed <> element GROUP BY ALL""", p.name)
    found: Accessed = {}
    for one in rows:
        others = found.setdefault((name(one["name"], one["kind"]), one["kind"]), {})
        other = name(one["accessed"], one["kind"])
        others[other] = others.get(other, 0) + one["waiting"]
    return found


def aligned(a: dict[str, Row], b: dict[str, Row], in_a: Accessed, in_b: Accessed) -> dict[str, Row]:
    """The rows of B by the names that A has. A name that B alone has becomes one that A alone has if lines of each name contain a byte
    with the other name, on both sides; of several such names, the one whose byte has the longest waiting in B."""
    found = {name: row for name, row in b.items() if name in a}
    for name, row in b.items():
        if name in a:
            continue
        kind = row["kind"]
        same = [(-waiting, other) for other, waiting in in_b.get((name, kind), {}).items()
                if other in a and other not in b and name in in_a.get((other, kind), {})]
        if not same:
            found[name] = row
            continue
        mine = found.setdefault(min(same)[1], {**row, "time": 0.0, "names_in_b": []})
        mine["time"] += row["time"]
        mine["names_in_b"].append(name)
    return found
