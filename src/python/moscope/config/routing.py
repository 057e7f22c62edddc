# SPDX-License-Identifier: BSD-3-Clause
"""Routing tables: the next chip for each chip and destination.

HyperTransport routes by destination, and every virtual channel waits only for buffers of its own channel. The
channel-dependency graph (Dally and Seitz, 1987) has the links as nodes, and an edge from one link to another if a packet can
hold the first and wait for the second. A channel cannot deadlock if this graph has no cycle. All channels use the same table,
so one check covers all.

Methods: "shortest" searches the shortest paths for a choice without a cycle, and among such choices for one that spreads the
load. Some graphs have none: the twisted ladder has two rings of five, each with forced turns all around. Its BIOS tables also
send four pairs of chips over three hops instead of two (x: AMD AGESA). "up_down" orders the chips from a root and never goes
up after it went down; it always succeeds. "auto", the default, takes shortest paths if possible; otherwise it starts from
up_down, and shortens and spreads its paths. The machine can also give the table itself.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from moscope.schema.errors import ConfigError

from .topology import Edge, distances, neighbours

Table = list[list[int]]
Link = tuple[int, int]

_SEARCH_STEPS = 50_000  # of the backtracking search; the eight-chip graphs need a few hundred
_BALANCE_CHIPS = 16  # above this, balancing the load costs more time than a start should take


@dataclass(frozen=True)
class Routing:
    """`auto`, `shortest`, `up_down`, or `table` with rows of next chips."""

    kind: str = "auto"
    rows: tuple[tuple[int, ...], ...] = ()
    source: str = ""

    @staticmethod
    def parse(value: Any, source: str = "") -> Routing:
        right = 'auto, shortest, up_down, or one row per chip with the next chip towards each destination'
        if isinstance(value, Routing):
            return value
        if isinstance(value, str):
            if value not in ("auto", "shortest", "up_down"):
                raise ConfigError(f"routing: {value!r:.40} is not known", right)
            return Routing(value, (), source)
        try:
            rows = tuple(tuple(row) for row in value)
        except TypeError:
            raise ConfigError(f"routing: {value!r:.40} is not a table", right) from None
        if any(isinstance(n, bool) or not isinstance(n, int) for row in rows for n in row):
            raise ConfigError("routing: an entry of the table is not a chip number", right)
        return Routing("table", rows, source)

    def __str__(self) -> str:
        return self.kind


def compute(routing: Routing, edges: Sequence[Edge], chips: int, weights: dict[Link, Fraction] | None = None) -> Table:
    """The routing table of a connected graph. `weights` is the time per byte on each link, for spreading the load. Raises a
    ConfigError that names the links of a cycle."""
    if routing.kind == "table":
        return _given(routing.rows, edges, chips)
    times = tuple(sorted((weights or {}).items()))
    return [list(row) for row in _computed(routing.kind, tuple(edges), chips, times)]


@functools.lru_cache(maxsize=64)
def _computed(kind: str, edges: tuple[Edge, ...], chips: int, times: tuple[tuple[Link, Fraction], ...]) -> Table:
    # Floats are exact enough to compare loads, and a hundred times faster than fractions.
    weights = {link: float(time) for link, time in times}
    if kind == "up_down":
        return min(up_down(edges, chips), key=lambda t: _cost(t, weights))
    table = shortest(edges, chips, weights)
    if table is not None:
        return table
    if kind == "auto":
        return _detours(edges, chips, weights)
    plain = [[min(choice) for choice in row] for row in _shortest_options(edges, chips)]
    cycle = find_cycle(dependencies(plain))
    assert cycle is not None
    raise ConfigError(
        "routing: no choice of shortest paths is free of dependency cycles, which can deadlock; "
        f"one such cycle of links is {cycle_text(cycle)}",
        "routing=auto or up_down (some paths get longer), a table, or other edges",
    )


# --- dependencies ---------------------------------------------------------------------------------


def dependencies(table: Table) -> dict[Link, set[Link]]:
    """Channel-dependency graph: for each directed link, the links that its packets take next."""
    graph: dict[Link, set[Link]] = {}
    for here, row in enumerate(table):
        for dest, there in enumerate(row):
            if there == here:
                continue
            follow = graph.setdefault((here, there), set())
            if there != dest:
                follow.add((there, table[there][dest]))
    return graph


def find_cycle(graph: dict[Link, set[Link]]) -> list[Link] | None:
    """A cycle of the graph as a list of links, or None."""
    state: dict[Link, int] = {}
    for root in sorted(graph):
        if root in state:
            continue
        path: list[Link] = []
        stack: list[tuple[Link, Iterable[Link]]] = [(root, iter(sorted(graph[root])))]
        state[root] = 1
        path.append(root)
        while stack:
            link, rest = stack[-1]
            for following in rest:
                seen = state.get(following, 0)
                if seen == 1:
                    return path[path.index(following) :]
                if seen == 0:
                    state[following] = 1
                    path.append(following)
                    stack.append((following, iter(sorted(graph.get(following, ())))))
                    break
            else:
                state[link] = 2
                path.pop()
                stack.pop()
    return None


def cycle_text(cycle: Sequence[Link]) -> str:
    return ", ".join(f"{a}>{b}" for a, b in [*cycle, cycle[0]])


def route_hops(table: Table) -> list[list[int]]:
    """Length in hops of the routed paths between all chips."""
    hops = [[0] * len(table) for _ in table]
    for start in range(len(table)):
        for dest in range(len(table)):
            here = start
            while here != dest:
                here = table[here][dest]
                hops[start][dest] += 1
    return hops


def link_loads(table: Table) -> dict[Link, int]:
    """Number of ordered pairs of chips whose path uses each directed link."""
    load: dict[Link, int] = {}
    for start in range(len(table)):
        for dest in range(len(table)):
            here = start
            while here != dest:
                link = (here, table[here][dest])
                load[link] = load.get(link, 0) + 1
                here = link[1]
    return load


# --- a table that was given -----------------------------------------------------------------------


def _given(rows: Sequence[Sequence[int]], edges: Sequence[Edge], chips: int) -> Table:
    if len(rows) != chips or any(len(row) != chips for row in rows):
        raise ConfigError("routing: the table has the wrong shape", f"{chips} rows of {chips} next chips, one per destination")
    near = neighbours(edges, chips)
    for here, row in enumerate(rows):
        for dest, there in enumerate(row):
            if here == dest:
                if there != here:
                    raise ConfigError(f"routing: row {here} sends packets for chip {here} on to {there}", f"{here} there")
            elif there not in near[here]:
                right = ", ".join(map(str, near[here]))
                raise ConfigError(f"routing: chip {here} has no link to {there} (for destination {dest})", f"one of {right}")
    table = [list(row) for row in rows]
    for start in range(chips):
        for dest in range(chips):
            here, path = start, [start]
            while here != dest:
                here = table[here][dest]
                path.append(here)
                if len(path) > chips + 1:
                    shown = ">".join(map(str, path[: chips + 1]))
                    raise ConfigError(f"routing: packets from chip {start} to {dest} never arrive: {shown}", "a path that arrives")
    cycle = find_cycle(dependencies(table))
    if cycle:
        raise ConfigError(
            f"routing: the channel dependencies have the cycle {cycle_text(cycle)}, which can deadlock",
            "none of these turns, or routing=auto",
        )
    return table


# --- up*/down* ------------------------------------------------------------------------------------


def up_down(edges: Sequence[Edge], chips: int) -> list[Table]:
    """Up*/down* routing by destination (Autonet, 1991), from each root. A chip with a downward path to the destination takes
    the shortest such path, so a packet that has turned down stays down; the other chips go up."""
    hops, near = distances(edges, chips), neighbours(edges, chips)
    return [_up_down_from(root, hops[root], near, chips) for root in range(chips)]


def _detours(edges: Sequence[Edge], chips: int, weights: dict[Link, float]) -> Table:
    """A table without cycles: up*/down*, shortened by single changes."""
    tables = sorted(up_down(edges, chips), key=lambda t: _cost(t, weights))
    if chips > _BALANCE_CHIPS:
        return tables[0]
    near = neighbours(edges, chips)
    options = [[near[u] if u != d else [u] for d in range(chips)] for u in range(chips)]
    best = [_balance(table, options, weights) for table in tables[: max(1, 32 // chips)]]
    return min(best, key=lambda t: _cost(t, weights))


def _up_down_from(root: int, depth: list[int], near: list[list[int]], chips: int) -> Table:
    rank = sorted(range(chips), key=lambda c: (depth[c], c))
    above = {c: i for i, c in enumerate(rank)}  # smaller is nearer to the root
    table = [[c] * chips for c in range(chips)]
    for dest in range(chips):
        length = {dest: 0}
        # Downward paths first: from chips above the destination, nearest ranks first.
        for here in reversed(rank[: above[dest]]):
            down = [n for n in near[here] if above[n] > above[here] and n in length]
            if down:
                table[here][dest] = min(down, key=lambda n: (length[n], n))
                length[here] = length[table[here][dest]] + 1
        # The rest go up; a chip's upper neighbours come before it in the rank.
        for here in rank:
            if here not in length:
                up = [n for n in near[here] if above[n] < above[here]]
                table[here][dest] = min(up, key=lambda n: (length[n], n))
                length[here] = length[table[here][dest]] + 1
    return table


# --- shortest paths -------------------------------------------------------------------------------


def _shortest_options(edges: Sequence[Edge], chips: int) -> list[list[list[int]]]:
    """For each chip and destination, the neighbours that are one hop nearer."""
    hops, near = distances(edges, chips), neighbours(edges, chips)
    return [
        [[n for n in near[u] if hops[n][d] == hops[u][d] - 1] if u != d else [u] for d in range(chips)]
        for u in range(chips)
    ]


def shortest(edges: Sequence[Edge], chips: int, weights: dict[Link, float]) -> Table | None:
    """Shortest-path table without a dependency cycle and with a spread load; None if none was found."""
    options = _shortest_options(edges, chips)
    candidates = [t for t in _simple_tables(options, chips) if find_cycle(dependencies(t)) is None]
    if not candidates or chips <= _BALANCE_CHIPS:
        found = _search(options, distances(edges, chips), chips)
        candidates += [found] if found is not None else []
    if chips <= _BALANCE_CHIPS:
        candidates = [_balance(t, options, weights) for t in candidates]
    return min(candidates, key=lambda t: _cost(t, weights), default=None)


def _simple_tables(options: list[list[list[int]]], chips: int) -> Iterable[Table]:
    """Tie-breaks that suit regular graphs: lowest, highest, nearest and farthest number (the last two are dimension order on
    a mesh)."""
    for key in (lambda u, n: n, lambda u, n: -n, lambda u, n: (abs(n - u), n), lambda u, n: (-abs(n - u), n)):
        yield [[min(options[u][d], key=lambda n: key(u, n)) for d in range(chips)] for u in range(chips)]


def _search(options: list[list[list[int]]], hops: list[list[int]], chips: int) -> Table | None:
    """Backtracking over the choices, forced ones first. A choice adds one dependency per path, so a cycle is detected at
    once. Links with little load are tried first."""
    table = [[u] * chips for u in range(chips)]
    uses: dict[Link, dict[Link, int]] = {}
    # Within a destination nearer chips come first: a choice then only depends on choices already made.
    order = sorted(
        ((u, d) for u in range(chips) for d in range(chips) if u != d),
        key=lambda v: (len(options[v[0]][v[1]]) > 1, v[1], hops[v[0]][v[1]], v[0]),
    )
    chosen: set[tuple[int, int]] = {(d, d) for d in range(chips)}

    def added(u: int, d: int, n: int) -> list[tuple[Link, Link]]:
        # Both directions: a forced choice may have been made farther out before this one.
        new = [((u, n), (n, table[n][d]))] if n != d and (n, d) in chosen else []
        for t in range(chips):
            if (t, d) in chosen and t != d and table[t][d] == u:
                new.append(((t, u), (u, n)))
        return new

    def reaches(start: Link, goal: Link) -> bool:
        stack, seen = [start], {start}
        while stack:
            link = stack.pop()
            if link == goal:
                return True
            for nxt in uses.get(link, ()):
                if nxt not in seen:
                    seen.add(nxt)
                    stack.append(nxt)
        return False

    def apply(u: int, d: int, n: int) -> list[tuple[Link, Link]] | None:
        done: list[tuple[Link, Link]] = []
        for first, second in added(u, d, n):
            if uses.get(first, {}).get(second, 0) == 0 and reaches(second, first):
                undo(done)
                return None
            uses.setdefault(first, {})[second] = uses.setdefault(first, {}).get(second, 0) + 1
            done.append((first, second))
        return done

    def undo(done: list[tuple[Link, Link]]) -> None:
        for first, second in done:
            uses[first][second] -= 1
            if not uses[first][second]:
                del uses[first][second]

    load: dict[Link, int] = {}
    steps = 0
    trail: list[tuple[int, int, int, list[tuple[Link, Link]]]] = []
    pending: list[list[int]] = []
    while len(trail) < len(order):
        u, d = order[len(trail)]
        if len(pending) == len(trail):
            pending.append(sorted(options[u][d], key=lambda n: (load.get((u, n), 0), n)))
        placed = False
        while pending[-1]:
            steps += 1
            if steps > _SEARCH_STEPS:
                return None
            n = pending[-1].pop(0)
            done = apply(u, d, n)
            if done is not None:
                table[u][d] = n
                chosen.add((u, d))
                load[u, n] = load.get((u, n), 0) + 1
                trail.append((u, d, n, done))
                placed = True
                break
        if placed:
            continue
        pending.pop()
        if not trail:
            return None
        u, d, n, done = trail.pop()
        undo(done)
        chosen.discard((u, d))
        load[u, n] -= 1
    return table


def _cost(table: Table, weights: dict[Link, float]) -> tuple[float, ...]:
    """Total hops, then the time of uniform all-to-all traffic on the busiest link, then the sum of the squares of these times."""
    load = link_loads(table)
    times = [count * weights.get(link, 1.0) for link, count in load.items()]
    return (sum(load.values()), max(times, default=0.0), sum(t * t for t in times))


def _balance(table: Table, options: list[list[list[int]]], weights: dict[Link, float]) -> Table:
    """Changes single entries while this lowers the cost, all destinations stay reachable, and no cycle arises."""
    cost = _cost(table, weights)
    better = True
    while better:
        better = False
        for u, row in enumerate(options):
            for d, choice in enumerate(row):
                for n in choice if len(choice) > 1 else ():
                    old = table[u][d]
                    if n == old or _passes(table, n, d, u):
                        continue
                    table[u][d] = n
                    new = _cost(table, weights)
                    if new < cost and find_cycle(dependencies(table)) is None:
                        cost, better = new, True
                    else:
                        table[u][d] = old
    return table


def _passes(table: Table, start: int, dest: int, through: int) -> bool:
    here = start
    while here != dest:
        if here == through:
            return True
        here = table[here][dest]
    return False
