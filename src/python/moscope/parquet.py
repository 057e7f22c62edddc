# SPDX-License-Identifier: BSD-3-Clause
"""A Parquet file in a query of DuckDB: exactly the file at a path, with its own columns. DuckDB itself takes `*`, `?` and `[` in a
path as a pattern, and a folder called `kernel=pk` as a column."""

import re
from collections.abc import Mapping
from pathlib import Path

from moscope.schema.describe import Table

WHOLE, TEXT, TRUTH = "whole numbers", "text", "true or false"
INTEGER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER")


def quoted(text: str) -> str:
    """As a string of SQL, for statements that take no parameters."""
    return "'" + text.replace("'", "''") + "'"


def pattern(file: Path) -> str:
    """The pattern that only the path of this file fits."""
    return re.sub(r"[*?[]", r"[\g<0>]", str(file))


def scan(file: Path) -> str:
    """The table, to be put behind FROM."""
    return f"read_parquet({quoted(pattern(file))}, hive_partitioning = false)"


def holds(kind: str) -> str:
    """The contents of a column, from its DuckDB type; empty for a column without values, whose type is arbitrary."""
    if kind.endswith("[]"):
        return f"lists of {holds(kind[:-2]) or 'nothing'}"
    if INTEGER.fullmatch(kind):
        return WHOLE
    return {"VARCHAR": TEXT, "BOOLEAN": TRUTH, '"NULL"': ""}.get(kind, kind)


def held(table: Table) -> dict[str, str]:
    """The contents of each column of a described file."""
    return {column.name: {"text": TEXT, "bool": TRUTH}.get(column.type, WHOLE) for column in table.columns}


def unreadable(file: Path, wanted: Mapping[str, str], needed: tuple[str, ...] = ()) -> str:
    """Why a file cannot be used: it is not Parquet, it lacks one of the `needed` columns, or the type of a column differs from
    `wanted`. Empty if the file can be used."""
    import duckdb

    columns = "".join(f', "{column}"' for column in needed)
    try:
        found = duckdb.execute(f"SELECT *{columns} FROM {scan(file)} LIMIT 0").description or ()
    except duckdb.Error as error:
        return str(error).splitlines()[0]
    for column in found:
        name, kind = str(column[0]), holds(str(column[1]))
        if kind and kind != wanted.get(name, kind):
            return f'column "{name}" holds {kind}, not {wanted[name]}'
    return ""
