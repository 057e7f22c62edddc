# SPDX-License-Identifier: BSD-3-Clause
"""The names of lines that a user may mean (`--line`): a line has the name of its byte with the most waiting, and the user may know it by
the object that it is a part of, or by another field that its map shows.
"""

from collections import Counter
from collections.abc import Sequence

from analysis.run_directory import Point
from analysis.whatif import lines
from moscope.errors import MOST_NAMES


def names(p: Point, asked: str) -> list[tuple[str, str]]:
    """(name, kind) of the lines of the name or entry `asked`, with those of parts of the object of that name; without any, of those that
    hold a field of that name. The most waiting first; of a name or entry that lines have, without its parts. Elements of an array whose
    lines are all meant have the name of their entry."""
    found, rows = lines.find(p, asked), p.database.rows(lines.NAMES, p.name)
    if found is None:
        return []
    wanted = {asked} if any(asked in (row["name"], row["entry"]) for row in rows) else set(found.names)
    apart = {row["entry"] for row in rows if not wanted & {row["name"], row["entry"]}}
    sums = Counter[tuple[str, str]]()
    for row in rows:
        if wanted & {row["name"], row["entry"]}:
            sums[row["name" if found.fields or row["entry"] in apart else "entry"], row["kind"]] += row["waiting"]
    return sorted(sums, key=lambda one: (-sums[one], one))


def note(asked: str, name: str, others: Sequence[str] = ()) -> str:
    """For a user whose lines have another name."""
    listed = ", ".join(others[:MOST_NAMES]) + (" ..." if len(others) > MOST_NAMES else "")
    more = f"; others of the name: {listed}" if others else ""
    return f"{asked}: these lines have the name {name}, after the byte with the most waiting{more}"
