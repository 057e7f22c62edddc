# SPDX-License-Identifier: BSD-3-Clause
"""What differs between two kernels: waiting per operation by line and by function."""

from analysis.locks import lock_of
from analysis.run_directory import Point, Run
from analysis.tables.base import Row, Table, key, table
from analysis.tables.functions import waiting_functions
from analysis.tables.names import hot_names

PAPERS = {"stock", "pk"}  # the kernels that the paper compares


def kernel_pairs(run: Run) -> list[tuple[Point, Point]]:
    """For each workload measured on several kernels, the two to compare, on the most cores that both have: stock and pk
    where they are there, else the first two; each in the order of the run."""
    found = []
    for workload in dict.fromkeys(p.workload for p in run.points):
        kernels = {k: points for (w, k), points in run.series().items() if w == workload}
        pair = tuple(k for k in kernels if k in PAPERS) if kernels.keys() >= PAPERS else tuple(kernels)[:2]
        if len(pair) < 2:
            continue
        first, second = ({p.cores: p for p in kernels[k]} for k in pair)
        if common := first.keys() & second.keys():
            found.append((first[max(common)], second[max(common)]))
    return found


def wait_per_operation(first: Point, second: Point) -> list[tuple[str, str, float, float]]:
    """(line or function, name, µs of stall and spinning per operation in the first, in the second), the largest difference
    first. If one of them lacks a name, its waiting for the name is 0."""
    sums: dict[tuple[str, str], list[float]] = {}
    for n, p in enumerate((first, second)):
        ops = p.number("ops") or 0.0
        if not ops:
            return []
        for kind, name, row in (*(("line", without_offset(one), one) for one in hot_names(p)),
                                *(("function", str(one["function"]), one) for one in waiting_functions(p))):
            if row["stall_us"] is not None:
                sums.setdefault((kind, name), [0.0, 0.0])[n] += (row["stall_us"] + row["spin_us"]) / ops
    rows = [(kind, name, a, b) for (kind, name), (a, b) in sums.items()]
    return sorted(rows, key=lambda row: (-abs(row[2] - row[3]), row[1]))


def without_offset(one: Row) -> str:
    """A name that two runs have in common: if the fields of a lock are not known, the runs may wait for different bytes of it
    (`tasklist_lock+0x4`)."""
    lock = lock_of(one["name"], one["kind"])
    return lock[0] if lock and "+0x" in one["name"] else str(one["name"])


def differences(run: Run) -> Table:
    """One row per line or function of two kernels that are compared; `kernel` is the first of them."""
    return table(("against", "kind", "name", "wait_us_per_op", "wait_us_per_op_against"), (
        (*key(first), second.kernel, *row) for first, second in kernel_pairs(run) for row in wait_per_operation(first, second)))


TABLES = {"differences": differences}
