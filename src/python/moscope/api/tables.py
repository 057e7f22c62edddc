# SPDX-License-Identifier: BSD-3-Clause
"""Arrow tables with a fixed schema, from rows: `.to_pandas()` makes a pandas data frame of one, `polars.from_arrow` a polars one."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow

Rows = Iterable[Mapping[str, Any]]
TYPES = {"string": pyarrow.string(), "int": pyarrow.int64(), "float": pyarrow.float64(), "bool": pyarrow.bool_(),
         "strings": pyarrow.list_(pyarrow.string())}


def table(columns: Mapping[str, str], rows: Rows) -> pyarrow.Table:
    """`columns`: names and types (string, int, float, bool, strings). Values that a row lacks are null; values without a column are
    dropped."""
    schema = pyarrow.schema([(name, TYPES[kind]) for name, kind in columns.items()])
    return pyarrow.Table.from_pylist([dict(row) for row in rows], schema=schema)
