# SPDX-License-Identifier: BSD-3-Clause
"""The fields in the hottest lines: a row for each run of bytes with the same name (docs/run-directory.md)."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from moscope.schema.constants import LINE

if TYPE_CHECKING:
    from moscope.naming.columns import Named, Samples
    from moscope.naming.rows import Rows

# How many lines get a layout: those with the most waiting overall, and some of each of the names with the most waiting.
LINES, NAMES, LINES_OF_NAME = 100, 20, 3
DISTANCE = re.compile(r"\+0x([0-9a-f]+)$")
SCHEMA = pa.schema([("line", pa.uint64()), ("use", pa.uint32()), ("first", pa.uint8()), ("bytes", pa.uint8()), ("name", pa.string()),
                    ("kind", pa.string()), ("object", pa.string()), ("type", pa.string())])


def fields(rows: "Rows", samples: "Samples", names: Sequence[tuple[str, str]], which: "Rows") -> pa.Table:
    """The table of fields. `names`: names with their kinds; `which`: for each row, the number of its name."""
    found = [{"line": int(rows["line"][n]), "use": int(rows["use"][n]), **one}
             for n in sorted(chosen(rows, names, which)) for one in runs(samples, n)]
    return pa.Table.from_pylist(found, SCHEMA)


def chosen(rows: "Rows", names: Sequence[tuple[str, str]], which: "Rows") -> set[int]:
    """The numbers of the rows that get a layout."""
    waiting = rows["stall"] + rows["spin"]
    order = np.lexsort((rows["use"], rows["line"], -waiting))
    sums = np.zeros(len(names), np.int64)
    np.add.at(sums, which, waiting.astype(np.int64))
    hottest = sorted(range(len(names)), key=lambda number: (-sums[number], names[number]))[:NAMES]
    ordered = which[order]
    return {int(n) for some in (order[:LINES], *(order[ordered == number][:LINES_OF_NAME] for number in hottest)) for n in some}


def runs(samples: "Samples", n: int) -> Iterator[dict[str, str | int | None]]:
    """The runs of bytes of row `n`. Bytes between two fields form one run, and so does each object without a type."""
    named = [samples.named(n, offset, False) for offset in range(LINE)]
    distances = [int(found[1], 16) if (found := DISTANCE.search(one.name)) else 0 for one in named]
    objects = list(accumulate(map(int.__gt__, distances, distances[1:]), initial=0))  # a distance falls where a new object begins
    for _, run in groupby(range(LINE), lambda offset: (*_same(named[offset]), objects[offset])):
        offsets = list(run)
        one = named[offsets[0]]
        yield {"first": offsets[0], "bytes": len(offsets), "name": one.name, "kind": one.kind, "object": one.object or None,
               "type": one.type or None}


def _same(one: "Named") -> tuple[str, str]:
    """What all bytes of a run have in common."""
    return (one.kind if one.kind == "unknown" else DISTANCE.sub("", one.name), one.kind)
