# SPDX-License-Identifier: BSD-3-Clause
"""How long the cores of a point waited for each name of lines because other cores use these lines, too."""

from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from analysis.database import connect, with_classes
from analysis.described import MISS_CLASS, OLDER, PERMISSION, SHARED, SIZE
from analysis.run_directory import RunDirectoryError
from moscope.parquet import scan


def _stall(*groups: str) -> str:
    return f"({' + '.join(f'{c}_stall' for c in MISS_CLASS.of(*groups))})"


# A secondary miss waits for an older one of the same name. The portion of these on shared lines is that of the name's own loads. If none of
# these has a class, a prefetcher has requested all of the lines: that is a stream.
_QUERY = f"""
WITH sums AS (SELECT name, sum(spin) AS spin, {", ".join(f"sum({c}_stall) AS {c}_stall" for c in MISS_CLASS.names)}
              FROM $lines GROUP BY name)
SELECT name, spin + {_stall(PERMISSION, SHARED)} + later, {_stall(OLDER)}, {_stall(OLDER)} - later
FROM (SELECT *, coalesce({_stall(OLDER)} * {_stall(SHARED)} / nullif({_stall(SHARED, SIZE)}, 0), 0) AS later FROM sums)
ORDER BY 2 DESC, name"""


@dataclass(frozen=True)
class Waits:
    """Core time in femtoseconds. `shared` by name, the longest first: spinning, the stall of upgrades and of loads of shared lines, and
    the same portion of the stall on secondary misses as of that on other loads. `secondary`: the stall on secondary misses of all
    lines, and `of_size` the portion that is on lines that no core shares."""

    shared: dict[str, float] = field(default_factory=dict)
    secondary: float = 0.0
    of_size: float = 0.0


def waits(folder: Path) -> Waits:
    file = folder / "lines.parquet"
    try:
        with connect() as connection:
            rows = connection.execute(_QUERY.replace("$lines", with_classes(scan(file)))).fetchall()
    except duckdb.Error as error:
        raise RunDirectoryError(f"{file}: cannot be read ({str(error).splitlines()[0]}): expected a finished point") from error
    shared = {str(name): float(time) for name, time, *_ in rows if name}
    return Waits(shared, sum(float(r[2]) for r in rows), sum(float(r[3]) for r in rows))
