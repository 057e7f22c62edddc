# SPDX-License-Identifier: BSD-3-Clause
"""The document moscope.lines/1: an attribution's lines and instructions with names (docs/naming.md)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from moscope.naming import totals
from moscope.naming.totals import main_class, waited

LINE = 64


class Names(totals.Names, Protocol):
    """What a Namer does."""

    def line(self, attribution: Mapping[str, Any], offset: int | None = None) -> dict[str, Any]: ...


def _shares(weights: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    """Added up by function, as shares of one, largest first."""
    total: dict[str, int] = defaultdict(int)
    for function, weight in weights:
        total[function] += weight
    whole = sum(total.values())
    return [{"function": f, "share": w / whole if whole else 0.0}
            for f, w in sorted(total.items(), key=lambda item: (-item[1], item[0]))]


@dataclass
class _Pair:
    stall: int = 0
    spin: int = 0
    count: int = 0
    by_offset: dict[int, int] = field(default_factory=dict)


def line_document(namer: Names, line: Mapping[str, Any]) -> dict[str, Any]:
    """An attribution line with names. A pair's writer is empty where no other core had written the line; its `name` is
    what the waiter's instructions were after."""
    space = line.get("address_space", 0)
    pairs: dict[tuple[str, str], _Pair] = defaultdict(_Pair)
    for raw in line.get("pairs", ()):
        cr3 = raw.get("address_space") or space
        pair = pairs[namer.code(raw["writer"], cr3) if raw["writer"] else "", namer.code(raw["waiter"], cr3)]
        pair.stall += raw["stall"]
        pair.spin += raw.get("spin", 0)
        pair.count += raw["count"]
        at = raw.get("offset", line.get("va", 0) % LINE)
        pair.by_offset[at] = pair.by_offset.get(at, 0) + waited(raw)
    after = {o: namer.line(line, o)["name"] for o in {_longest(p.by_offset) for p in pairs.values()}}
    return {
        **line, **namer.line(line), "class": main_class(line.get("classes", {}), line.get("spin", 0)),
        "writers": _shares((namer.code(w["pc"], space), w["count"]) for w in line.get("writers", ())),
        "waiters": _shares((waiter, p.stall + p.spin) for (_, waiter), p in pairs.items()),
        "pairs": [{"writer_function": w, "waiter_function": r, "stall": p.stall, "spin": p.spin, "count": p.count,
                   "name": after[_longest(p.by_offset)]}
                  for (w, r), p in sorted(pairs.items(), key=lambda item: (-item[1].stall - item[1].spin, item[0]))],
    }


def _longest(by_offset: Mapping[int, int]) -> int:
    return max(sorted(by_offset), key=lambda o: by_offset[o])


def lines_document(namer: Names, attribution: Mapping[str, Any], tables: tuple[bytes, bytes, bytes] = (b"", b"", b""),
                   suppliers: Sequence[str] = ()) -> dict[str, Any]:
    """moscope.lines/1 of an `attribution` (moscope.attribution/1) and the engine's `tables` of all lines; `suppliers`: kinds of
    controllers, by number. Functions:
    those that waited longest first."""
    functions: dict[tuple[str, bool], dict[str, int]] = defaultdict(lambda: {"stall": 0, "spin": 0, "count": 0})
    for row in attribution.get("instructions", ()):
        entry = functions[namer.code(row["pc"], row.get("address_space", 0)), row["pc"] >= 1 << 63]
        for what in entry:
            entry[what] += row.get(what, 0)
    return {
        "schema": "moscope.lines/1",
        "lines": [line_document(namer, line) for line in attribution.get("lines", ())],
        **totals.totals(namer, *tables, suppliers),
        "functions": [{"function": f, "kernel": kernel, **sums} for (f, kernel), sums
                      in sorted(functions.items(), key=lambda item: (-waited(item[1]), item[0]))],
    }
