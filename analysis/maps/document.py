# SPDX-License-Identifier: BSD-3-Clause
"""Maps of the lines of one name as a JSON object (`moscope.map/1`). Waiting is in femtoseconds, shares are of the line's waiting."""

from dataclasses import asdict
from typing import Any

from analysis.maps.advice import advice
from analysis.maps.line_map import Area, Byte, Code, LineMap, maps_of
from analysis.run_directory import Point

SCHEMA = "moscope.map/1"


def document(p: Point, name: str, kind: str) -> dict[str, Any]:
    return {"schema": SCHEMA, "ok": True, "workload": p.workload, "kernel": p.kernel, "cores": p.cores, "name": name, "kind": kind,
            "lines": [_line(one) for one in maps_of(p, name, kind)]}


def _line(one: LineMap) -> dict[str, Any]:
    row = one.line
    return {"address": f"{row['line']:#x}", "use": row["use"], "object": row["object"] or "", "class": row["class"], "waiting": one.waiting,
            "wait_share": one.waiting / one.whole if one.whole else 0.0, "transactions": row["transfers"],
            "recorded": one.sample, "all_recorded": one.complete,
            "bytes": [_byte(one, byte) for byte in one.bytes],
            "unplaced_writers": [_code(code) for code in one.unplaced],
            "fields": [_area(one, area) for area in one.areas], "advice": [asdict(found) for found in advice(one)]}


def _byte(one: LineMap, byte: Byte) -> dict[str, Any]:
    return {"at": byte.at, "stall": byte.stall, "spin": byte.spin, "transactions": byte.transactions, "written": byte.written,
            "functions": sorted(byte.functions), "cores": sorted(byte.cores), "waiting": byte.waiting, "share": one.share(byte.waiting)}


def _area(one: LineMap, area: Area) -> dict[str, Any]:
    return {"first": area.first, "bytes": area.bytes, "name": area.name, "kind": area.kind, "object": area.object, "type": area.type,
            "waiting": area.waiting, "share": one.share(area.waiting), "transactions": area.transactions, "written": area.written,
            "waited_at": [_code(code) for code in area.waits], "written_at": [_code(code) for code in area.writes],
            "reading_cores": sorted(area.readers), "writing_cores": sorted(area.writers)}


def _code(code: Code) -> dict[str, Any]:
    return asdict(code)
