# SPDX-License-Identifier: BSD-3-Clause
"""Derives a point's summary from its tables: the hottest lines and names, and one sentence on what limits the point."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moscope import paths
from moscope.guest.imagefiles import ImageFiles
from moscope.guest.kernel import Kernel
from moscope.naming.columns import Tables
from moscope.naming.namer import Namer
from moscope.naming.own_code import has_writers, of_pair, shown
from moscope.runs.engine import System
from moscope.schema.enumerations import WAIT
from moscope.wording import percent
from moscope.workloads import registry

if TYPE_CHECKING:
    from analysis.database import Database

MOST, MOST_FUNCTIONS = 20, 5
# A cause with a smaller share of the cores' time is not worth naming.
WORTH = 0.10
# The functions of each of the hottest lines, and of each of the hottest names, most first.
OF_LINES = """
    WITH hottest AS (SELECT line, use FROM lines ORDER BY waiting DESC, line, use LIMIT {most})
    SELECT line, use, {function} AS function, sum({weight})::BIGINT AS weight FROM pairs JOIN hottest USING (line, use)
    WHERE {condition} GROUP BY ALL ORDER BY weight DESC, function"""
OF_NAMES = """
    WITH hottest AS (SELECT name, kind FROM names ORDER BY waiting DESC, name, kind LIMIT {most})
    SELECT name, kind, {function} AS function, sum({weight})::BIGINT AS weight FROM pairs JOIN hottest USING (name, kind)
    WHERE {condition} GROUP BY ALL ORDER BY weight DESC, function"""
ROLES = {"writers": {"function": "writer_function", "weight": "count",
                     "condition": "writer_function IS NOT NULL AND (count > 0 OR stall > 0)"},
         "waiters": {"function": "waiter_function", "weight": "waiting", "condition": "true"}}


def namer(system: System, kernel: Kernel, programs: dict[str, Path], root_image: Path | None = None) -> Namer:
    """Names for lines and code, from guest memory. Its `observe` has to be called while the machine runs, because processes come
    and go; names are asked for at the end."""
    return Namer(system, kernel.image, {name if name.startswith("/") else f"{registry.GUEST_FOLDER}/{name}": path
                                        for name, path in programs.items()}, ImageFiles(root_image).find if root_image else None)


def database(tables: Tables) -> "Database":
    """The tables as a database, for queries; reports use the same queries."""
    paths.import_analysis()
    from analysis.database import Database

    return Database({"": vars(tables)})


class Hottest:
    """The lines and names of a point with the most waiting."""

    def __init__(self, tables: Tables, physical_of: Callable[[int], int]) -> None:
        self.database = database(tables)
        self._physical_of = physical_of
        self._spin = tables.total("spin")
        self.chains: Any = None  # the table of stacks.parquet

    def lines(self, memory_stall: int) -> list[dict[str, Any]]:
        """LINE of the contracts, those with the most waiting first."""
        found = self.database.rows(f"SELECT * FROM lines ORDER BY waiting DESC, line, use LIMIT {MOST}")
        functions, places = self._functions(OF_LINES, ("line", "use")), self._places("lines")
        return [{"name": one["name"], "address": f"{self._physical_of(one['line']):#x}", **self._shares(one, memory_stall),
                 "transfers": one["transfers"], "class": one["class"], **functions(one), **places(one)} for one in found]

    def names(self, memory_stall: int) -> list[dict[str, Any]]:
        """The same by name, added up over all lines."""
        from analysis.contention import contention
        from analysis.places import after_writes

        found = self.database.rows(f"SELECT * FROM names ORDER BY waiting DESC, name, kind LIMIT {MOST}")
        functions, places = self._functions(OF_NAMES, ("name", "kind")), self._places("names")
        called, written = self._called(places), after_writes(self.database, "", "names", MOST)
        contended = contention(self.database, "", MOST)
        return [{"name": one["name"], "lines": one["lines"], **self._shares(one, memory_stall), "transfers": one["transfers"],
                 "class": one["class"], "after_writes": written.get((one["name"], one["kind"]), 0.0), **functions(one),
                 **called(one), **places(one), **contended.get((one["name"], one["kind"]), {})} for one in found]

    def _functions(self, query: str, key: tuple[str, str]) -> Callable[[dict[str, Any]], dict[str, list[str]]]:
        found: dict[tuple[str, Any, Any], list[str]] = {}
        for role, parts in ROLES.items():
            for row in self.database.rows(query.format(most=MOST, **parts)):
                found.setdefault((role, row[key[0]], row[key[1]]), []).append(row["function"])
        return lambda one: {role: found.get((role, one[key[0]], one[key[1]]), [])[:MOST_FUNCTIONS] for role in ROLES}

    def _places(self, table: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """A function that gives the source lines of writers and waiters (`analysis.places`)."""
        from analysis.places import KEYS, places

        found, key = places(self.database, "", table, MOST), KEYS[table]
        return lambda one: {role: listed for role, listed in found.get((one[key[0]], one[key[1]]), {}).items() if listed}

    def _called(self, own: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """A function that gives the source lines from which the waiting code was called. It gives nothing if the program itself
        waits at source lines (`own`)."""
        from analysis.places import CALLED, called, callers

        found = called(self.chains.to_pylist(), self.database.entries("")) if self.chains is not None else {}

        def of(one: dict[str, Any]) -> dict[str, Any]:
            listed = callers(own(one).get("waited_at", ()), found.get((one["name"], one["kind"]), []))
            return {CALLED: listed} if listed else {}

        return of

    def _shares(self, one: dict[str, Any], memory_stall: int) -> dict[str, float]:
        """`stall_share`: the fraction of all memory stall in the windows. `wait_share`: the fraction of all memory stall and
        spinning. `spin_share`: the spinning portion of `wait_share`."""
        stall, spin = one["stall"], one["spin"]
        whole = memory_stall + self._spin
        return {"stall_share": min(stall / memory_stall, 1.0) if memory_stall else 0.0,
                "wait_share": min((stall + spin) / whole, 1.0) if whole else 0.0, "spin_share": spin / whole if whole else 0.0}


def bottleneck(figures: dict[str, Any], hottest: list[dict[str, Any]]) -> str:
    """What the cores spend their time on, in one sentence; `hottest` are names."""
    cycles, spin = figures["cycles"], figures["spin_cycles"]
    waiting, idle = cycles["memory"] + spin, cycles["idle"]
    waits = f"waiting for memory takes {percent(waiting)}"
    if spin >= 0.005:
        waits = f"waiting for memory ({percent(cycles['memory'])}) and in spin loops ({percent(spin)}) takes {percent(waiting)}"
    if waiting >= WORTH and waiting >= idle and hottest:
        one = hottest[0]
        which = f"the {_lines(one['lines'])} of {one['shared']}" if "shared" in one else with_file(one)
        text = f"{waits} of the cores' time, {percent(one['wait_share'])} of it for {which} ({WAIT.noun(one['class'])})"
        if has_writers(one) and "pair" in one:
            text += f", {_contenders(one['pair'], 'them' if 'shared' in one and one['lines'] > 1 else 'it')}"
        elif one["waiters"]:
            waiter = str(one["waiters"][0])
            place = next((place for place in one.get("waited_at", []) if place["function"] == waiter and place["source"]), None)
            text += f", which {_at(waiter, shown(waiter, place['source'], place['inlined'])[0] if place else '')} waits for"
        return text
    if idle >= max(waiting, cycles["busy"] + cycles["core"] - spin):
        return f"the cores are idle for {percent(idle)} of their time: too little work reaches them; {waits}"
    also = f"; the cores are idle for {percent(idle)}" if idle >= WORTH else ""
    if cycles["core"] > cycles["busy"]:
        return f"stalls inside the cores take {percent(cycles['core'])} of their time; {percent(cycles['memory'])} goes to memory{also}"
    return f"the cores compute for {percent(cycles['busy'])} of their time; {percent(cycles['memory'])} goes to waiting for memory{also}"


def with_file(name: dict[str, Any]) -> str:
    """A name of top_names, with the file that it is of."""
    return f"{name['name']} ({name['file']})" if "file" in name else str(name["name"])


def _lines(count: int) -> str:
    return f"{count:,} lines" if count > 1 else "line"


def _contenders(pair: dict[str, Any], what: str) -> str:
    """The writer and the waiter, which may be one function, and their share of the waiting, unless that is nearly all of it."""
    part = of_pair(pair.get("share"))
    begin, it = (f"{percent(part)} of this where", f" {what}") if part else ("which", "")
    waiter, writer = (_at(pair[role], pair[f"{role}_source"]) for role in ("waiter", "writer"))
    if waiter == writer:
        return f"{begin} {writer} writes{it} on one core and waits for{it} on another"
    return f"{begin} {waiter} waits for{it} and {writer} writes{it}"


def _at(function: str, source: str) -> str:
    return f"{function} ({source})" if source else function
