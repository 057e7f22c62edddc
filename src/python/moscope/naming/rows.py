# SPDX-License-Identifier: BSD-3-Clause
"""The packed rows that the engine hands over (src/attribution/attribution_rows.hh)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASSES = ("cold", "capacity", "upgrade", "true_sharing", "false_sharing")
LINES = np.dtype([("line", "<u8"), ("va", "<u8"), ("address_space", "<u8"), ("stall", "<i8"), ("spin", "<i8"), ("spin_iterations", "<u8"),
                  ("transfers", "<u8"), ("class_stall", "<i8", 5), ("class_count", "<u4", 5), ("offset", "u1"), ("flags", "u1"),
                  ("unused", "<u2"), ("page_flags", "<u8"), ("page_part_of", "<u8"), ("page_index", "<u8"), ("page_type", "<u4"),
                  ("page_before", "<u4"), ("use", "<u4"), ("unused2", "<u4"), ("waiters", "<u8")])
PAIRS = np.dtype([("writer", "<u8"), ("waiter", "<u8"), ("address_space", "<u8"), ("stall", "<i8"), ("spin", "<i8"), ("line", "<u4"),
                  ("count", "<u4"), ("offset", "u1"), ("unused", "u1", 7)])
TRANSFERS = np.dtype([("stall", "<i8"), ("count", "<u8"), ("line", "<u4"), ("supplier", "u1"), ("from", "u1"), ("to", "u1"), ("unused", "u1")])
# Bits of a line's flags.
WALK, FETCH, USER, PAGE_KNOWN = 1, 2, 4, 8
PAGE = ("flags", "part_of", "index", "type", "before")
KERNEL_HALF = 1 << 63

Rows = NDArray[Any]


def unpacked(packed: tuple[bytes, bytes, bytes]) -> tuple[Rows, Rows, Rows]:
    """Lines, pairs and transfers."""
    lines, pairs, transfers = packed
    return np.frombuffer(lines, LINES), np.frombuffer(pairs, PAIRS), np.frombuffer(transfers, TRANSFERS)


def distinct(keys: list[Rows]) -> tuple[Rows, Rows]:
    """For rows of several columns in their order: a row of each distinct key, and the key of each row. It sorts, as numpy's `unique`
    compares records one by one and takes seconds for a million rows."""
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), bool)
    new[:1] = True
    for key in keys:
        new[1:] |= np.diff(key[order]) != 0
    which = np.empty(len(order), np.int64)
    which[order] = np.cumsum(new) - 1
    return order[new], which
