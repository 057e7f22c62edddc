# SPDX-License-Identifier: BSD-3-Clause
"""Maps of the hottest lines of a name, from the tables of a point.

Waiting and transactions are divided by the byte that the waiter accessed: an access counts at its first byte. Sums over the bytes are
those of the line. A byte counts as written if an instruction that is known to write the line accesses it, or if a recorded transaction
writes it or misses because another core has written it. Cores are known only from recorded transactions: all of them with
`--detail full`, else those of the name's episode.

An instruction whose writes find the line in its core's cache, or that wrote it before the windows, has no transaction, so its bytes are not
known: it is known only as the last writer before the transactions of other cores. The same holds for a device.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from analysis.described import LINE
from analysis.maps import recorded
from analysis.places import calls
from analysis.run_directory import Point
from moscope.naming.layout import DISTANCE
from moscope.naming.own_code import shown

LINES_OF_NAME = 3
LINES = """SELECT * FROM lines WHERE point = $1 AND (name = $2 OR entry = $2) AND kind = $3
    ORDER BY waiting DESC, line, use LIMIT $4"""
PAIRS = """
    SELECT coalesce("offset", 0) AS byte, writer, writer_function, writer_source, writer_inlined,
           waiter, waiter_function, waiter_source, waiter_inlined, accessed,
           sum(stall)::BIGINT AS stall, sum(spin)::BIGINT AS spin, sum(waiting)::BIGINT AS waiting, sum(count)::BIGINT AS count
    FROM pairs WHERE point = ? AND line = ? AND use = ? GROUP BY ALL ORDER BY waiting DESC, byte, waiter, writer"""
FIELDS = "SELECT * FROM fields WHERE point = ? AND line = ? AND use = ? ORDER BY first"


@dataclass
class Code:
    """An instruction, or several of one source line, with what it waited and how often it missed."""

    function: str
    source: str | None
    inlined: list[str]
    waiting: int = 0
    count: int = 0

    @property
    def functions(self) -> list[str]:
        """The function and those that are inlined there, without their program."""
        return [self.function.split(":", 1)[-1], *(call.split(" called at ")[0] for call in self.inlined)]

    @property
    def shown(self) -> tuple[str, list[tuple[str, str]]]:
        """`moscope.naming.own_code.shown`; empty without a source line."""
        return shown(self.function, self.source, self.inlined) if self.source else ("", [])


@dataclass
class Byte:
    """Accesses that begin at one byte: their waiting in fs, and which functions of which cores waited. `users` has each function with
    the functions inlined there, and whether the instruction writes."""

    at: int
    stall: int = 0
    spin: int = 0
    transactions: int = 0
    written: bool = False
    functions: set[str] = field(default_factory=set)
    users: set[tuple[str, ...]] = field(default_factory=set)
    cores: set[int] = field(default_factory=set)

    @property
    def waiting(self) -> int:
        return self.stall + self.spin


@dataclass
class Area:
    """A run of bytes that is one field, with sums over its bytes. `changed`, `beside`: of any recorded transaction."""

    first: int
    bytes: int
    name: str
    kind: str
    object: str
    type: str
    waiting: int = 0
    transactions: int = 0
    waits: list[Code] = field(default_factory=list)
    writes: list[Code] = field(default_factory=list)
    readers: set[int] = field(default_factory=set)
    writers: set[int] = field(default_factory=set)
    changed: bool = False
    beside: bool = False

    @property
    def end(self) -> int:
        return self.first + self.bytes

    @property
    def written(self) -> bool:
        return bool(self.writes or self.writers or self.changed)

    @property
    def used(self) -> bool:
        return bool(self.waits or self.transactions or self.written)


@dataclass
class LineMap:
    """`line` is the row of the table `lines`; `whole` all waiting of the point; `sample` the recorded transactions of this line, and
    `complete` whether these are all."""

    line: dict[str, Any]
    whole: int
    bytes: list[Byte]
    areas: list[Area]
    sample: int = 0
    complete: bool = False
    unplaced: list[Code] = field(default_factory=list)  # writers whose bytes are not known; `count`: transactions after their writes
    after_writes: int = 0  # transactions whose last writer is known

    @property
    def waiting(self) -> int:
        return int(self.line["waiting"])

    @property
    def used(self) -> list[Area]:
        return [area for area in self.areas if area.used]

    def share(self, waiting: int) -> float:
        """Of the line's waiting."""
        return waiting / self.waiting if self.waiting else 0.0


