# SPDX-License-Identifier: BSD-3-Clause
"""The tables of `perf c2c report` as CSV: shared data cache lines, and the offsets in each (perf-c2c(1), C2C REPORT).

Records are recorded transactions, all of them and not samples; a locked operation is a load and a store. Hits in the L1 are no
transactions, so these columns are empty. A secondary miss, which an older access of the core serves, is a hit in a fill buffer. A HITM
is a load that another core's cache answers with a line that another core has written. Nodes are chips.
"""

import csv
import io
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from analysis.described import DEVICE, FS_PER_S, WRITES
from analysis.exports.base import Export, Slice, recorded, transactions
from analysis.run_directory import Point, RunDirectoryError
from analysis.tables.transfers import role_of

LINES = 500
# Of each transaction where the line came from. `per` of suppliers is core, chip or node, by the protocol's interface.
RECORDS = """
    WITH placed AS (
        SELECT *, core // {per_chip} AS chip, kind IN ('load', 'rmw') AS loads, kind IN {writes} AS stores,
               supplier_chip IS NOT NULL AND NOT coalesce(supplier IN {cores} AND supplier_number = core, false) AS moved,
               supplier IN {cores} AND coalesce(writer NOT IN (core, {device}), false) AS dirty, supplier IN {homes} AS home,
               supplier_chip = core // {per_chip} AS near
        FROM transactions WHERE NOT buffer_wait AND NOT walk AND kind <> 'fetch'),
    counted AS (
        SELECT *, loads AND moved AND dirty AND near AS lcl_hitm, loads AND moved AND dirty AND NOT near AS rmt_hitm,
               loads AND moved AND NOT dirty AND NOT home AND near AS llc_hit,
               loads AND moved AND NOT dirty AND NOT home AND NOT near AS rmt_hit,
               loads AND moved AND home AND near AS lcl_dram, loads AND moved AND home AND NOT near AS rmt_dram,
               loads AND NOT moved AND NOT {secondary} AS l2,
               loads AND {secondary} AS fb
        FROM placed),
    hottest AS (SELECT line FROM counted GROUP BY line
                ORDER BY count(*) FILTER ({hitm}) DESC, count(*) FILTER (loads) + count(*) FILTER (stores) DESC, line LIMIT {most}),
    sums AS (SELECT {key}, {first_name} AS name, count(DISTINCT core) AS cpus, list_sort(list(DISTINCT core)) AS cores,
           {first_function} AS function, {first_process} AS process, {source} AS source,
           {sums}, {cycles} FROM counted WHERE line IN (SELECT line FROM hottest) GROUP BY ALL)
    SELECT *, (SELECT count(*) FILTER ({hitm}) FROM counted) AS hitms FROM sums ORDER BY {order}"""
COLUMNS = ("core", "issued", "latency", "line", "va", "pc", "kind", "name", "function", "process", "writer", "supplier", "supplier_number",
           "supplier_chip", "buffer_wait", "walk")
COUNTS = ("loads", "stores", "lcl_hitm", "rmt_hitm", "llc_hit", "rmt_hit", "lcl_dram", "rmt_dram", "l2", "fb")
CYCLES = ("rmt_hitm", "lcl_hitm", "loads")
HITM = "lcl_hitm OR rmt_hitm"

LINE_HEAD = ("Index", "Cacheline", "Hitm %", "LLC Load Hitm Total", "LLC Load Hitm LclHitm", "LLC Load Hitm RmtHitm", "Total records",
             "Total loads", "Total stores", "Stores L1Hit", "Stores L1Miss", "Stores N/A", "Core Load Hit FB", "Core Load Hit L1",
             "Core Load Hit L2", "LLC Load Hit LlcHit", "LLC Load Hit LclHitm", "RMT Load Hit RmtHit", "RMT Load Hit RmtHitm",
             "Load Dram Lcl", "Load Dram Rmt", "cpu cnt", "Name")
OFFSET_HEAD = ("Index", "Cacheline", "HITM % Rmt", "HITM % Lcl", "Store Refs % L1 Hit", "Store Refs % L1 Miss", "Store Refs % N/A",
               "Offset", "Process", "Code address", "cycles rmt hitm",
               "cycles lcl hitm", "cycles load", "Total records", "cpu cnt", "Symbol",
               "Source:Line", "Node{cpus}", "Name")


