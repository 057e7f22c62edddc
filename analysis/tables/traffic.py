# SPDX-License-Identifier: BSD-3-Clause
"""Traffic on links and in DRAM, and what the probe filters decided."""

from analysis import filters
from analysis.described import FS_PER_S, LINE
from analysis.run_directory import Point, Run
from analysis.tables.base import Table, key, table


def point_links(p: Point) -> list[tuple[int, int, float, float]]:
    """(from, to, GB/s, share of time in use), one per direction."""
    window = p.window_fs
    found = []
    for link in (p.machine.get("network") or {}).get("links") or []:
        channels = (link.get("channels") or {}).values()
        if window and "from" in link and "to" in link:
            found.append((int(link["from"]), int(link["to"]), sum(c.get("bytes", 0) for c in channels) / 1e9 / (window / FS_PER_S),
                          sum(c.get("busy_fs", 0) for c in channels) / window))
    return found


def links(run: Run) -> Table:
    """One row per link and direction."""
    return table(("from", "to", "gb_per_s", "use"), ((*key(p), *row) for p in run.points for row in point_links(p)))


def point_nodes(p: Point) -> list[tuple[int, float, float]]:
    """(node, GB/s read and written in its DRAM, share of the time in which its data buses are in use)."""
    found = []
    for n, dram in enumerate(p.machine.get("dram") or []):
        channels = dram.get("channels") or []
        clocks = sum(c.get("clocks", 0) for c in channels)
        moved = sum(c.get("reads", 0) + c.get("writes", 0) for c in channels) * LINE
        found.append((n, moved / 1e9 / (p.window_fs / FS_PER_S) if p.window_fs else 0.0,
                      sum(c.get("busy", 0) for c in channels) / clocks if clocks else 0.0))
    return found


def nodes(run: Run) -> Table:
    """One row per node's DRAM."""
    return table(("node", "gb_per_s", "use"), ((*key(p), *row) for p in run.points for row in point_nodes(p)))


def filter_outcomes(run: Run) -> Table:
    """One row per home node and what its probe filter decided (`analysis.filters`)."""
    return table(("node", "outcome", "requests"), (
        (*key(p), node, outcome, n) for p in run.points for names, nodes in [filters.by_node(p)]
        for node, counts in enumerate(nodes) for outcome, n in zip(names, counts, strict=True)))


TABLES = {"links": links, "nodes": nodes, "filter_outcomes": filter_outcomes}
