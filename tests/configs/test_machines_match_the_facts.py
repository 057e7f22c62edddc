# SPDX-License-Identifier: BSD-3-Clause
"""The machines of configs/ hold the published values; each number here is the fact, written out again."""

from __future__ import annotations

from collections import Counter

import pytest

from moscope.config import Machine, load_machine, machine_names, walk

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.fixture(scope="module")
def opteron48() -> Machine:
    return load_machine("opteron48")


def test_the_six_machines_of_the_issue_are_there() -> None:
    wanted = {"opteron48", "opteron48_straight", "opteron48_broadcast", "magnycours_2p", "magnycours_4p", "small"}
    assert wanted <= set(machine_names())


@pytest.mark.parametrize("name", machine_names())
def test_every_value_of_a_machine_has_a_source(name: str) -> None:
    without = [r.key for r in walk(load_machine(name)) if not r.source and r.key not in ("name", "routing")]
    assert without == []


@pytest.mark.parametrize("name", machine_names())
def test_a_machine_is_called_like_its_file(name: str) -> None:
    assert load_machine(name).name == name


def test_opteron48_is_eight_chips_of_six_cores_at_2_4_ghz(opteron48: Machine) -> None:
    assert (opteron48.chips, opteron48.cores_per_chip, opteron48.cores) == (8, 6, 48)
    assert opteron48.core_clock.hertz == 2_400_000_000
    assert opteron48.nb_clock.hertz == 2_200_000_000
    assert (opteron48.core_clock.period.numerator, opteron48.core_clock.period.denominator) == (1_250_000, 3)


@pytest.mark.parametrize(
    ("key", "size", "ways", "sets"),
    [("l1i", 64 * KIB, 2, 512), ("l1d", 64 * KIB, 2, 512), ("l2", 512 * KIB, 16, 512), ("l3", 6 * MIB, 48, 2048)],
)
def test_opteron48_caches_have_the_published_geometry(
    opteron48: Machine, key: str, size: int, ways: int, sets: int
) -> None:
    cache = getattr(opteron48, key)
    assert (cache.size.bytes, cache.ways, cache.sets(opteron48.line)) == (size, ways, sets)


def test_the_filter_takes_1_mib_of_l3_and_has_256_ki_entries(opteron48: Machine) -> None:
    assert opteron48.filter_bytes() == 1 * MIB
    assert opteron48.filter_entries() == 256 * 1024
    assert opteron48.probe_filter.ways == 4
    assert opteron48.probe_filter.entry.bytes * 16 == opteron48.line.bytes
    assert opteron48.filter_entries() * opteron48.line.bytes == 16 * MIB  # what it covers


def test_the_l3_keeps_5_mib_in_40_ways_beside_the_filter(opteron48: Machine) -> None:
    data = opteron48.l3_data()
    assert (data.size.bytes, data.ways, data.sets(opteron48.line)) == (5 * MIB, 40, 2048)


def test_without_the_filter_the_l3_keeps_all_48_ways() -> None:
    data = load_machine("opteron48_broadcast").l3_data()
    assert (data.size.bytes, data.ways, data.sets(load_machine("opteron48_broadcast").line)) == (6 * MIB, 48, 2048)


def test_coverage_of_the_filter_is_1_83_spread_and_0_23_on_one_node(opteron48: Machine) -> None:
    cached = 6 * (opteron48.l2.size.bytes + opteron48.l1i.size.bytes + opteron48.l1d.size.bytes)
    cached += opteron48.l3_data().size.bytes
    assert cached == 8.75 * MIB
    covered = opteron48.filter_entries() * 64
    assert covered / cached == pytest.approx(1.83, abs=0.005)
    assert covered / (8 * cached) == pytest.approx(0.23, abs=0.005)


def test_references_are_the_published_latencies(opteron48: Machine) -> None:
    r = opteron48.references
    assert [c and c.count for c in (r.l1, r.l2, r.l3, r.dram, r.dram_hop)] == [3, 14, 28, 122, 127]
    assert [122 + 127 * h for h in range(4)] == [122, 249, 376, 503]


def test_the_machine_without_the_filter_has_references_for_its_caches_only() -> None:
    r = load_machine("opteron48_broadcast").references
    assert [c and c.count for c in (r.l1, r.l2, r.l3, r.dram, r.dram_hop)] == [3, 14, 28, None, None]


def test_a_link_carries_4_gb_per_second_each_way(opteron48: Machine) -> None:
    assert opteron48.links.byte_time() == 250_000  # fs per byte
    ht3 = load_machine("opteron48", ["links.clock=2.4GHz"]).links.byte_time()
    assert 1e15 / ht3 == pytest.approx(9.6e9)


def test_link_buffers_are_those_of_the_tables(opteron48: Machine) -> None:
    c = opteron48.links.credits
    assert (c.request, c.posted, c.response, c.probe, c.request_data, c.response_data) == (4, 2, 9, 9, 2, 2)
    assert (c.free, c.free_data) == (8, 2)


def test_each_chip_has_8_gib_on_two_channels(opteron48: Machine) -> None:
    assert opteron48.memory_per_node.bytes == 8 * GIB
    assert opteron48.dram.channels == 2


def test_outstanding_misses_are_8_and_on_magny_cours_10(opteron48: Machine) -> None:
    assert opteron48.outstanding_misses == 8
    assert load_machine("magnycours_2p").outstanding_misses == 10


@pytest.mark.parametrize(
    ("name", "histogram", "mean"),
    [
        ("opteron48", [8, 20, 28, 8], 1.5625),
        ("opteron48_straight", [8, 20, 20, 12, 4], 1.75),
        ("magnycours_2p", [4, 12], 0.75),
        ("magnycours_4p", [8, 32, 24], 1.25),
    ],
)
def test_hops_between_chips_are_as_published(name: str, histogram: list[int], mean: float) -> None:
    """`histogram`: ordered pairs of chips (a chip with itself, too) by the number of hops between them."""
    pairs = [hops for row in load_machine(name).hops() for hops in row]
    assert Counter(pairs) == dict(enumerate(histogram))
    assert sum(pairs) / len(pairs) == mean


def test_opteron48_writes_out_the_twisted_ladder() -> None:
    assert load_machine("opteron48").hops() == load_machine("opteron48", ["topology=twisted_ladder"]).hops()


def test_magny_cours_links_have_the_widths_of_the_package() -> None:
    edges = load_machine("magnycours_4p").edges()
    widths = {(e.a, e.b): e.width.bits for e in edges if e.width}
    assert [w for (a, b), w in widths.items() if a // 2 == b // 2] == [24] * 4
    assert [w for (a, b), w in widths.items() if a // 2 != b // 2] == [8] * 12
    assert all(sum(chip in (e.a, e.b) for e in edges) == 4 for chip in range(8))


def test_small_has_eight_cores() -> None:
    assert load_machine("small").cores == 8
