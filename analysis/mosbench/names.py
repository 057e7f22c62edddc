# SPDX-License-Identifier: BSD-3-Clause
"""How long the cores of a point waited for each name of lines because other cores use these lines, too."""

from pathlib import Path

import duckdb

from analysis.database import connect, quoted
from analysis.described import MISS_CLASS
from analysis.run_directory import RunDirectoryError

MOST = 20  # names
# A secondary miss waits for an older one of the same name. The name's own loads say what portion of these is on shared lines.
_SHARED = "(true_sharing_stall + false_sharing_stall)"
_OLDER = f"({_SHARED} + cold_stall + capacity_stall)"
_QUERY = f"""
WITH sums AS (SELECT name, sum(spin) AS spin, {", ".join(f"sum({c}_stall) AS {c}_stall" for c in MISS_CLASS.names)}
              FROM read_parquet(FILE) GROUP BY name)
SELECT name, spin + upgrade_stall + {_SHARED} + coalesce(secondary_stall * {_SHARED} / nullif({_OLDER}, 0), 0)
FROM sums WHERE name <> '' ORDER BY 2 DESC, name LIMIT {MOST}"""


def shared(folder: Path) -> dict[str, float]:
    """Core time in femtoseconds by name, the longest first: spinning, the stall of upgrades and of loads of shared lines, and the same
    portion of the stall on secondary misses as of that on other loads."""
    file = folder / "lines.parquet"
    try:
        with connect() as connection:
            return {str(name): float(time) for name, time in connection.execute(_QUERY.replace("FILE", quoted(str(file)))).fetchall()}
    except duckdb.Error as error:
        raise RunDirectoryError(f"{file}: cannot be read ({str(error).splitlines()[0]}): expected a finished point") from error
