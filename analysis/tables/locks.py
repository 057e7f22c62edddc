# SPDX-License-Identifier: BSD-3-Clause
"""Locks (`analysis.locks` says which names are locks) with the functions that wait for them."""

from analysis.locks import lock_of
from analysis.run_directory import Point, Run
from analysis.tables.base import Row, Table, key, once, share, table
from analysis.tables.names import hot_names

# A line of code has the name of a function: pthread_rwlock_rdlock+0x30. The name does not say that it is no variable's.
CODE = """SELECT DISTINCT entry AS name, kind FROM lines WHERE point = ? AND "fetch" """


@once
def point_locks(p: Point) -> list[Row]:
    """lock, form, lines, wait_share, stall_us, spin_us, transfers, waiters [(function, share)]; the largest first."""
    groups: dict[tuple[str, str], list[Row]] = {}
    code = {(row["name"], row["kind"]) for row in p.database.rows(CODE, p.name)}
    for one in hot_names(p):
        is_code = (one["name"], one["kind"]) in code
        if one["stall_us"] is not None and not is_code and (found := lock_of(one["name"], one["kind"])):
            groups.setdefault(found, []).append(one)
    sums = ("lines", "stall_us", "spin_us", "transfers", "waiting")
    whole = [{"lock": lock, "form": form, **{c: sum(one[c] for one in names) for c in sums},
              "waiters": _waiters(names)} for (lock, form), names in groups.items()]
    return sorted(({**one, "wait_share": share(one["waiting"], p)} for one in whole), key=lambda one: (-one["wait_share"], one["lock"]))


def _waiters(names: list[Row]) -> list[tuple[str, float]]:
    """The waiters of several names, each name's shares weighted by its waiting. If a name has many waiters, its last ones are missing."""
    weights: dict[str, float] = {}
    for one in names:
        for function, part in one["waiters"]:
            weights[function] = weights.get(function, 0.0) + part * one["waiting"]
    whole = sum(one["waiting"] for one in names) or 1
    return [(function, weight / whole) for function, weight in sorted(weights.items(), key=lambda x: (-x[1], x[0]))]


def locks(run: Run) -> Table:
    """One row per lock."""
    columns = ("lock", "form", "lines", "wait_share", "stall_us", "spin_us", "transfers")
    return table((*columns, "waiters"), ((*key(p), *(one[c] for c in columns), "; ".join(f for f, _ in one["waiters"][:5]))
                                         for p in run.points for one in point_locks(p)))


TABLES = {"locks": locks}
