# SPDX-License-Identifier: BSD-3-Clause
"""The lines of a name, and what a what-if run makes of each (src/mem/what_if.hh).

`free`: each access hits. `local`: the line's home is the node of the chip that waits for it most; memory of a program moves by page, and
with it the pages of the object around it, of which no line was recorded (moscope.runs.whatif.pages). `padded`: each field has a line of its
own; where no field is known, and within a field of more than a word, a part begins at each byte that a waiter accesses. Bytes that are
never waited for belong to the part before them. What a programmer would not part stays together: a lock, the elements of an array of
structures and the fields of such an element unless different cores write them, and neighbours that the same code of the same cores reads
or writes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from analysis.arrays import INDEX
from analysis.described import LINE
from analysis.locks import SITE, lock_of
from analysis.maps.advice import by_different_cores, is_lock
from analysis.maps.line_map import Area, LineMap, maps_of, whole_name
from analysis.run_directory import Point
from moscope.guest.addresses import USER_TOP
from moscope.naming.layout import DISTANCE

FREE, PADDED, LOCAL = HOWS = ("free", "padded", "local")
MEANING = {FREE: "every access hits", PADDED: "fields with different users get lines of their own",
           LOCAL: "the node that waits most is the home"}
MOST_LINES = 20_000
WORD = 8
ELEMENT = re.compile(r"\[|\.|\+0x|->")
PROGRAM = re.compile(r"[^:]+:(?!:)")  # before the names of a program or library, whose own may have dots: `libc.so.6:main_arena`
OF_STRUCTURES = re.compile(INDEX + r"(?=\.|\+0x)")  # in a name, the index of an element that has fields, or unused bytes between them
FIELDS = """SELECT fields.name, lines.name AS of_line, coalesce(sum(pairs.waiting), 0)::BIGINT AS waiting
            FROM fields JOIN lines USING (point, line, use) LEFT JOIN pairs ON pairs.point = fields.point AND pairs.line = fields.line
                AND pairs.use = fields.use AND pairs."offset" >= first AND pairs."offset" < first + bytes
            WHERE fields.point = ? GROUP BY ALL ORDER BY waiting DESC, fields.name, of_line"""
# `named`: the lines with the most waiting, which have objects and fields.
NAMES = """SELECT name, entry, kind, sum(waiting)::BIGINT AS waiting, bool_or(object IS NOT NULL OR field IS NOT NULL) AS known,
                  min(field) AS field
           FROM lines WHERE point = $1 GROUP BY ALL ORDER BY waiting DESC, name, kind"""
PAGED = ("user symbol", "heap", "stack", "anonymous memory")  # kinds of memory that belong to a program
LINES = """SELECT line, any_value(name) AS name, any_value(kind) AS kind, arg_max(va, waiting) AS va,
           arg_max(address_space, waiting) AS address_space FROM lines
           WHERE point = ? AND name IN (SELECT unnest(?::VARCHAR[])) GROUP BY line ORDER BY sum(waiting) DESC, line LIMIT ?"""
CHIPS = """SELECT line, arg_max(to_chip, (stall, -(to_chip::INTEGER))) AS chip, max(stall)::BIGINT AS stall FROM (
               SELECT line, to_chip, sum(stall)::BIGINT AS stall FROM transfers WHERE point = ? GROUP BY ALL) GROUP BY line"""


Users = tuple[set[tuple[str, ...]], set[int]]


@dataclass(frozen=True)
class Subject:
    """What a user calls by one name: lines of one name, or of all names that are parts of it. `waiting`: in fs. `fields`: the only fields
    of these lines that are meant."""

    name: str
    names: tuple[str, ...]
    waiting: int
    fields: tuple[str, ...] = ()


def subjects(p: Point) -> list[Subject]:
    """The objects of a point, the one with the most waiting first: parts of one object (`stats[2].packets`) count together."""
    rows = p.database.rows(NAMES, p.name)
    known = {row["name"]: whole(row["name"], row["field"] or "") for row in rows if row["known"]}
    objects, found = set(known.values()), dict[str, list[dict[str, Any]]]()
    for row in rows:
        found.setdefault(known.get(row["name"]) or _part_of(row["name"], objects), []).append(row)
    made = [Subject(name, tuple(dict.fromkeys(row["name"] for row in rows)), sum(row["waiting"] for row in rows))
            for name, rows in found.items()]
    return sorted(made, key=lambda one: (-one.waiting, one.name))


def whole(name: str, field: str | None = None) -> str:
    """The object that a name is a part of: `packed:stats` of `packed:stats[2].packets`. Where the field is known, names of objects may
    have dots: `go:main.counters`, `heap of python3.13`."""
    if field and name.endswith(field):
        return name.removesuffix(field).removesuffix(".")
    if field is not None and (not field or DISTANCE.fullmatch(field)):
        return whole_name(name)
    at = ELEMENT.search(name, _begin(name))
    return name[:at.start()] if at and at.start() else name


def _part_of(name: str, objects: set[str]) -> str:
    """The one of these objects that a name is a part of, or else `whole`."""
    ends = [at.start() for at in ELEMENT.finditer(name, _begin(name))]
    return next((name[:end] for end in reversed(ends) if name[:end] in objects), whole(name))


def _begin(name: str) -> int:
    """Where parts of an object may begin in a name."""
    owner = SITE.match(name) or PROGRAM.match(name)
    return owner.end() if owner else 0


def find(p: Point, name: str) -> Subject | None:
    """Of a name or an entry of lines, with its parts, or of an object or a part that begins so; or else of a field of lines with other
    names. `name` may lack the program (`packed_counters`) if only one program has such a name."""
    if whole := _find(p, name):
        return whole
    programs = sorted({program for row in p.database.rows(NAMES, p.name) for program, colon, _ in [row["name"].partition(":")] if colon})
    found = [subject for program in programs if (subject := _find(p, f"{program}:{name}"))]
    return found[0] if len(found) == 1 else None


def _find(p: Point, name: str) -> Subject | None:
    def means(known: str) -> bool:
        return known == name or bool(known.startswith(name) and len(name) >= _begin(known) and ELEMENT.match(known, len(name)))

    def chosen(query: str) -> list[dict[str, Any]]:
        return [row for row in p.database.rows(query, p.name) if means(row["name"]) or means(row.get("entry", row["name"]))]

    def subject(rows: list[dict[str, Any]], column: str, fields: tuple[str, ...] = ()) -> Subject:
        return Subject(name, tuple(dict.fromkeys(row[column] for row in rows)), sum(row["waiting"] for row in rows), fields)

    if rows := chosen(NAMES):
        return subject(rows, "name")
    rows = chosen(FIELDS)
    return subject(rows, "of_line", tuple(dict.fromkeys(row["name"] for row in rows))) if rows else None


def treated(p: Point, subject: Subject, how: str) -> list[dict[str, Any]]:
    """Of each line of the subject, what the engine makes of it (board/otherwise.hh)."""
    rows = p.database.rows(LINES, p.name, list(subject.names), MOST_LINES)
    if how == FREE:
        return [{"line": row["line"], "free": True} for row in rows]
    if how == LOCAL:
        chips = {row["line"]: row for row in p.database.rows(CHIPS, p.name)}
        return [_local(row, chips[row["line"]]) for row in rows if row["line"] in chips]
    wanted, groups = {row["line"] for row in rows}, dict[int, list[int]]()
    for name, kind in dict.fromkeys((row["name"], row["kind"]) for row in rows):
        for one in maps_of(p, name, kind, MOST_LINES):
            if one.line["line"] in wanted:  # of several uses of a line, the one with the most waiting comes first
                groups.setdefault(one.line["line"], alone(one, subject.fields) if subject.fields else parts(one))
    return [{"line": line, "groups": of} for line, of in groups.items() if not subject.fields or any(of)]


def _local(row: dict[str, Any], waits: dict[str, Any]) -> dict[str, Any]:
    if row["kind"] in PAGED and 0 < (row["va"] or 0) < USER_TOP:
        return {"line": row["line"], "va": row["va"], "address_space": row["address_space"], "node": waits["chip"], "stall": waits["stall"]}
    return {"line": row["line"], "groups": [0] * LINE, "node": waits["chip"]}


def alone(line: LineMap, fields: Sequence[str]) -> list[int]:
    """Part 1 for the bytes of these fields, 0 for the others."""
    return [int(any(area.first <= at < area.end and area.name in fields for area in line.areas)) for at in range(LINE)]


def parts(line: LineMap) -> list[int]:
    """The number of the part that each byte belongs to."""
    waited = {byte.at for byte in line.bytes if byte.transactions or byte.waiting}
    starts, array = {0}, ""
    for unit in _units(line):
        first, before = unit[0], array
        array = first.name[:first.name.rfind("[")] if first.name.endswith("]") else ""
        if first.used or not array or array != before:  # an unused element of an array goes with the one before
            starts.add(first.first)
        if len(unit) == 1:
            starts |= {at for at in waited if first.first < at < first.end and _divides(first, at)}
    users: Users = set(), set()
    found, part = [], -1
    for at in range(LINE):
        if at in starts:
            end = min((s for s in starts if s > at), default=LINE)
            here = _users(line, at, end)
            if part < 0 or not _alike(users, here):
                part, users = part + 1, here
        found.append(part)
    return found


def _units(line: LineMap) -> Iterator[list[Area]]:
    """The areas, together where they are one lock of the kernel or belong to one array of structures."""
    for lock, found in groupby(line.areas, _kernel_lock):
        areas = list(found)
        yield from [areas] if lock else _units_of_arrays(line, areas)


def _kernel_lock(area: Area) -> str:
    found = lock_of(area.name, area.kind) if area.type and area.kind not in PAGED else None
    return found[0] if found else ""


def _units_of_arrays(line: LineMap, areas: list[Area], level: int = 0) -> Iterator[list[Area]]:
    """An array, an element, an array in this element: the outermost of which different cores are not known to write different fields.
    The miss class of the line does not say this of an element of which one field is used: its other fields only hit."""
    for name, found in groupby(areas, lambda area: _around(area.name, level)):
        inside = list(found)
        if not name:
            yield from ([area] for area in inside)
        elif (level % 2 == 0 or sum(area.used for area in inside) > 1) and by_different_cores(line, [a for a in inside if a.written]):
            yield from _units_of_arrays(line, inside, level + 1)
        else:
            yield inside


def _around(name: str, level: int) -> str:
    """Of a field, the array or the element that it is in at this level: `a`, `a[1]`, `a[1].b`, `a[1].b[2]` of `a[1].b[2].c`; else ``."""
    ends = [end for at in OF_STRUCTURES.finditer(name, _begin(name)) for end in at.span()]
    return name[:ends[level]] if level < len(ends) else ""


def _users(line: LineMap, first: int, end: int) -> Users:
    """The code that reads or writes these bytes, and its cores."""
    found = line.bytes[first:end]
    return set().union(*(byte.users for byte in found)), set().union(*(byte.cores for byte in found))


def _alike(one: Users, other: Users) -> bool:
    """The same code, and mostly the same cores, of which a sample is known."""
    shared, either = one[1] & other[1], one[1] | other[1]
    return bool(one[0]) and one[0] == other[0] and 2 * len(shared) > len(either)


def _divides(area: Area, at: int) -> bool:
    """Whether a part may begin within the area: not inside a field of a word, nor inside a lock."""
    return not area.type or (area.bytes > WORD and not is_lock(area))


def sums(p: Point, names: Sequence[str]) -> dict[str, int]:
    """Waiting and stall of these names, in fs."""
    rows = p.database.rows("SELECT coalesce(sum(waiting), 0)::BIGINT AS waiting, coalesce(sum(stall), 0)::BIGINT AS stall FROM lines "
                           "WHERE point = ? AND name IN (SELECT unnest(?::VARCHAR[]))", p.name, list(names))
    return rows[0] if rows else {"waiting": 0, "stall": 0}
