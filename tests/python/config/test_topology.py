# SPDX-License-Identifier: BSD-3-Clause
"""Topologies and routing: every table arrives, keeps to the links and has no dependency cycle."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from moscope.config import ConfigError, Edge, Routing, Topology, Width
from moscope.config.routing import (
    Table,
    compute,
    dependencies,
    find_cycle,
    link_loads,
    route_hops,
    up_down,
)
from moscope.config.topology import _entry, check_edges, distances, make, names, neighbours


def only_chips(name: str) -> int | None:
    """The number of chips that a topology requires; None: any number."""
    return _entry(name)[1]


ANY = (1, 2, 3, 4, 5, 8, 12)  # docs/extending/topology.md
NAMED = [(n, c) for n in names() for c in (ANY if only_chips(n) is None else [only_chips(n)])]


def edges_of(text: str) -> tuple[Edge, ...]:
    return Topology.parse(text).edges or ()


def is_sound(table: Table, edges: tuple[Edge, ...], chips: int) -> bool:
    near = neighbours(edges, chips)
    local = all(table[c][c] == c for c in range(chips))
    linked = all(table[a][b] in near[a] for a in range(chips) for b in range(chips) if a != b)
    return local and linked and find_cycle(dependencies(table)) is None and len(route_hops(table)) == chips


def test_the_topologies_of_the_issue_are_registered() -> None:
    wanted = "twisted_ladder straight_ladder magnycours_2p magnycours_4p fully_connected ring mesh"
    assert set(wanted.split()) <= set(names())


@pytest.mark.parametrize(("name", "chips"), NAMED)
def test_a_named_topology_is_connected_and_routed_without_cycles(name: str, chips: int) -> None:
    edges = make(name, chips)
    check_edges(edges, chips)
    assert is_sound(compute(Routing(), edges, chips), edges, chips)


def test_a_topology_of_a_fixed_size_states_its_number_of_chips() -> None:
    assert [only_chips(name) for name in ("twisted_ladder", "magnycours_2p", "ring")] == [8, 4, None]


@pytest.mark.parametrize("name", ["straight_ladder", "magnycours_4p", "mesh", "fully_connected"])
def test_shortest_paths_are_taken_where_they_can_be(name: str) -> None:
    edges = make(name, 8)
    assert route_hops(compute(Routing(), edges, 8)) == distances(edges, 8)


def test_the_twisted_ladder_needs_exactly_four_detours_of_one_hop() -> None:
    edges = make("twisted_ladder", 8)
    assert Counter(hops for row in route_hops(compute(Routing(), edges, 8)) for hops in row) == {0: 8, 1: 20, 2: 24, 3: 12}


def test_shortest_routing_of_the_twisted_ladder_is_refused_with_the_cycle() -> None:
    with pytest.raises(ConfigError, match=r"cycle of links is \d>\d(, \d>\d)+: expected routing=auto or up_down") as error:
        compute(Routing("shortest"), make("twisted_ladder", 8), 8)
    links = error.value.what.rsplit("is ", 1)[1].split(", ")
    assert links[0] == links[-1]
    assert all(a[-1] == b[0] for a, b in zip(links, links[1:], strict=False))


def test_magny_cours_4p_spreads_even_traffic_evenly_over_the_narrow_links() -> None:
    edges = make("magnycours_4p", 8)
    weights = {}
    for e in edges:
        assert e.width is not None
        weights[e.a, e.b] = weights[e.b, e.a] = 1 / e.width.amount
    loads = link_loads(compute(Routing(), edges, 8, weights))
    assert {load for (a, b), load in loads.items() if a // 2 != b // 2} == {2}


@pytest.mark.parametrize("seed", range(40))
def test_any_connected_graph_is_routed_without_cycles(seed: int) -> None:
    rnd = random.Random(seed)
    chips = rnd.randint(2, 12)
    pairs = {(rnd.randrange(b), b) for b in range(1, chips)}
    for _ in range(rnd.randint(0, chips)):
        a, b = sorted(rnd.sample(range(chips), 2))
        pairs.add((a, b))
    edges = tuple(Edge(a, b) for a, b in sorted(pairs))
    assert is_sound(compute(Routing(), edges, chips), edges, chips)
    assert all(is_sound(t, edges, chips) for t in up_down(edges, chips))


def test_routing_is_the_same_every_time() -> None:
    edges = make("twisted_ladder", 8)
    assert compute(Routing(), edges, 8) == compute(Routing(), tuple(reversed(edges)), 8)


def square() -> Table:
    return [[0, 1, 2, 1], [0, 1, 3, 3], [0, 0, 2, 3], [2, 1, 2, 3]]


def test_a_given_table_is_taken_as_it_is() -> None:
    table = [[0, 1, 2, 2], [0, 1, 3, 3], [0, 0, 2, 3], [1, 1, 2, 3]]
    assert compute(Routing.parse(table), edges_of("0-1 0-2 1-3 2-3"), 4) == table


def test_a_given_cyclic_table_is_refused_with_its_links() -> None:
    with pytest.raises(ConfigError, match="cycle 0>1, 1>3, 3>2, 2>0, 0>1"):
        compute(Routing.parse(square()), edges_of("0-1 0-2 1-3 2-3"), 4)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ((0, 3, 3), "chip 0 has no link to 3.*one of 1, 2"),
        ((1, 1, 0), "row 1 sends packets for chip 1 on to 0"),
        ((1, 2, 0), "ok"),
        ((3, 0, 9), "no link to 9"),
    ],
)
def test_a_wrong_entry_of_a_table_is_named(change: tuple[int, int, int], says: str) -> None:
    table = [[0, 1, 2, 2], [0, 1, 3, 3], [0, 0, 2, 3], [1, 1, 2, 3]]
    table[change[0]][change[1]] = change[2]
    edges = edges_of("0-1 0-2 1-3 2-3")
    if says == "ok":
        assert compute(Routing.parse(table), edges, 4) == table
    else:
        with pytest.raises(ConfigError, match=says):
            compute(Routing.parse(table), edges, 4)


def test_a_table_whose_packets_go_round_is_refused() -> None:
    table = [[0, 1, 2, 1], [0, 1, 0, 0], [0, 0, 2, 3], [1, 1, 2, 3]]
    with pytest.raises(ConfigError, match="packets from chip 0 to 3 never arrive: 0>1>0"):
        compute(Routing.parse(table), edges_of("0-1 0-2 1-3 2-3"), 4)


def test_a_table_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(ConfigError, match="4 rows of 4 next chips"):
        compute(Routing.parse([[0, 1], [0, 1]]), edges_of("0-1 0-2 1-3 2-3"), 4)


@pytest.mark.parametrize(
    ("edges", "chips", "says"),
    [
        ("0-1 2-3", 4, "chips 2, 3 have no path to chip 0: expected more edges"),
        ("0-1", 3, "chip 2 has no path"),
        ("", 2, "chip 1 has no path"),
        ("0-1 1-0", 2, "edge 1-0 is given twice"),
        ("0-0", 1, "joins chip 0 to itself: expected two different chips"),
        ("0-8", 8, "names chip 8: expected numbers from 0 to 7"),
    ],
)
def test_impossible_edges_are_refused(edges: str, chips: int, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Topology.parse(edges).resolved(chips)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (7, "neither a name nor a list"),
        ([(0, 1, 2)], "is not an edge"),
        ([("a", 1)], "not a chip number"),
        ([(True, 1)], "not a chip number"),
        ([5], "is not an edge"),
        (["0=1"], "is not an edge"),
    ],
)
def test_what_is_no_list_of_edges_is_refused(value: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Topology.parse(value)


def test_an_unknown_topology_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="such as straight_ladder"):
        Topology.parse("strait_ladder").resolved(8)


def test_a_topology_for_other_machines_says_how_many_chips_it_joins() -> None:
    with pytest.raises(ConfigError, match="twisted_ladder joins 8 chips, and the machine has 4: expected chips=8, or one of"):
        Topology.parse("twisted_ladder").resolved(4)


def test_an_edge_may_have_its_own_width() -> None:
    topology = Topology.parse([(0, 1), Edge(1, 2, width=Width("x8"))])
    assert [e.width and e.width.bits for e in topology.edges or ()] == [None, 8]
