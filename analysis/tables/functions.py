# SPDX-License-Identifier: BSD-3-Clause
"""Functions by their waiting for all lines."""

from analysis.run_directory import Point, Run
from analysis.tables.base import Row, Table, key, once, share, table, us


@once
def waiting_functions(p: Point) -> list[Row]:
    """function, is_kernel, stall_us, spin_us, wait_share, transactions, misses_in_flight; the largest first. The last one is null unless
    the cores overlap their misses."""
    found = p.database.rows("""WITH waited AS (SELECT waiter_function AS function, kernel,
        sum(stall)::BIGINT AS stall, sum(spin)::BIGINT AS spin, sum(waiting)::BIGINT AS waiting,
        sum(count)::BIGINT AS transactions FROM pairs WHERE point = $1 GROUP BY ALL)
        SELECT w.* EXCLUDE (kernel), w.kernel AS is_kernel, l.latency / nullif(l.occupied, 0) AS misses_in_flight
        FROM waited w LEFT JOIN loads l ON l.point = $1 AND l.function = w.function AND l.kernel = w.kernel
        ORDER BY waiting DESC, w.function, w.kernel""", p.name)
    return [{**one, "stall_us": us(one["stall"]), "spin_us": us(one["spin"]), "wait_share": share(one["waiting"], p)} for one in found]


def functions(run: Run) -> Table:
    """One row per function that waited."""
    columns = ("function", "is_kernel", "stall_us", "spin_us", "wait_share", "transactions", "misses_in_flight")
    return table(columns, ((*key(p), *(one[c] for c in columns)) for p in run.points for one in waiting_functions(p)))


TABLES = {"functions": functions}