def records(p: Point, key: str, order: str) -> list[dict[str, Any]]:
    """Of the lines of the tables; a point can have millions of others. `hitms` are those of all lines."""
    recorded(p, *COLUMNS)
    suppliers = p.database.rows("SELECT DISTINCT supplier, supplier_role, supplier_per FROM transfers WHERE point = ?", p.name)
    roles = {row["supplier"]: role_of(row) for row in suppliers}
    known = columns(p)
    query = RECORDS.format(
        key=key, order=order, writes=WRITES, per_chip=_per_chip(p), device=DEVICE, hitm=HITM, most=LINES,
        **{f"first_{column}": _first(column) for column in ("name", "function", "process")},
        source=_first("source") if "source" in known else "NULL",
        secondary="secondary_miss" if "secondary_miss" in known else "false",
        cores=_listed(kind for kind, role in roles.items() if role == ("cache", "core")),
        homes=_listed(kind for kind, (role, _) in roles.items() if role == "home"),
        sums=", ".join(f"count(*) FILTER ({count})::BIGINT AS {count}" for count in COUNTS),
        cycles=", ".join(f"avg(latency) FILTER ({count}) AS {count}_fs" for count in CYCLES))
    return transactions(p, query)


def _per_chip(p: Point) -> int:
    if p.cores_per_chip is None:
        raise RunDirectoryError(f"{p.name}: run.json, which gives the chip of each core, is missing: expected a run that has ended")
    return p.cores_per_chip


def _first(column: str) -> str:
    """Of several values, that of the first transaction that has one: the table is the same each time."""
    return f"arg_min({column}, (issued, core, pc, {column}))"


def columns(p: Point) -> set[str]:
    return {row["column_name"] for row in transactions(p, "DESCRIBE transactions")}


def _listed(words: Iterable[str]) -> str:
    return "(" + ", ".join("'" + word.replace("'", "''") + "'" for word in [*words, ""]) + ")"


def tables(p: Point) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Rows of the lines and of their offsets, with the most HITMs first."""
    lines = records(p, "line", "lcl_hitm + rmt_hitm DESC, loads + stores DESC, line")
    index = {row["line"]: n for n, row in enumerate(lines)}
    offsets = records(p, 'line, (va % 64)::INTEGER AS "at", pc', 'lcl_hitm + rmt_hitm DESC, loads + stores DESC, line, "at", pc')
    offsets.sort(key=lambda row: index[row["line"]])
    return ([_line(n, row) for n, row in enumerate(lines)],
            [_offset(p, index[row["line"]], row, lines[index[row["line"]]]) for row in offsets])


def _line(n: int, row: dict[str, Any]) -> tuple[Any, ...]:
    own = row["lcl_hitm"] + row["rmt_hitm"]
    return (n, f"{row['line']:#x}", _percent(own, row["hitms"]), own, row["lcl_hitm"], row["rmt_hitm"], row["loads"] + row["stores"],
            row["loads"], row["stores"], "", row["stores"], "", row["fb"], "", row["l2"], row["llc_hit"], row["lcl_hitm"], row["rmt_hit"],
            row["rmt_hitm"], row["lcl_dram"], row["rmt_dram"], row["cpus"], row["name"])


def _offset(p: Point, n: int, row: dict[str, Any], line: dict[str, Any]) -> tuple[Any, ...]:
    cycles = (round(Fraction(row[f"{count}_fs"]) * p.core_hz / FS_PER_S) if row[f"{count}_fs"] else "" for count in CYCLES)
    nodes: dict[int, list[int]] = {}
    for core in row["cores"]:
        nodes.setdefault(core // _per_chip(p), []).append(core)
    said = " ".join(f"{node}{{{','.join(map(str, found))}}}" for node, found in sorted(nodes.items()))
    return (n, f"{row['line']:#x}", _percent(row["rmt_hitm"], line["rmt_hitm"]), _percent(row["lcl_hitm"], line["lcl_hitm"]), "",
            _percent(row["stores"], line["stores"]), "", f"{row['at']:#x}", row["process"], f"{row['pc']:#x}", *cycles,
            row["loads"] + row["stores"], row["cpus"], row["function"], row["source"], said, row["name"])


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.2f}%"


def _csv(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue().encode()


def _files(p: Point, _: Slice) -> dict[str, bytes]:
    lines, offsets = tables(p)
    return {"c2c-lines.csv": _csv(LINE_HEAD, lines), "c2c-offsets.csv": _csv(OFFSET_HEAD, offsets)}


EXPORT = Export("The tables of perf c2c report as CSV, from recorded transactions.", _files)
