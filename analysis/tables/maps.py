# SPDX-License-Identifier: BSD-3-Clause
"""The maps of the hottest names' lines (analysis/maps): by byte, by field, and the advice that follows."""

from collections.abc import Iterator

from analysis.maps import LineMap, maps_of
from analysis.maps.advice import advice as advice_of
from analysis.maps.text import code, cores
from analysis.run_directory import Point, Run
from analysis.tables.base import Table, key, table, us
from analysis.tables.names import hot_names

NAMES = 20


def maps(p: Point) -> Iterator[tuple[tuple[str, str, str], LineMap]]:
    """(name, kind, address) and map of the hottest lines of the hottest names."""
    for one in hot_names(p)[:NAMES]:
        for found in maps_of(p, one["name"], one["kind"]):
            yield (one["name"], one["kind"], f"{found.line['line']:#x}"), found


def line_bytes(run: Run) -> Table:
    """One row per byte at which accesses begin."""
    return table(("name", "kind", "address", "byte", "wait_share_of_line", "stall_us", "spin_us", "transactions", "written"), (
        (*key(p), *where, byte.at, one.share(byte.waiting), us(byte.stall), us(byte.spin), byte.transactions, byte.written)
        for p in run.points for where, one in maps(p) for byte in one.bytes if byte.waiting or byte.transactions or byte.written))


def line_fields(run: Run) -> Table:
    """One row per field with accesses."""
    return table(("name", "kind", "address", "first", "bytes", "field", "type", "object", "wait_share_of_line", "transactions", "written",
                  "waited_at", "written_at", "reading_cores", "writing_cores"), (
        (*key(p), *where, area.first, area.bytes, area.name, area.type, area.object, one.share(area.waiting), area.transactions,
         area.written, code(area.waits), code(area.writes), cores(area.readers), cores(area.writers))
        for p in run.points for where, one in maps(p) for area in one.used))


def advice(run: Run) -> Table:
    """One row per line and rule that holds."""
    return table(("name", "kind", "address", "rule", "advice", "fields"), (
        (*key(p), *where, found.kind, found.text, "; ".join(found.fields))
        for p in run.points for where, one in maps(p) for found in advice_of(one)))


TABLES = {"line_bytes": line_bytes, "line_fields": line_fields, "advice": advice}
