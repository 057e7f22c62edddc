# SPDX-License-Identifier: BSD-3-Clause
"""Memory-level parallelism by function: loads.parquet, for points whose cores overlap their misses
(src/attribution/loads_in_flight.hh)."""

from pathlib import Path
from typing import Any

from moscope.guest.addresses import KERNEL_HALF
from moscope.naming.namer import Namer
from moscope.schema import records
from moscope.schema.emit import arrow

NAME, SCHEMA = "loads.parquet", "moscope.loads/1"
RECORD = arrow.dtype(records.LOAD)


def write(folder: Path, packed: bytes, namer: Namer) -> dict[str, float]:
    """Writes the file and returns its figures for point.json; nothing for cores that have one load under way at a time."""
    from pyarrow import parquet

    if not packed:
        return {}
    made = table(packed, namer)
    parquet.write_table(made.replace_schema_metadata({"schema": SCHEMA}), folder / NAME, compression="zstd")
    occupied = sum(made["occupied"].to_pylist())
    return {"misses_in_flight": sum(made["latency"].to_pylist()) / occupied} if occupied else {}


def table(packed: bytes, namer: Namer) -> Any:
    """One row per function, those with the most latency first."""
    import numpy
    import pyarrow

    sums: dict[tuple[str, bool], list[int]] = {}
    for pc, space, *counts in numpy.frombuffer(packed, RECORD)[["pc", "address_space", "loads", "latency", "occupied"]].tolist():
        of = sums.setdefault((namer.code(pc, space), pc >= KERNEL_HALF), [0, 0, 0])
        for n, count in enumerate(counts):
            of[n] += count
    ordered = sorted(sums.items(), key=lambda row: (-row[1][1], row[0]))
    return pyarrow.table({
        "function": pyarrow.array([name for (name, _), _ in ordered], pyarrow.string()),
        "kernel": pyarrow.array([kernel for (_, kernel), _ in ordered], pyarrow.bool_()),
        **{column: pyarrow.array([counts[n] for _, counts in ordered], pyarrow.int64())
           for n, column in enumerate(("loads", "latency", "occupied"))},
    })
