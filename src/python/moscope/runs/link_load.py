# SPDX-License-Identifier: BSD-3-Clause
"""Load of the machine's links over time: links.parquet, of points with recorded transactions. Each window is divided into intervals, at
whose ends the links' counts are read (docs/statistics.md). The machine stops for that as at the end of a window, which alters nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moscope.runs.guest import Guest

NAME, SCHEMA = "links.parquet", "moscope.links/1"
PARTS = 25  # of a window
COLUMNS = ("begin", "length", "from", "to", "bytes", "busy")
Link = tuple[int, int]  # from, to: chips


class LinkLoad:
    """Begins when the engine's counts are zero."""

    def __init__(self, guest: Guest, begin: int) -> None:
        self._guest, self._at = guest, begin
        self._before: dict[Link, tuple[int, int]] = {}
        self._rows: list[tuple[int, ...]] = []
        self._kept = 0

    def until_time(self, tick: int, part: Callable[[int], float]) -> bool:
        """As Guest.until_time, to the end of a window."""
        begin = self._at
        for n in range(1, PARTS + 1):
            at = begin + (tick - begin) * n // PARTS
            whole = self._guest.until_time(at, part)
            self._read(at if whole else int(self._guest.system.counts()["ticks"]))
            if not whole:
                return False
        return True

    def keep(self) -> None:
        """The window counts."""
        self._kept = len(self._rows)

    def _read(self, now: int) -> None:
        stats = json.loads(self._guest.system.stats_json())
        for link in (stats.get("machine", {}).get("network") or {}).get("links") or []:
            key = int(link["from"]), int(link["to"])
            channels = link["channels"].values()
            sums = sum(int(one["bytes"]) for one in channels), sum(int(one["busy_fs"]) for one in channels)
            before = self._before.get(key, (0, 0))
            self._before[key] = sums
            self._rows.append((self._at, now - self._at, *key, sums[0] - before[0], sums[1] - before[1]))
        self._at = now

    def write(self, folder: Path) -> None:
        """A machine without links has no file."""
        import pyarrow
        from pyarrow import parquet

        kept = self._rows[:self._kept]
        if not kept:
            return
        columns: dict[str, Any] = {name: pyarrow.array(values, pyarrow.int64())
                                   for name, values in zip(COLUMNS, zip(*kept, strict=True), strict=True)}
        parquet.write_table(pyarrow.table(columns).replace_schema_metadata({"schema": SCHEMA}), folder / NAME, compression="zstd")
