# SPDX-License-Identifier: BSD-3-Clause
"""All lines of a point by kind of memory (docs/naming.md)."""

from analysis.run_directory import Point, Run
from analysis.tables.base import Row, Table, key, once, share, table, us


@once
def point_kinds(p: Point) -> list[Row]:
    """kind, lines, stall_us, spin_us, wait_share; the largest first."""
    found = p.database.rows("""SELECT kind, sum(lines)::BIGINT AS lines, sum(stall)::BIGINT AS stall, sum(spin)::BIGINT AS spin,
        sum(waiting)::BIGINT AS waiting FROM names WHERE point = ? GROUP BY kind ORDER BY waiting DESC, kind""", p.name)
    return [{**one, "stall_us": us(one["stall"]), "spin_us": us(one["spin"]), "wait_share": share(one["waiting"], p)} for one in found]


def kinds(run: Run) -> Table:
    """One row per kind of memory."""
    columns = ("kind", "lines", "stall_us", "spin_us", "wait_share")
    return table(columns, ((*key(p), *(one[c] for c in columns)) for p in run.points for one in point_kinds(p)))


TABLES = {"kinds": kinds}
