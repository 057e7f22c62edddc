# SPDX-License-Identifier: BSD-3-Clause
"""A trace for Perfetto or chrome://tracing (Trace Event Format, JSON): transactions as slices, one process per chip and one thread per
core. Transactions of a core that overlap are on threads of their own. Times are microseconds from the first transaction.

Counters are the transactions under way of each chip's cores, and the load of each link in the intervals of links.parquet.
"""

import json
from typing import Any

from analysis.database import connect
from analysis.described import FS_PER_NS, FS_PER_US, SEGMENT
from analysis.exports.base import Export, Slice, recorded, transactions
from analysis.run_directory import Point, RunDirectoryError
from moscope.parquet import scan

MOST = 500_000  # transactions; browsers show a trace of this size
COLUMNS = (*SEGMENT.names, "core", "issued", "latency", "exposed", "line", "kind", "class", "name", "function", "process", "writer",
           "writer_function", "supplier", "supplier_chip", "hops", "buffer_wait")
FIRST = "SELECT min(issued) AS first FROM transactions WHERE NOT buffer_wait"
QUERY = f"""SELECT * FROM transactions WHERE NOT buffer_wait AND issued >= ? AND issued < ? ORDER BY issued, core, line LIMIT {MOST + 1}"""
FOREVER = 2**62
LANES = 64  # threads for each core
LINKS = 1000  # process of the links' counters
UNKNOWN = 1 << 16  # cores of a chip, where the machine is not known: all are in one process


def events(p: Point, part: Slice) -> list[dict[str, Any]]:
    recorded(p, *COLUMNS)
    first = transactions(p, FIRST)[0]["first"]
    if first is None:
        raise RunDirectoryError(f"{p.name}: has no transaction in its windows: expected a point with misses")
    begin = first + part.begin
    rows = transactions(p, QUERY, begin, begin + part.length if part.length is not None else FOREVER)
    if not rows:
        raise RunDirectoryError(f"{p.name}: has no transactions in that time: expected --begin and --length within its windows")
    if len(rows) > MOST:
        raise RunDirectoryError(f"{p.name}: has more than {MOST} transactions in that time: expected a shorter --length")
    per_chip = p.cores_per_chip or UNKNOWN
    found: list[dict[str, Any]] = []
    busy: dict[int, list[int]] = {}
    for row in rows:
        lanes = busy.setdefault(row["core"], [])
        lane = next((n for n, end in enumerate(lanes) if end <= row["issued"]), len(lanes))
        lanes[lane:lane + 1] = [row["issued"] + row["latency"]]
        found.append(_slice(row, begin, row["core"] // per_chip, row["core"] * LANES + min(lane, LANES - 1)))
    end = max(row["issued"] + row["latency"] for row in rows)
    return [*_titles(busy, per_chip), *found, *_counters(rows, begin, per_chip), *_links(p, begin, end)]


def _slice(row: dict[str, Any], begin: int, chip: int, thread: int) -> dict[str, Any]:
    about = {"line": row["name"], "address": f"{row['line']:#x}", "class": row["class"], "access": row["kind"], "source": row.get("source"),
             "inlined": row.get("inlined"), "process": row["process"], "written by": row["writer_function"],
             "writer's source": row.get("writer_source"), "writer's core": row["writer"], "supplier": row["supplier"],
             "supplier's chip": row["supplier_chip"], "hops": row["hops"], "exposed_ns": row["exposed"] / 10**6,
             **{f"{segment}_ns": row[segment] / 10**6 for segment in SEGMENT.names if row[segment]}}
    return {"ph": "X", "pid": chip, "tid": thread, "name": row["function"] or "unknown code", "cat": row["class"],
            "ts": (row["issued"] - begin) / FS_PER_US, "dur": row["latency"] / FS_PER_US,
            "args": {key: value for key, value in about.items() if value is not None}}


def _titles(busy: dict[int, list[int]], per_chip: int) -> list[dict[str, Any]]:
    def title(what: str, chip: int, thread: int, key: str, value: object) -> dict[str, Any]:
        return {"ph": "M", "pid": chip, "tid": thread, "name": what, "args": {key: value}}

    chips = sorted({core // per_chip for core in busy})
    found = [title("process_name", chip, 0, "name", "cores" if per_chip == UNKNOWN else f"chip {chip}") for chip in chips]
    for core, lanes in sorted(busy.items()):
        for lane in range(min(len(lanes), LANES)):
            thread = core * LANES + lane
            name = f"core {core}" + (f", overlapping {lane}" if lane else "")
            found += [title("thread_name", core // per_chip, thread, "name", name),
                      title("thread_sort_index", core // per_chip, thread, "sort_index", thread)]
    return found


def _counters(rows: list[dict[str, Any]], begin: int, per_chip: int) -> list[dict[str, Any]]:
    """The transactions under way of each chip, at each change."""
    changes = sorted([(row["issued"], 1, row["core"] // per_chip) for row in rows]
                     + [(row["issued"] + row["latency"], -1, row["core"] // per_chip) for row in rows])
    now: dict[int, int] = {}
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for tick, change, chip in changes:
        now[chip] = now.get(chip, 0) + change
        found[tick, chip] = {"ph": "C", "pid": chip, "name": "transactions under way", "ts": (tick - begin) / FS_PER_US,
                             "args": {"transactions": now[chip]}}
    return list(found.values())


def _links(p: Point, begin: int, end: int) -> list[dict[str, Any]]:
    """GB/s of each link that carries something between two ticks, in each direction; runs of earlier versions lack them."""
    file = p.database.file(p.name, "links")
    if file is None:
        return []
    rows = connect().execute(f"""
        SELECT "from", "to", begin, length, bytes FROM {scan(file)}
        WHERE begin + length > {begin} AND begin < {end} QUALIFY sum(bytes) OVER (PARTITION BY "from", "to") > 0
        ORDER BY begin, "from", "to" """).fetchall()
    if not rows:
        return []
    found = [{"ph": "M", "pid": LINKS, "tid": 0, "name": "process_name", "args": {"name": "links"}}]
    return found + [{"ph": "C", "pid": LINKS, "name": f"link {one} to {other}", "ts": max(at - begin, 0) / FS_PER_US,
                     "args": {"GB/s": moved * FS_PER_NS / length}} for one, other, at, length, moved in rows if length]


def _files(p: Point, part: Slice) -> dict[str, bytes]:
    document = {"displayTimeUnit": "ns", "otherData": {"workload": p.workload, "kernel": p.kernel, "cores": str(p.cores)},
                "traceEvents": events(p, part)}
    return {"perfetto.json": json.dumps(document, separators=(",", ":")).encode()}


EXPORT = Export("A trace for ui.perfetto.dev or chrome://tracing: transactions by core, load of links.", _files, sliced=True)
