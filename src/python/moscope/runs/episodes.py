# SPDX-License-Identifier: BSD-3-Clause
"""Episodes: for each of the point's hottest names, some tens of consecutive transactions of one of its lines, with the columns of
transactions.parquet. The engine keeps them for the lines with the most transactions (src/attribution/episodes.hh)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moscope.runs import transactions

if TYPE_CHECKING:
    from analysis.database import Database

NAME, SCHEMA = "episodes.parquet", "moscope.episodes/1"
NAMES = 10
ENOUGH = 8  # transactions that are enough for a line's episode
LINES = f"""
    WITH hottest AS (SELECT name, kind, row_number() OVER (ORDER BY waiting DESC, name, kind) AS rank FROM names
                     ORDER BY rank LIMIT {NAMES})
    SELECT rank, line, use FROM lines JOIN hottest ON entry = hottest.name AND lines.kind = hottest.kind
    WHERE line IN (SELECT unnest(?::UBIGINT[]))
    ORDER BY rank, waiting DESC, line, use"""


def write(folder: Path, raw: bytes, database: "Database", suppliers: Sequence[str], states: Mapping[str, Sequence[str]],
          named: transactions.Naming) -> int:
    """Writes the file from the engine's records; returns the number of rows."""
    import numpy
    from pyarrow import parquet

    records = numpy.frombuffer(raw, transactions.RECORD)
    chosen = [records[numpy.flatnonzero((records["line"] == line) & (records["use"] == use))]
              for line, use in _lines(records, database.rows(LINES, numpy.unique(records["line"]).tolist()))]
    block = numpy.concatenate([episode[numpy.argsort(episode["done"], kind="stable")] for episode in chosen] or [records[:0]])
    made = transactions.table(block, suppliers, states, named)
    parquet.write_table(made.replace_schema_metadata({"schema": SCHEMA}), folder / NAME, compression="zstd")
    return len(block)


def _lines(records: Any, candidates: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """A line for each name: the most expensive one that has enough transactions; if none has, the line with the most
    transactions."""
    counts: dict[tuple[int, int], int] = {}
    for key in zip(records["line"].tolist(), records["use"].tolist(), strict=True):
        counts[key] = counts.get(key, 0) + 1
    best: dict[int, tuple[int, tuple[int, int]]] = {}
    for one in candidates:
        key = (int(one["line"]), int(one["use"]))
        count = min(counts.get(key, 0), ENOUGH)
        if count > best.get(one["rank"], (0, key))[0]:
            best[one["rank"]] = (count, key)
    return [best[rank][1] for rank in sorted(best)]
