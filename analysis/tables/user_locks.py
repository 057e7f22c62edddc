# SPDX-License-Identifier: BSD-3-Clause
"""Locks of user programs (analysis/user_locks.py); of points with recorded transactions."""

from analysis import user_locks
from analysis.described import FS_PER_NS, FS_PER_US
from analysis.run_directory import Point, Run
from analysis.tables.base import Row, Table, key, once, table


@once
def point_user_locks(p: Point) -> list[Row]:
    """Times by their unit; the largest first. Without recorded transactions, or with those of earlier versions, there are none."""
    if not user_locks.known(p):
        return []
    return [{**one, "stall_us": one["stall"] / FS_PER_US, "spin_us": one["spin"] / FS_PER_US, "futex_us": one["futex_stall"] / FS_PER_US,
             **{f"{name}_ns": None if one[name] is None else one[name] / FS_PER_NS for name in ("held", "waited", "waited_longest")}}
            for one in user_locks.locks(p)]


COLUMNS = ("name", "kind", "type", "virtual_address", "wait_share", "stall_us", "spin_us", "cores", "acquisitions", "repeated",
           "futex_waits", "futex_us", "held_ns", "held_known", "waited_ns", "waited_longest_ns", "waiters", "handoffs", "hops")


def locks_of_programs(run: Run) -> Table:
    """One row per lock."""
    return table(COLUMNS, ((*key(p), *(one[c] for c in COLUMNS)) for p in run.points for one in point_user_locks(p)))


TABLES = {"user_locks": locks_of_programs}
