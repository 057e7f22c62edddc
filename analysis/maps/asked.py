# SPDX-License-Identifier: BSD-3-Clause
"""The names of lines that a user may mean: a line has the name of its byte with the most waiting, and the user may know it by the object
that it is a part of, or by another field that its map shows.
"""

from analysis.run_directory import Point
from analysis.whatif import lines

OF_NAMES = "SELECT name, kind FROM names WHERE point = ? AND name IN (SELECT unnest(?::VARCHAR[])) ORDER BY waiting DESC, name, kind"
OF_FIELDS = """SELECT lines.name, lines.kind FROM fields JOIN lines USING (point, line, use) WHERE point = ? AND fields.name = ?
               GROUP BY ALL ORDER BY sum(lines.waiting) DESC, lines.name, lines.kind"""


def names(p: Point, asked: str) -> list[tuple[str, str]]:
    """(name, kind) of lines, the most waiting first: those of the name `asked`; without any, those of parts of the object of that name;
    without any, those that hold a field of that name."""
    subject = lines.find(p, asked)
    if subject is None:
        rows = p.database.rows(OF_FIELDS, p.name, asked)
    else:
        rows = p.database.rows(OF_NAMES, p.name, [asked] if asked in subject.names else list(subject.names))
    return [(row["name"], row["kind"]) for row in rows]
