# SPDX-License-Identifier: BSD-3-Clause
"""All lines of a run added up by name: what many objects of a kind cost together is seen only so, as none of their lines
costs much by itself. Reads the engine's tables (src/attribution/attribution_tables.hh).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

CLASSES = ("cold", "capacity", "upgrade", "true_sharing", "false_sharing")
# What a line is waited for without being away: turns of loops around a PAUSE that look at it.
SPIN = "spin"
LINES = np.dtype([("line", "<u8"), ("va", "<u8"), ("address_space", "<u8"), ("stall", "<i8"), ("spin", "<i8"), ("transfers", "<u8"),
                  ("class_stall", "<i8", 5), ("class_count", "<u4", 5), ("offset", "u1"), ("flags", "u1"), ("unused", "<u2"),
                  ("page_flags", "<u8"), ("page_part_of", "<u8"), ("page_index", "<u8"), ("page_type", "<u4"),
                  ("page_before", "<u4"), ("use", "<u4"), ("unused2", "<u4"), ("waiters", "<u8")])
PAGE = ("flags", "part_of", "index", "type", "before")
PAIRS = np.dtype([("writer", "<u8"), ("waiter", "<u8"), ("address_space", "<u8"), ("stall", "<i8"), ("spin", "<i8"), ("line", "<u4"), ("count", "<u4")])
MOVES = np.dtype([("stall", "<i8"), ("count", "<u8"), ("line", "<u4"), ("supplier", "u1"), ("from", "u1"), ("to", "u1"), ("unused", "u1")])
WALK, PAGE_SEEN = 1, 8
KERNEL_HALF = 1 << 63
# Of one name: the most functions, pairs and objects that are told.
MOST_FUNCTIONS, MOST_PAIRS = 10, 20

Rows = NDArray[Any]


class Names(Protocol):
    """What a Namer does."""

    def brief(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: Mapping[str, int] | None = None,
              free: bool = False) -> tuple[str, str]: ...

    def allocates(self, pc: int) -> bool: ...

    def code(self, pc: int, cr3: int = 0) -> str: ...

    def process(self, cr3: int) -> str: ...


def main_class(classes: Mapping[str, Mapping[str, int]], spin: int) -> str:
    """The class of miss with the most stall, of several the one with the most misses; `spin` where more time went there."""
    found = max(classes, key=lambda c: (classes[c]["stall"], classes[c]["count"]), default="")
    return SPIN if spin > (classes[found]["stall"] if found else 0) else found


def totals(namer: Names, lines: bytes, pairs: bytes, moves: bytes, suppliers: Sequence[str]) -> dict[str, Any]:
    """`suppliers`: kinds of controllers, by number. `names`, those that were waited for longest first (stall and spinning together), `kinds` (the same by kind of
    memory) and `all` of moscope.lines/1."""
    rows, fights = np.frombuffer(lines, LINES), np.frombuffer(pairs, PAIRS)
    ids, of_line = line_names(namer, rows, fights)
    functions = _functions(namer, rows, fights, of_line, len(ids))
    ways = _moves(np.frombuffer(moves, MOVES), of_line, len(ids), suppliers)
    waiters = np.zeros(len(ids), np.uint64)
    np.bitwise_or.at(waiters, of_line, rows["waiters"])
    # A line of which the page changed hands has several rows, which may have one name.
    first, _ = _distinct([of_line, rows["line"]])
    count = np.bincount(of_line[first], minlength=len(ids))
    stall, spin, transfers = (_sum(of_line, rows[what], len(ids)) for what in ("stall", SPIN, "transfers"))
    class_stall = [_sum(of_line, rows["class_stall"][:, k], len(ids)) for k in range(len(CLASSES))]
    class_count = [_sum(of_line, rows["class_count"][:, k], len(ids)) for k in range(len(CLASSES))]
    names, kinds = [], {}
    for (name, kind), i in ids.items():
        classes = {c: {"count": class_count[k][i], "stall": class_stall[k][i]} for k, c in enumerate(CLASSES)}
        names.append({"name": name, "kind": kind, "lines": int(count[i]), "stall": stall[i], "spin": spin[i], "transfers": transfers[i],
                      "class": main_class(classes, spin[i]), "classes": classes, "cores": int(waiters[i]).bit_count(), **functions[i], "moves": ways[i]})
        sums = kinds.setdefault(kind, {"kind": kind, "lines": 0, "stall": 0, "spin": 0})
        sums["lines"] += int(count[i])
        sums["stall"] += stall[i]
        sums["spin"] += spin[i]
    names.sort(key=lambda n: (-waited(n), n["name"], n["kind"]))
    return {"names": names, "kinds": sorted(kinds.values(), key=lambda k: (-waited(k), k["kind"])),
            "all": {"lines": len(np.unique(rows["line"])), "stall": int(rows["stall"].sum()), "spin": int(rows["spin"].sum())}}


def line_names(namer: Names, rows: Rows, fights: Rows) -> tuple[dict[tuple[str, str], int], Rows]:
    """The distinct (name, kind) of LINES, numbered, and the number of each row's."""
    ids: dict[tuple[str, str], int] = {}
    free = _waited_by_allocator(namer, rows, fights)
    of_line = np.fromiter((ids.setdefault(namer.brief(line, va, offset, cr3, bool(flags & WALK),
                                                      dict(zip(PAGE, page, strict=True)) if flags & PAGE_SEEN else None,
                                                      is_free), len(ids))
                           for is_free, (line, va, cr3, offset, flags, *page) in
                           zip(free.tolist(), _columns(rows, "line", "va", "address_space", "offset", "flags", *(f"page_{part}" for part in PAGE)),
                               strict=True)), np.int64, len(rows))
    return ids, of_line


