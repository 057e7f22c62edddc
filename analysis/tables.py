# SPDX-License-Identifier: BSD-3-Clause
"""A run as tables: each function gives {column: [value per row]}, which is what pyarrow.table, pandas.DataFrame and polars.DataFrame take.

The first columns are always workload, kernel and cores. Shares are fractions of one; units are in the columns' names.
"""

import csv
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

from analysis import filters
from analysis import moves as line_moves
from analysis.locks import lock_of
from analysis.run_directory import FS_PER_S, FS_PER_US, Point, Run

Table = dict[str, list[Any]]
KEY = ("workload", "kernel", "cores")
CLASSES = ("true_sharing", "false_sharing", "upgrade", "capacity", "cold")
# What lines are waited for: memory stall by class of miss, and turns of loops that look at them.
WAITS = (*CLASSES, "spin")
# What a core's time splits into: busy and core stall without those loops, the loops, the memory part by class of miss, and what of it
# has no class: its transaction was under way when the last window ended; in runs of older versions also the wait for a full store buffer.
CAUSES = ("user", "kernel", "core", "spin", *CLASSES, "without_class", "idle")
NO_WRITER = "no other core wrote"
UNKNOWN = "unknown"
LINE_BYTES = 64


def _table(columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> Table:
    names = (*KEY, *columns)
    kept = list(rows)
    return {name: [row[i] for row in kept] for i, name in enumerate(names)}


def _key(p: Point) -> tuple[str, str, int]:
    return (p.workload, p.kernel, p.cores)


def causes(p: Point) -> dict[str, float]:
    """Shares of the cores' time by cause (CAUSES); `memory` undivided and `busy` where there is no more detail."""
    cores = p.stats.get("cores") or []
    whole = sum(int(c.get("window", 0)) for c in cores)
    if not whole:
        cycles = p.record.get("cycles") or {}
        return {k: float(cycles.get(k) or 0) for k in ("busy", "core", "memory", "idle")} if cycles else {}

    def spent(kind: str, who: str) -> float:
        return sum(int((c.get(kind) or {}).get(who, 0)) for c in cores) / whole

    def spun(kind: str, who: str) -> float:
        return sum(int(((c.get("spin") or {}).get(kind) or {}).get(who, 0)) for c in cores) / whole

    found = {who: spent("busy", who) - spun("busy", who) for who in ("user", "kernel")}
    found["core"] = sum(spent("core", who) - spun("core", who) for who in ("user", "kernel"))
    found["spin"] = sum(spun(kind, who) for kind in ("busy", "core") for who in ("user", "kernel"))
    memory = spent("memory", "user") + spent("memory", "kernel")
    by_class = {k: stall / whole for k, stall in class_stall(p).items()}
    if not any(by_class.values()):
        found["memory"] = memory
    else:
        found |= {k: by_class.get(k, 0.0) for k in CLASSES}
        rest = memory - sum(by_class.values())
        found["without_class"] = rest if rest > 1e-9 else 0.0
    found["idle"] = spent("idle", "user") + spent("idle", "kernel")
    return found


def class_stall(p: Point) -> dict[str, int]:
    """Exposed stall in fs by class."""
    classes = p.attribution.get("classes") or {}
    return {k: int((classes.get(k) or {}).get("stall", 0)) for k in CLASSES}


def points(run: Run) -> Table:
    """One row per point: its figures."""
    names = ("ops", "throughput_per_s", "stderr_per_s", "kernel_share", "user_us_per_op", "system_us_per_op", "instructions",
             "host_s", "host_s_per_ms")
    return _table((*names, "throughput_per_core_per_s", "memory_share", "bottleneck"), (
        (*_key(p), *(p.number(n) for n in names), (p.number("throughput_per_s") or 0.0) / max(p.cores, 1),
         (p.record.get("cycles") or {}).get("memory"), p.record.get("bottleneck")) for p in run.points))


def windows(run: Run) -> Table:
    """One row per repeated window."""
    return _table(("window", "ops", "ms", "throughput_per_s"), (
        (*_key(p), n, w.get("ops"), int(w.get("ticks") or 0) / 10**12, w.get("throughput_per_s"))
        for p in run.points for n, w in enumerate(p.record.get("windows") or [], 1)))


def time_split(run: Run) -> Table:
    """One row per point and cause."""
    return _table(("cause", "share"), ((*_key(p), k, v) for p in run.points for k, v in causes(p).items()))


def _once(table: Callable[[Point], list[dict[str, Any]]]) -> Callable[[Point], list[dict[str, Any]]]:
    """Made once for each point; its rows are for reading only."""

    @wraps(table)
    def kept(p: Point) -> list[dict[str, Any]]:
        if table.__name__ not in p.made:
            p.made[table.__name__] = table(p)
        return list(p.made[table.__name__])

    return kept


@_once
def hot_lines(p: Point) -> list[dict[str, Any]]:
    """The lines of a point, those that were waited for longest first: name, kind of memory, what, address, wait_share (of memory stall and
    spinning), stall_share (of memory stall), stall_us, spin_us, transfers, cores, class, classes {class or spin: fs},
    writers and waiters [(function, share)], pairs [(writer, waiter, stall and spinning fs)], moves (`analysis.moves`)."""
    found = [_line(p, one) for one in p.named.get("lines") or [] if isinstance(one, dict)]
    found = found or [_top_line(one) for one in p.record.get("top_lines") or [] if isinstance(one, dict)]
    return sorted(found, key=lambda one: -one["wait_share"])


@_once
def hot_names(p: Point) -> list[dict[str, Any]]:
    """As `hot_lines`, with lines of one name added up (`lines` counts them, `what` tells the largest objects; `moves` and `cores` are of
    all of them where `counted`, else of those `listed` one by one): an array or
    many objects of a kind cost as one what none of their lines costs by itself. Of all lines of the point; where a run does
    not tell those, of the lines that it lists."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}  # a slab cache and the variable that points to it may have one name
    for one in hot_lines(p):
        groups.setdefault((one["name"], one["kind"]), []).append(one)
    names = [one for one in p.named.get("names") or [] if isinstance(one, dict)]
    if names:
        def listed(name: str, kind: str) -> list[dict[str, Any]]:
            return groups.get((name, kind)) or groups.get((name, ""), [])

        return [_name(p, one, listed(str(one.get("name")), str(one.get("kind") or ""))) for one in names]
    top = [one for one in p.record.get("top_names") or [] if isinstance(one, dict)]
    if top and not p.named.get("lines"):
        return [{**_top_line(one), "lines": int(one.get("lines") or 1), "listed": 0} for one in top]
    return sorted((_together(lines) for lines in groups.values()), key=lambda one: -one["wait_share"])


def _name(p: Point, one: dict[str, Any], listed: list[dict[str, Any]]) -> dict[str, Any]:
    """A name with all of its lines; `listed` are the hottest of them, which have objects."""
    of_all = _line(p, one)
    count = int(one.get("lines") or 1)
    # A line has a row for each use that its page came to.
    addresses = {x["address"] for x in listed}
    of_listed = {"moves": line_moves.together([x["moves"] for x in listed]), "listed": len(addresses),
                 "cores": max((x["cores"] for x in listed if x["cores"]), default=None), "counted": False}
    told = {"listed": count, "counted": True} if "moves" in one else of_listed  # runs of before do not tell them
    return {**of_all, "lines": count, "what": _objects(listed), "address": listed[0]["address"] if count == 1 and listed else "", **told}


def _objects(lines: list[dict[str, Any]]) -> str:
    """The objects of the hottest lines."""
    objects = list(dict.fromkeys(one["what"] for one in lines if one["what"]))
    return ", ".join(objects[:2]) + (f" and {len(objects) - 2} more" if len(objects) > 2 else "")


def kinds(run: Run) -> Table:
    """One row per kind of memory (docs/naming.md), over all lines."""
    return _table(("kind", "lines", "stall_us", "spin_us", "wait_share"), ((*_key(p), *row) for p in run.points for row in point_kinds(p)))


def point_kinds(p: Point) -> list[tuple[str, int, float, float, float]]:
    """(kind, lines, stall us, spinning us, share of both), largest first."""
    return [(str(k.get("kind")), int(k.get("lines") or 0), *_us(k), _share(_waited(k), p)) for k in p.named.get("kinds") or []]


def _waited(one: dict[str, Any]) -> int:
    return int(one.get("stall") or 0) + int(one.get("spin") or 0)


def _us(one: dict[str, Any]) -> tuple[float, float]:
    """Stall and spinning."""
    return int(one.get("stall") or 0) / FS_PER_US, int(one.get("spin") or 0) / FS_PER_US


def _share(waited: int, p: Point) -> float:
    return waited / p.waiting_fs if p.waiting_fs else 0.0


def _together(lines: list[dict[str, Any]]) -> dict[str, Any]:
    first = lines[0]
    if len(lines) == 1:
        return {**first, "lines": 1, "listed": 1}
    classes = {k: sum(one["classes"].get(k, 0) for one in lines) for k in WAITS}
    pairs: dict[tuple[str, str], int] = {}
    people: dict[str, dict[str, float]] = {"writers": {}, "waiters": {}}
    for one in lines:
        for writer, waiter, stall in one["pairs"]:
            pairs[writer, waiter] = pairs.get((writer, waiter), 0) + stall
        for who, weight in (("writers", one["transfers"]), ("waiters", one["wait_share"])):
            for function, share in one[who]:
                people[who][function] = people[who].get(function, 0.0) + weight * (1.0 if share is None else share)
    cores = [one["cores"] for one in lines if one["cores"]]
    by_class: dict[str, float] = {}
    for one in lines:
        by_class[one["class"]] = by_class.get(one["class"], 0.0) + one["wait_share"]
    return {
        **first, "lines": len(lines), "listed": len(lines), "what": _objects(lines),
        "moves": line_moves.together([one["moves"] for one in lines]),
        **{k: sum(one[k] for one in lines) for k in ("stall_share", "wait_share", "transfers")},
        **{k: sum(one[k] for one in lines) if all(one[k] is not None for one in lines) else None for k in ("stall_us", "spin_us")},
        "cores": max(cores, default=None), "classes": classes if any(classes.values()) else {},
        "class": max(by_class, key=lambda k: by_class[k]), "pairs": [(*pair, stall) for pair, stall in pairs.items()],
        **{who: _normal(weights) for who, weights in people.items()}}


def _normal(weights: dict[str, float]) -> list[tuple[str, float | None]]:
    whole = sum(weights.values()) or 1.0
    return [(name, weight / whole) for name, weight in sorted(weights.items(), key=lambda x: (-x[1], x[0]))]


def _line(p: Point, one: dict[str, Any]) -> dict[str, Any]:
    stall, (stall_us, spin_us) = int(one.get("stall") or 0), _us(one)
    classes = one.get("classes") or {}
    name = str(one.get("name") or f"line {int(one.get('line') or 0):#x}")
    return {
        "name": name, "kind": str(one.get("kind") or ""), "what": _what(one, name), "address": f"{int(one.get('line') or 0):#x}",
        "stall_share": stall / p.memory_stall_fs if p.memory_stall_fs else 0.0, "wait_share": _share(_waited(one), p),
        "stall_us": stall_us, "spin_us": spin_us, "transfers": int(one.get("transfers") or 0), "cores": one.get("cores"), "class": str(one.get("class") or _largest(classes)),
        "classes": {**{k: int((classes.get(k) or {}).get("stall", 0)) for k in CLASSES}, "spin": int(one.get("spin") or 0)},
        "writers": _shares(one.get("writers")), "waiters": _shares(one.get("waiters")),
        "pairs": [(_writer(x.get("writer_function")), str(x.get("waiter_function") or UNKNOWN), _waited(x))
                  for x in one.get("pairs") or []],
        "moves": line_moves.of_line(one)}


def _top_line(one: dict[str, Any]) -> dict[str, Any]:
    name = str(one.get("name") or one.get("address") or "line")
    return {"name": name, "kind": "", "what": "", "address": str(one.get("address") or ""), "stall_share": float(one.get("stall_share") or 0),
            "wait_share": float(one.get("wait_share", one.get("stall_share")) or 0), "stall_us": None, "spin_us": None, "transfers": int(one.get("transfers") or 0), "cores": None, "class": str(one.get("class") or ""),
            "classes": {}, "writers": [(str(f), None) for f in one.get("writers") or []],
            "waiters": [(str(f), None) for f in one.get("waiters") or []], "pairs": [], "moves": {}}


def _what(one: dict[str, Any], name: str) -> str:
    """Object and field, so far as the name does not say them already."""
    said = [str(one[k]) for k in ("object", "field") if one.get(k)]
    return ", ".join(s for s in said if s not in name)


def _largest(classes: dict[str, Any]) -> str:
    return max(sorted(classes), key=lambda k: classes[k].get("stall", 0), default="")


def _shares(weights: Any) -> list[tuple[str, float | None]]:
    found: dict[str, float] = {}
    for w in weights or []:
        if isinstance(w, dict):
            name = str(w.get("function") or UNKNOWN)
            found[name] = found.get(name, 0.0) + float(w.get("share") or 0)
    return sorted(found.items(), key=lambda x: -x[1])  # type: ignore[return-value]


def _writer(function: Any) -> str:
    return NO_WRITER if function in (None, "", UNKNOWN, "none", "0x0") else str(function)


def lines(run: Run) -> Table:
    """One row per line."""
    names = ("name", "kind", "what", "address", "wait_share", "stall_share", "stall_us", "spin_us", "transfers", "cores", "class")
    rows = ((*_key(p), *(one[n] for n in names), one["writers"][0][0] if one["writers"] else None,
             one["waiters"][0][0] if one["waiters"] else None) for p in run.points for one in hot_lines(p))
    return _table(("name", "kind", "object_field", "address", "wait_share", "stall_share", "stall_us", "spin_us", "transfers", "cores_waiting",
                   "class", "writer", "waiter"), rows)


def moves(run: Run) -> Table:
    """One row per line and way that it went: times that `supplier`, a kind of controller of one chip, sent it to a core of another, and the
    stall for that."""
    return _table(("name", "kind", "object_field", "address", "supplier", "from_chip", "to_chip", "times", "stall_us"), (
        (*_key(p), one["name"], one["kind"], one["what"], one["address"], *way, times, stall / FS_PER_US)
        for p in run.points for one in hot_lines(p) for way, (times, stall) in sorted(one["moves"].items(), key=lambda x: (-x[1][0], x[0]))))


def moves_by_name(run: Run) -> Table:
    """The same with all lines of a name added up."""
    return _table(("name", "kind", "supplier", "from_chip", "to_chip", "times", "stall_us"), (
        (*_key(p), one["name"], one["kind"], *way, times, stall / FS_PER_US)
        for p in run.points for one in hot_names(p) for way, (times, stall) in sorted(one["moves"].items(), key=lambda x: (-x[1][0], x[0]))))


def names(run: Run) -> Table:
    """One row per name, with how many lines have it."""
    columns = ("name", "kind", "lines", "what", "wait_share", "stall_share", "stall_us", "spin_us", "transfers", "class")
    return _table(("name", "kind", "lines", "objects", *columns[4:]), (
        (*_key(p), *(one[c] for c in columns)) for p in run.points for one in hot_names(p)))


def point_locks(p: Point) -> list[dict[str, Any]]:
    """The locks of a point (`analysis.locks` says which names are locks), longest waited for first: lock, form, lines, wait_share, stall_us,
    spin_us, transfers, waiters [(function, share)]."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in hot_names(p):
        # A line of a function's code bears its name, and the function itself waits for it.
        if (found := lock_of(one["name"], one["kind"])) and one["name"] not in [f for f, _ in one["waiters"]]:
            groups.setdefault(found, []).append(one)
    whole = [{"lock": lock, "form": form, **_together(names), "lines": sum(one["lines"] for one in names)}
             for (lock, form), names in groups.items()]
    return sorted(whole, key=lambda one: (-one["wait_share"], one["lock"]))


def locks(run: Run) -> Table:
    """One row per lock."""
    columns = ("lock", "form", "lines", "wait_share", "stall_us", "spin_us", "transfers")
    return _table((*columns, "waiters"), ((*_key(p), *(one[c] for c in columns), "; ".join(f for f, _ in one["waiters"][:5]))
                                          for p in run.points for one in point_locks(p)))


def fights(p: Point) -> dict[tuple[str, str], int]:
    """Stall and spinning in fs by (writer's function, waiter's function), over all lines; of each name the largest twenty pairs."""
    found: dict[tuple[str, str], int] = {}
    for one in hot_names(p):
        for writer, waiter, waited in one["pairs"]:
            found[writer, waiter] = found.get((writer, waiter), 0) + waited
    return dict(sorted(found.items(), key=lambda x: (-x[1], x[0])))


def pairs(run: Run) -> Table:
    """One row per writer's and waiter's function."""
    return _table(("writer", "waiter", "wait_us", "wait_share"), (
        (*_key(p), *pair, waited / FS_PER_US, _share(waited, p)) for p in run.points for pair, waited in fights(p).items()))


def functions(run: Run) -> Table:
    """One row per function that waited."""
    return _table(("function", "is_kernel", "stall_us", "spin_us", "wait_share", "transactions"), (
        (*_key(p), *row) for p in run.points for row in waiting_functions(p)))


def waiting_functions(p: Point) -> list[tuple[str, bool, float, float, float, int]]:
    """(function, kernel, stall us, spinning us, share of both, transactions), largest first; instructions are added up."""
    found: dict[tuple[str, bool], dict[str, int]] = {}
    for one in p.named.get("functions") or []:
        sums = found.setdefault((str(one.get("function") or UNKNOWN), bool(one.get("kernel"))), {"stall": 0, "spin": 0, "count": 0})
        for what in sums:
            sums[what] += int(one.get(what) or 0)
    whole = p.waiting_fs or sum(_waited(sums) for sums in found.values()) or 1
    return [(name, kernel, *_us(sums), _waited(sums) / whole, sums["count"])
            for (name, kernel), sums in sorted(found.items(), key=lambda x: (-_waited(x[1]), x[0]))]


def kernel_pairs(run: Run) -> list[tuple[Point, Point]]:
    """For each workload measured on several kernels, the two to compare, on the most cores that both have: stock and pk
    where they are there, else the first two."""
    found = []
    for workload in dict.fromkeys(p.workload for p in run.points):
        kernels = {k: points for (w, k), points in run.series().items() if w == workload}
        pair = ("stock", "pk") if {"stock", "pk"} <= kernels.keys() else tuple(kernels)[:2]
        if len(pair) < 2:
            continue
        first, second = ({p.cores: p for p in kernels[k]} for k in pair)
        if common := first.keys() & second.keys():
            found.append((first[max(common)], second[max(common)]))
    return found


def wait_per_operation(first: Point, second: Point) -> list[tuple[str, str, float, float]]:
    """(line or function, name, µs of stall and spinning per operation in the first, in the second), the largest difference
    first. A name that one of them does not list counts as nothing there."""
    sums: dict[tuple[str, str], list[float]] = {}
    for n, p in enumerate((first, second)):
        ops = p.number("ops") or 0.0
        if not ops:
            return []
        for one in hot_names(p):
            if one["stall_us"] is not None:
                sums.setdefault(("line", _without_offset(one)), [0.0, 0.0])[n] += (one["stall_us"] + one["spin_us"]) / ops
        for name, _, stall, spin, *_ in waiting_functions(p):
            sums.setdefault(("function", name), [0.0, 0.0])[n] += (stall + spin) / ops
    rows = [(kind, name, a, b) for (kind, name), (a, b) in sums.items()]
    return sorted(rows, key=lambda row: (-abs(row[2] - row[3]), row[1]))


def _without_offset(one: dict[str, Any]) -> str:
    """A name that two runs have in common: of a lock without known fields one waits for this byte, the other for that (`tasklist_lock+0x4`)."""
    lock = lock_of(one["name"], one["kind"])
    return lock[0] if lock and "+0x" in one["name"] else str(one["name"])


def differences(run: Run) -> Table:
    """One row per line or function of two kernels that are compared; `kernel` is the first of them."""
    return _table(("against", "kind", "name", "wait_us_per_op", "wait_us_per_op_against"), (
        (*_key(first), second.kernel, *row) for first, second in kernel_pairs(run) for row in wait_per_operation(first, second)))


def point_links(p: Point) -> list[tuple[int, int, float, float]]:
    """(from, to, GB/s, share of time in use), one per direction."""
    window = p.window_fs
    found = []
    for link in (p.machine.get("network") or {}).get("links") or []:
        channels = (link.get("channels") or {}).values()
        if window and "from" in link and "to" in link:
            found.append((int(link["from"]), int(link["to"]), sum(c.get("bytes", 0) for c in channels) / 1e9 / (window / FS_PER_S),
                          sum(c.get("busy_fs", 0) for c in channels) / window))
    return found


def links(run: Run) -> Table:
    """One row per link and direction."""
    return _table(("from", "to", "gb_per_s", "use"), ((*_key(p), *row) for p in run.points for row in point_links(p)))


def point_nodes(p: Point) -> list[tuple[int, float, float]]:
    """(node, GB/s read and written in its DRAM, share of time that its data buses are in use)."""
    found = []
    for n, dram in enumerate(p.machine.get("dram") or []):
        channels = dram.get("channels") or []
        clocks = sum(c.get("clocks", 0) for c in channels)
        moved = sum(c.get("reads", 0) + c.get("writes", 0) for c in channels) * LINE_BYTES
        found.append((n, moved / 1e9 / (p.window_fs / FS_PER_S) if p.window_fs else 0.0,
                      sum(c.get("busy", 0) for c in channels) / clocks if clocks else 0.0))
    return found


def nodes(run: Run) -> Table:
    """One row per node's DRAM."""
    return _table(("node", "gb_per_s", "use"), ((*_key(p), *row) for p in run.points for row in point_nodes(p)))


def filter_outcomes(run: Run) -> Table:
    """One row per home node and what its probe filter decided (`analysis.filters`)."""
    return _table(("node", "outcome", "requests"), ((*_key(p), node, outcome, n) for p in run.points for node, counts in enumerate(filters.by_node(p))
                                                    for outcome, n in zip(filters.OUTCOMES, counts, strict=True)))


# A longer one than this has not come to its end within the windows.
LONGEST_LOG2_NS = 34


def point_latency(p: Point) -> tuple[list[tuple[float, float, int]], int]:
    """[(from ns, to ns, transactions)] in powers of two without empty ends, and how many had no end within the windows."""
    counts = [int(n) for n in p.attribution.get("latency_log2_ns") or []]
    inside, beyond = counts[:LONGEST_LOG2_NS], sum(counts[LONGEST_LOG2_NS:])
    while inside and not inside[-1]:
        inside.pop()
    return [(float(2 ** (b - 1)) if b else 0.0, float(2**b), n) for b, n in enumerate(inside)], beyond


def latency(run: Run) -> Table:
    """One row per power of two of a transaction's latency."""
    return _table(("from_ns", "to_ns", "transactions"), ((*_key(p), *row) for p in run.points for row in point_latency(p)[0]))


def segments(run: Run) -> Table:
    """One row per segment that transactions' latency adds up from."""
    return _table(("segment", "ns_per_transaction"), (
        (*_key(p), s, fs / 1e6 / max(int(p.attribution.get("transactions") or 0), 1))
        for p in run.points for s, fs in (p.attribution.get("segments") or {}).items()))


def misses(run: Run) -> Table:
    """One row per class of miss."""
    return _table(("class", "count", "stall_us"), (
        (*_key(p), k, int(v.get("count", 0)), int(v.get("stall", 0)) / FS_PER_US)
        for p in run.points for k, v in (p.attribution.get("classes") or {}).items()))


ALL: dict[str, Callable[[Run], Table]] = {
    f.__name__: f for f in (points, windows, time_split, names, kinds, lines, moves, moves_by_name, locks, pairs, functions, differences, links, nodes,
                            filter_outcomes, latency,
                            segments, misses)}


def write_csv(run: Run, folder: Path) -> None:
    """Every table as NAME.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in ALL.items():
        table = make(run)
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))
