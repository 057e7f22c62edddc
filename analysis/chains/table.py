# SPDX-License-Identifier: BSD-3-Clause
"""The chains of a point, of all lines or of those of one name."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pyarrow import parquet

from analysis import places
from analysis.database import connect
from analysis.run_directory import Point
from moscope.naming.own_code import INLINED
from moscope.parquet import scan
from moscope.wording import percent

FILE = "stacks"
QUERY = "SELECT frames, process, name, kind, waiting, samples FROM {file} ORDER BY waiting DESC, frames, name"
WAITERS = """SELECT waiter_function, sum(waiting)::BIGINT AS waiting FROM pairs
             WHERE point = $1 AND (name = $2 OR element = $2) AND kind = $3 GROUP BY waiter_function"""
NOTABLE = 0.05  # share of a name's chains from which it is said where they end
ERRORS = 3  # standard errors that a share of samples may differ by
AT = "SELECT name, kind, at_function, at_source, at_inlined, waiting FROM {file}"


@dataclass(frozen=True)
class Chain:
    """`frames`: functions, outermost first. `name`: the entry (analysis/arrays.py) of the lines, `element` their own name. `waiting`: what
    its samples stand for, in fs."""

    frames: tuple[str, ...]
    process: str
    name: str
    kind: str
    waiting: int
    samples: int
    element: str = ""


def sampled(p: Point) -> bool:
    """Whether the point has samples."""
    return p.database.file(p.name, FILE) is not None


def chains(p: Point, name: str | None = None, kind: str | None = None) -> list[Chain]:
    """Those with the most waiting first; of the lines of one name or entry, if one is given. Empty where stacks were not sampled."""
    if name is None:
        return list(_all(p))
    return [one for one in _all(p) if one.kind == kind and name in (one.name, one.element)]


def by_functions(found: Iterable[Chain]) -> list[Chain]:
    """Chains with the same functions as one, without its process. Those of a point differ also by the instructions of the calls."""
    made: dict[tuple[str, ...], Chain] = {}
    for one in found:
        held = made.get(one.frames)
        made[one.frames] = replace(one, process="", waiting=one.waiting + (held.waiting if held else 0),
                                   samples=one.samples + (held.samples if held else 0))
    return sorted(made.values(), key=lambda one: (-one.waiting, one.frames))


def _all(p: Point) -> list[Chain]:
    if "chains" not in p.made:
        file = p.database.file(p.name, FILE)
        rows = connect().execute(QUERY.format(file=scan(file))).fetchall() if file else []
        entries = p.database.entries(p.name)
        p.made["chains"] = [Chain(tuple(frames), process, entries.get((name, kind), name), kind, waiting, samples, name)
                            for frames, process, name, kind, waiting, samples in rows]
    made: list[Chain] = p.made["chains"]
    return made


def stores_note(p: Point, name: str, kind: str) -> str:
    """Why chains of a name end in functions that wait less for its lines themselves; empty if hardly any does."""
    found = chains(p, name, kind)
    ends, samples = Counter[str](), sum(one.samples for one in found)
    for one in found:
        ends[innermost(one)] += one.waiting
    waits = {row["waiter_function"]: row["waiting"] for row in p.database.rows(WAITERS, p.name, name, kind)}
    whole, waited = sum(ends.values()), max(sum(waits.values()), 1)
    held = sum(_more(ends[function] / whole, waits.get(function, 0) / waited, samples) for function in ends if function and whole)
    if held < NOTABLE:
        return ""
    return (f"At least {percent(held)} of this waiting is for earlier stores: a locked instruction, a fence or a full store buffer holds "
            "the core up until they have completed. These chains end with the instruction that is held up; 'waits at' names the store.")


def _more(sampled: float, known: float, samples: int) -> float:
    """By how much a share of samples exceeds the known one, if it does so by more than a sampling error. A share of 0 has none."""
    error = math.sqrt((known * (1 - known) + 1 / samples) / samples) if known else 0.0
    return sampled - known if sampled - known > ERRORS * error else 0.0


def innermost(one: Chain) -> str:
    """The function of the innermost frame that is not inlined, as pairs name it; empty if there is none."""
    return next((frame for frame in reversed(one.frames) if not frame.endswith(INLINED)), "")


def called_at(p: Point) -> dict[tuple[Any, Any], list[dict[str, Any]]]:
    """By entry and kind, `analysis.places.called` of the point's chains; empty for a file without source lines, as earlier versions wrote
    it."""
    file = p.database.file(p.name, FILE)
    if file is None or "at_source" not in parquet.read_schema(file).names:
        return {}
    found = connect().execute(AT.format(file=scan(file)))
    names = [column[0] for column in found.description or []]
    return places.called((dict(zip(names, row, strict=True)) for row in found.fetchall()), p.database.entries(p.name))
