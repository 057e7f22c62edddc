# SPDX-License-Identifier: BSD-3-Clause
"""The names of lines that a user may mean (`--line`): a line has the name of its byte with the most waiting, and the user may know it by
the object that it is a part of, or by another field that its map shows.
"""

from collections.abc import Sequence

from analysis.run_directory import Point
from analysis.whatif import lines
from moscope.errors import MOST_NAMES

OF_NAMES = "SELECT name, kind FROM names WHERE point = ? AND name IN (SELECT unnest(?::VARCHAR[])) ORDER BY waiting DESC, name, kind"


def names(p: Point, asked: str) -> list[tuple[str, str]]:
    """(name, kind) of the lines of the name `asked`, with those of parts of the object of that name; without any, of those that hold a
    field of that name. The most waiting first; of a name that lines have, without their parts."""
    found = lines.find(p, asked)
    wanted = () if found is None else (asked,) if asked in found.names else found.names
    return [(row["name"], row["kind"]) for row in p.database.rows(OF_NAMES, p.name, list(wanted))]


def note(asked: str, name: str, others: Sequence[str] = ()) -> str:
    """For a user whose lines have another name."""
    listed = ", ".join(others[:MOST_NAMES]) + (" ..." if len(others) > MOST_NAMES else "")
    more = f"; others of the name: {listed}" if others else ""
    return f"{asked}: these lines have the name {name}, after the byte with the most waiting{more}"
