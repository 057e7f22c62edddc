# SPDX-License-Identifier: BSD-3-Clause
"""Latency of transactions: its distribution, and the segments that the mean adds up from."""

from analysis.run_directory import Point, Run
from analysis.tables.base import Table, key, table

# A longer latency is that of a transaction that did not end within the windows.
LONGEST_LOG2_NS = 34


def point_latency(p: Point) -> tuple[list[tuple[float, float, int]], int]:
    """[(from ns, to ns, transactions)] in powers of two without empty ends, and how many had no end within the windows."""
    counts = [int(n) for n in p.attribution.get("latency_log2_ns") or []]
    inside, beyond = counts[:LONGEST_LOG2_NS], sum(counts[LONGEST_LOG2_NS:])
    while inside and not inside[-1]:
        inside.pop()
    return [(float(2 ** (b - 1)) if b else 0.0, float(2**b), n) for b, n in enumerate(inside)], beyond


def latency(run: Run) -> Table:
    """One row per power of two of a transaction's latency."""
    return table(("from_ns", "to_ns", "transactions"), ((*key(p), *row) for p in run.points for row in point_latency(p)[0]))


def segments(run: Run) -> Table:
    """One row per segment that transactions' latency adds up from."""
    return table(("segment", "ns_per_transaction"), (
        (*key(p), s, fs / 1e6 / max(int(p.attribution.get("transactions") or 0), 1))
        for p in run.points for s, fs in (p.attribution.get("segments") or {}).items()))


TABLES = {"latency": latency, "segments": segments}
