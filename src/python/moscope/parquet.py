# SPDX-License-Identifier: BSD-3-Clause
"""A Parquet file in a query of DuckDB: exactly the file at a path, with its own columns. DuckDB itself takes `*`, `?` and `[` in a
path as a pattern, and a folder called `kernel=pk` as a column."""

import re
from pathlib import Path


def quoted(text: str) -> str:
    """As a string of SQL, for statements that take no parameters."""
    return "'" + text.replace("'", "''") + "'"


def pattern(file: Path) -> str:
    """The pattern that only the path of this file fits."""
    return re.sub(r"[*?[]", r"[\g<0>]", str(file))


def scan(file: Path) -> str:
    """The table, to be put behind FROM."""
    return f"read_parquet({quoted(pattern(file))}, hive_partitioning = false)"