def _waited_by_allocator(namer: Names, rows: Rows, fights: Rows) -> Rows:
    """Of each line, whether the slab allocator waited for it most of the time."""
    waiters, which = np.unique(fights["waiter"], return_inverse=True)
    by = np.array([namer.allocates(pc) for pc in waiters.tolist()], bool)[which]
    time = np.zeros(len(rows), np.int64)
    np.add.at(time, fights["line"][by], (fights["stall"] + fights[SPIN])[by])
    return 2 * time > rows["stall"] + rows[SPIN]


def code_names(namer: Names, pcs: Rows, spaces: Rows) -> tuple[list[str], Rows]:
    """The functions of instructions, numbered, and the number of each row's; an instruction at 0 has the empty name."""
    kept = np.where(pcs < KERNEL_HALF, spaces, 0)
    first, which = _distinct([pcs, kept])
    ids: dict[str, int] = {}
    of_code = np.fromiter((ids.setdefault(namer.code(pc, cr3) if pc else "", len(ids))
                           for pc, cr3 in zip(pcs[first].tolist(), kept[first].tolist(), strict=True)), np.int64, len(first))
    return list(ids), of_code[which]


def process_names(namer: Names, spaces: Rows) -> tuple[list[str], Rows]:
    """The processes of address spaces likewise; the empty name where none is known."""
    distinct, which = np.unique(spaces, return_inverse=True)
    ids: dict[str, int] = {}
    of_space = np.fromiter((ids.setdefault(namer.process(cr3), len(ids)) for cr3 in distinct.tolist()), np.int64, len(distinct))
    return list(ids), of_space[which]


def waited(one: Mapping[str, Any]) -> int:
    """For a line, a pair or an instruction: stalled and spinning."""
    return int(one["stall"]) + int(one.get("spin", 0))


def _columns(rows: Rows, *names: str) -> Iterable[tuple[int, ...]]:
    """Python's own numbers, row by row."""
    return zip(*(rows[n].tolist() for n in names), strict=True)


