# SPDX-License-Identifier: BSD-3-Clause
"""How long the cores of a point waited for each name of lines because other cores use these lines, too."""

from pathlib import Path

from analysis.database import connect, quoted
from analysis.described import MISS_CLASS

MOST = 20  # names
# A secondary miss waits for an older one of the same name, which is of the kind that the name's others are.
_SHARED = "(true_sharing_stall + false_sharing_stall)"
_OLDER = f"({_SHARED} + cold_stall + capacity_stall)"
_QUERY = f"""
WITH sums AS (SELECT name, sum(spin) AS spin, {", ".join(f"sum({c}_stall) AS {c}_stall" for c in MISS_CLASS.names)}
              FROM read_parquet(FILE) GROUP BY name)
SELECT name, spin + upgrade_stall + {_SHARED} + coalesce(secondary_stall * {_SHARED} / nullif({_OLDER}, 0), 0)
FROM sums WHERE name <> '' ORDER BY 2 DESC, name LIMIT {MOST}"""


def shared(folder: Path) -> dict[str, float] | None:
    """Core time in femtoseconds by name, the longest first: spinning, and stall other than on cold and capacity misses. None for a point
    whose lines are not kept."""
    file = folder / "lines.parquet"
    if not file.is_file():
        return None
    with connect() as connection:
        return {str(name): float(time) for name, time in connection.execute(_QUERY.replace("FILE", quoted(str(file)))).fetchall()}
