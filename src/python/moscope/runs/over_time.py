# SPDX-License-Identifier: BSD-3-Clause
"""Data that a run records over time: each window is divided into intervals, and counters of the engine are read at the end of
each. The machine stops there as at the end of a window, which does not affect the results."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from moscope.runs.guest import Guest

PARTS = 25  # intervals of a window


class Watched(Protocol):
    """Reads counters and adds one or more rows for each interval. `keep` accepts the rows so far, because their window counts."""

    def read(self, begin: int, length: int) -> None: ...
    def keep(self) -> None: ...
    def write(self, folder: Path) -> None: ...


class OverTime:
    """Drives the recording. It has to be created when the engine's counts are zero; `begin` in femtoseconds."""

    def __init__(self, guest: Guest, begin: int, watched: Sequence[Watched]) -> None:
        self._guest, self._at, self._watched = guest, begin, watched

    def until_time(self, tick: int, part: Callable[[int], float]) -> bool:
        """As Guest.until_time, to the end of a window, with readings at the ends of intervals."""
        if not self._watched:
            return self._guest.until_time(tick, part)
        begin = self._at
        for n in range(1, PARTS + 1):
            at = begin + (tick - begin) * n // PARTS
            whole = self._guest.until_time(at, part)
            now = at if whole else int(self._guest.system.counts()["ticks"])
            for one in self._watched:
                one.read(self._at, now - self._at)
            self._at = now
            if not whole:
                return False
        return True

    def keep(self) -> None:
        """Accepts the rows of the window."""
        for one in self._watched:
            one.keep()

    def write(self, folder: Path) -> None:
        for one in self._watched:
            one.write(folder)


class Rows:
    """Rows of whole numbers; those of accepted windows are written to a file."""

    def __init__(self, name: str, schema: str, columns: Sequence[str]) -> None:
        self._name, self._schema, self._columns = name, schema, columns
        self._rows: list[tuple[int, ...]] = []
        self._kept = 0

    def add(self, *row: int) -> None:
        self._rows.append(row)

    def keep(self) -> None:
        self._kept = len(self._rows)

    def write(self, folder: Path) -> None:
        """Writes the file, unless there are no rows."""
        import pyarrow
        from pyarrow import parquet

        kept = self._rows[:self._kept]
        if not kept:
            return
        columns: dict[str, Any] = {name: pyarrow.array(values, pyarrow.int64())
                                   for name, values in zip(self._columns, zip(*kept, strict=True), strict=True)}
        parquet.write_table(pyarrow.table(columns).replace_schema_metadata({"schema": self._schema}), folder / self._name,
                            compression="zstd")