def _sum(group: Rows, values: Rows, groups: int) -> list[int]:
    out = np.zeros(groups, np.int64)
    np.add.at(out, group, values.astype(np.int64))
    found: list[int] = out.tolist()
    return found


def _distinct(keys: list[Rows]) -> tuple[Rows, Rows]:
    """For rows of several columns, in their order: a row of each distinct kind, and the kind of each row. Of a million rows in a
    second; numpy's `unique` compares records one by one."""
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), bool)
    new[:1] = True
    for key in keys:
        new[1:] |= np.diff(key[order]) != 0
    which = np.empty(len(order), np.int64)
    which[order] = np.cumsum(new) - 1
    return order[new], which


def _functions(namer: Names, rows: Rows, fights: Rows, of_line: Rows, groups: int) -> list[dict[str, Any]]:
    """By name: `writers` (by times written), `waiters` (by time) and `pairs` of functions."""
    writers: list[dict[str, int]] = [{} for _ in range(groups)]
    waiters: list[dict[str, int]] = [{} for _ in range(groups)]
    pairs: list[dict[tuple[str, str], dict[str, int]]] = [{} for _ in range(groups)]
    group = of_line[fights["line"]]
    # The kernel's code after a user's: that was most likely the same program's.
    behind = (fights["waiter"] >= KERNEL_HALF) & (fights["writer"] < KERNEL_HALF) & (fights["writer"] > 0)
    spaces = np.where(behind, rows["address_space"][fights["line"]], fights["address_space"])
    # Code of the kernel is the same in all address spaces, so most rows of a name fall together before they get names.
    keys = [group, fights["writer"], fights["waiter"], spaces]
    first, which = _distinct(keys)
    sums = zip(*(_sum(which, fights[what], len(first)) for what in ("stall", "spin", "count")), strict=True)
    for i, writer, waiter, cr3, (stall, spin, n) in zip(*(key[first].tolist() for key in keys), sums, strict=True):
        who, waits = namer.code(writer, cr3) if writer else "", namer.code(waiter, cr3)
        if who:
            writers[i][who] = writers[i].get(who, 0) + n
        waiters[i][waits] = waiters[i].get(waits, 0) + stall + spin
        pair = pairs[i].setdefault((who, waits), {"stall": 0, "spin": 0, "count": 0})
        for what, value in (("stall", stall), ("spin", spin), ("count", n)):
            pair[what] += value
    return [{"writers": _shares(writers[i]), "waiters": _shares(waiters[i]),
             "pairs": [{"writer_function": w, "waiter_function": r, **found} for (w, r), found in
                       sorted(pairs[i].items(), key=lambda item: (-waited(item[1]), item[0]))[:MOST_PAIRS]]} for i in range(groups)]


def _moves(moves: Rows, of_line: Rows, groups: int, suppliers: Sequence[str]) -> list[list[dict[str, Any]]]:
    """By name: from where to where its lines were sent, most often first, as an attribution's lines tell it."""
    keys = [of_line[moves["line"]], moves["supplier"], moves["from"], moves["to"]]
    first, which = _distinct(keys)
    sums = zip(*(_sum(which, moves[what], len(first)) for what in ("count", "stall")), strict=True)
    found: list[list[dict[str, Any]]] = [[] for _ in range(groups)]
    for i, supplier, sender, to, (count, stall) in zip(*(key[first].tolist() for key in keys), sums, strict=True):
        found[i].append({"supplier": suppliers[supplier], "from": sender, "to": to, "count": count, "stall": stall})
    for of_name in found:
        of_name.sort(key=lambda m: -int(m["count"]))
    return found


def _shares(weights: dict[str, int]) -> list[dict[str, Any]]:
    whole = max(sum(weights.values()), 1)
    return [{"function": f, "share": w / whole} for f, w in sorted(weights.items(), key=lambda x: (-x[1], x[0]))[:MOST_FUNCTIONS]]