def maps_of(p: Point, name: str, kind: str, most: int = LINES_OF_NAME) -> list[LineMap]:
    """Maps of the hottest lines of a name or of an entry, made once for each point."""
    made: dict[tuple[str, str, int], list[LineMap]] = p.made.setdefault("maps", {})
    key = name, kind, most
    if key not in made:
        rows = p.database.rows(LINES, p.name, name, kind, most)
        accesses = recorded.of_lines(p, [(row["line"], row["name"], row["kind"]) for row in rows])
        made[key] = [_map(p, row, accesses.get(row["line"], [])) for row in rows]
    return made[key]


def _map(p: Point, row: dict[str, Any], accesses: list[recorded.Accesses]) -> LineMap:
    at = p.name, row["line"], row["use"]
    pairs = p.database.rows(PAIRS, *at)
    found = LineMap(row, p.waiting_fs, [Byte(n) for n in range(LINE)], _areas(p.database.rows(FIELDS, *at), pairs),
                    sum(one.count for one in accesses), recorded.complete(p))
    of = {n: area for area in found.areas for n in range(area.first, area.end)}
    writers = {pair["writer"] for pair in pairs} - {None} | {one.pc for one in accesses if one.writes}
    for pair in pairs:
        byte, area = found.bytes[pair["byte"]], of[pair["byte"]]
        byte.stall, byte.spin = byte.stall + pair["stall"], byte.spin + pair["spin"]
        byte.transactions += pair["count"]
        byte.functions.add(pair["waiter_function"])
        inlined = (call.split(" called at ")[0] for call in calls(pair["waiter_inlined"]))
        byte.users.add((pair["waiter_function"], *inlined, "writes" if pair["waiter"] in writers else "reads"))
        area.waiting, area.transactions = area.waiting + pair["waiting"], area.transactions + pair["count"]
        _add(area.waits, pair)
        if pair["waiter"] in writers:
            byte.written = True
            _add(area.writes, pair)
    for area in found.areas:
        area.name = _name(area, pairs)
    _add_unplaced(found, pairs, {one.pc for one in accesses})
    for one in accesses:
        if one.at is not None:
            area = of[one.at]
            (area.writers if one.writes else area.readers).add(one.core)
            area.changed, area.beside = area.changed or one.changed, area.beside or one.beside
            found.bytes[one.at].written |= one.writes or one.changed
            found.bytes[one.at].cores.add(one.core)
    for area in found.areas:
        area.waits.sort(key=lambda code: -code.waiting)
        area.writes.sort(key=lambda code: -code.count)
    return found


def _add_unplaced(to: LineMap, pairs: list[dict[str, Any]], recorded_pcs: set[int]) -> None:
    placed = {pair["waiter"] for pair in pairs} | recorded_pcs
    for pair in pairs:
        if pair["writer_function"] is not None and pair["count"]:  # a pair with spinning only has no transaction
            to.after_writes += pair["count"]
            if pair["writer"] not in placed:
                _add(to.unplaced, pair, "writer")
    to.unplaced.sort(key=lambda code: -code.count)


def _add(to: list[Code], pair: dict[str, Any], role: str = "waiter") -> None:
    """Adds a pair's waiter, or its writer, to the code of the same source line."""
    function, source, inlined = pair[f"{role}_function"], pair[f"{role}_source"], calls(pair[f"{role}_inlined"])
    one = next((c for c in to if (c.function, c.source, c.inlined) == (function, source, inlined)), None)
    if one is None:
        to.append(one := Code(function, source, inlined))
    one.waiting, one.count = one.waiting + pair["waiting"], one.count + pair["count"]


def _name(area: Area, pairs: list[dict[str, Any]]) -> str:
    """The name of a field. Memory without a type has a name for each byte: then that of the byte with the longest waiting."""
    named = Counter[str]()
    for pair in pairs:
        if area.first <= pair["byte"] < area.end and pair["accessed"] and whole_name(pair["accessed"]) == whole_name(area.name):
            named[pair["accessed"]] += pair["waiting"]
    return max(named, key=lambda name: named[name], default=area.name)


def whole_name(name: str) -> str:
    """A name without the distance from the beginning of its object."""
    return DISTANCE.sub("", name)


def _areas(fields: list[dict[str, Any]], pairs: list[dict[str, Any]]) -> list[Area]:
    """All 64 bytes as areas: the fields, or without them the bytes from one access to the next."""
    if fields:
        return [Area(row["first"], row["bytes"], row["name"], row["kind"], row["object"] or "", row["type"] or "") for row in fields]
    names = {pair["byte"]: pair["accessed"] or f"+{pair['byte']:#x}" for pair in pairs}
    starts = sorted({0, *names})
    return [Area(first, end - first, names.get(first, ""), "", "", "") for first, end in zip(starts, [*starts[1:], LINE], strict=True)]
