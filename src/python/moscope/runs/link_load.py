# SPDX-License-Identifier: BSD-3-Clause
"""Load of the machine's links over time: links.parquet, of points with recorded transactions (docs/run-directory.md)."""

import json
from pathlib import Path

from moscope.runs import engine
from moscope.runs.over_time import Rows

NAME, SCHEMA = "links.parquet", "moscope.links/1"
COLUMNS = ("begin", "length", "from", "to", "bytes", "busy")
Link = tuple[int, int]  # from, to: chips


class LinkLoad:
    """Records the load of links. A machine without links has no file."""

    def __init__(self, system: engine.System) -> None:
        self._system = system
        self._before: dict[Link, tuple[int, int]] = {}
        self._rows = Rows(NAME, SCHEMA, COLUMNS)

    def read(self, begin: int, length: int) -> None:
        stats = json.loads(self._system.stats_json())
        for link in (stats.get("machine", {}).get("network") or {}).get("links") or []:
            key = int(link["from"]), int(link["to"])
            channels = link["channels"].values()
            sums = sum(int(one["bytes"]) for one in channels), sum(int(one["busy_fs"]) for one in channels)
            before = self._before.get(key, (0, 0))
            self._before[key] = sums
            self._rows.add(begin, length, *key, sums[0] - before[0], sums[1] - before[1])

    def keep(self) -> None:
        self._rows.keep()

    def write(self, folder: Path) -> None:
        self._rows.write(folder)
