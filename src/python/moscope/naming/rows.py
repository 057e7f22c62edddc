# SPDX-License-Identifier: BSD-3-Clause
"""The packed rows that the engine hands over (src/schema/records.py describes them)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moscope.schema import enumerations, records
from moscope.schema.emit import arrow

CLASSES = enumerations.MISS_CLASS.names
LINES, PAIRS, TRANSFERS = (arrow.dtype(record) for record in (records.LINE, records.PAIR, records.TRANSFER))
_flags = next(f for f in records.LINE.fields if f.name == "flags")
WALK, FETCH, USER, PAGE_KNOWN = (_flags.bit(flag) for flag in ("walk", "fetch", "user", "page_known"))
PAGE = tuple(f.name.removeprefix("page_") for f in records.LINE.fields if f.name.startswith("page_"))
DEVICE_PC = records.DEVICE_PC  # the writer of a pair that is a device

Rows = NDArray[Any]
Buffer = bytes | memoryview
PackedRows = tuple[Buffer, Buffer, Buffer]  # lines, pairs, transfers


def unpacked(packed: PackedRows) -> tuple[Rows, Rows, Rows]:
    """Lines, pairs and transfers."""
    lines, pairs, transfers = packed
    return np.frombuffer(lines, LINES), np.frombuffer(pairs, PAIRS), np.frombuffer(transfers, TRANSFERS)


def distinct(keys: list[Rows]) -> tuple[Rows, Rows]:
    """For rows of several columns in their order: a row of each distinct key, and the key of each row. It sorts the columns,
    because numpy's `unique` compares records one by one and takes seconds for a million rows."""
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), bool)
    new[:1] = True
    for key in keys:
        new[1:] |= np.diff(key[order]) != 0
    which = np.empty(len(order), np.int64)
    which[order] = np.cumsum(new) - 1
    return order[new], which
