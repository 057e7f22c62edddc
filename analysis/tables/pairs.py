# SPDX-License-Identifier: BSD-3-Clause
"""Pairs (writer, waiter) of functions over all lines."""

from analysis.run_directory import Point, Run
from analysis.tables.base import NO_WRITER, Row, Table, key, once, share, table, us


@once
def point_pairs(p: Point) -> list[Row]:
    """writer, waiter, waiting (fs); the largest first. `NO_WRITER` where no other core had written the line last."""
    return p.database.rows(f"""SELECT coalesce(writer_function, '{NO_WRITER}') AS writer, waiter_function AS waiter,
        sum(waiting)::BIGINT AS waiting FROM pairs WHERE point = ? GROUP BY ALL ORDER BY waiting DESC, writer, waiter""", p.name)


def pairs(run: Run) -> Table:
    """One row per pair of functions."""
    return table(("writer", "waiter", "wait_us", "wait_share"), (
        (*key(p), one["writer"], one["waiter"], us(one["waiting"]), share(one["waiting"], p))
        for p in run.points for one in point_pairs(p)))


TABLES = {"pairs": pairs}
