# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench`: the short forms give figures of the right kind, and the filter experiment shows what it is for."""

import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from moscope import cli, jsonio, paths
from moscope.bench import filter as bench_filter
from moscope.bench import memory as bench_memory
from moscope.cli import Shared
from moscope.errors import UserError
from moscope.experiment import prepare
from moscope.schema.constants import FS_PER_NS

Moscope = Callable[..., subprocess.CompletedProcess[str]]


def bench(moscope: Moscope, *arguments: str) -> dict[str, Any]:
    got = moscope("bench", *arguments, "--json", timeout=600)
    document: dict[str, Any] = json.loads(got.stdout)
    assert got.returncode == (0 if document.get("ok", True) else 1), got.stderr
    return document


def test_memory_gives_every_figure_of_the_contract(moscope: Moscope) -> None:
    document = bench(moscope, "memory", "--short", "--runs", "1", "--machine", "small")
    jsonio.validate(document)
    assert document["l1_hits_per_s"] > document["l3_misses_per_s"] > 0
    assert set(document["cost_per_miss_ns"]) == {"8"}


MET = {"l1_hits": 1e8, "l3_misses": 2e6, "dram_far": 5e5, "tester": 5e4, "cost_per_miss": {"8": 1000.0, "48": 1250.0}}


@pytest.mark.parametrize("figures, missed", [
    ({}, []),
    ({"l1_hits": 99e6}, ["l1_hits_per_s"]),
    ({"l3_misses": 1.9e6, "dram_far": 4.9e5}, ["l3_misses_per_s", "dram3_misses_per_s"]),
    ({"tester": 49e3}, ["tester_loads_per_s"]),
    ({"cost_per_miss": {"8": 1000.0, "24": 990.0, "48": 1250.0}}, ["cost_growth"]),
])
def test_memory_ends_with_1_where_a_bar_is_missed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
                                                  figures: dict[str, Any], missed: list[str]) -> None:
    for name, figure in {**MET, **figures}.items():
        monkeypatch.setattr(bench_memory.Bench, name, lambda self, figure=figure: figure)
    for form in ([], ["--json"]):
        assert cli.main(["bench", "memory", "--machine", "small", "--quiet", *form]) == (1 if missed else 0)
    printed, document = capfd.readouterr().out.rsplit("\n", 2)[:2]
    assert printed.count("missed") == len(missed)
    jsonio.validate(json.loads(document))
    assert json.loads(document)["missed"] == missed and json.loads(document)["ok"] == (not missed)


def test_memory_says_when_a_protocol_has_no_l3(moscope: Moscope) -> None:
    got = moscope("bench", "memory", "--short", "--runs", "1", "--machine", "small", "--set", "protocol=MSI")
    assert got.returncode == 2 and "has no L3" in got.stderr


@pytest.mark.parametrize("sets", [["memory_per_node=1MiB"], ["l1d_prefetch.policy=stride"]])
def test_a_changed_machine_without_far_misses_is_a_user_error(sets: list[str]) -> None:
    bench_of_it = bench_memory.Bench(prepare(Shared(machine="small", sets=sets, quiet=True)), 0.05, 1, str, sets=sets)
    with pytest.raises(UserError, match="DRAM at 2 hops: the machine small serves these accesses differently: expected more memory"):
        bench_of_it.dram_far()


def test_the_smallest_cache_has_hits() -> None:
    sets = ["l1d.size=64B", "l1d.ways=1"]
    assert bench_memory.Bench(prepare(Shared(machine="small", sets=sets, quiet=True)), 0.001, 1, str, sets=sets).l1_hits() > 0


def test_data_homed_on_one_node_thrash_its_filter_and_spread_data_do_not(moscope: Moscope) -> None:
    document = bench(moscope, "filter", "--machine", "small", "--accesses", "40000")
    jsonio.validate(document)
    one, spread, off = document["placements"]
    assert off["filter_evictions"] == off["back_invalidations"] == 0 and document["slowdown_by_filter"] > 1
    assert document["coverage"]["one node"] < 1 < document["coverage"]["all nodes"]
    assert one["filter_evictions"] > 100 * max(1, spread["filter_evictions"])
    assert one["back_invalidations"] > 0.5 * one["filter_evictions"]
    assert document["slowdown"] > 1.5


@pytest.mark.long
def test_seventy_megabytes_on_one_node_of_the_48_core_machine(moscope: Moscope) -> None:
    document = bench(moscope, "filter", "--bytes", "70MiB")
    one, spread, _ = document["placements"]
    assert document["coverage"]["one node"] == pytest.approx(0.23, abs=0.01)
    assert document["coverage"]["all nodes"] == pytest.approx(1.83, abs=0.01)
    assert one["filter_evictions"] > 10 * spread["filter_evictions"] and document["slowdown"] > 1


def test_with_one_load_in_flight_an_access_takes_its_latency() -> None:
    subject = prepare(Shared(machine="small", sets=["outstanding_misses=1"], quiet=True))
    placed = bench_filter.place(subject, "one node", 1, bench_filter.cached_bytes(subject), 20_000)
    assert subject.cycles(placed.ns_per_access * FS_PER_NS) == pytest.approx(placed.latency_cycles, rel=0.01)
    assert placed.accesses == pytest.approx(20_000, rel=0.3)


def test_no_request_replaces_more_than_one_filter_entry() -> None:
    subject = prepare(Shared(machine="small", sets=["probe_filter.l3_ways=1", "probe_filter.ways=1"], quiet=True))
    placed = bench_filter.place(subject, "one node", 1, bench_filter.cached_bytes(subject) // 8, 2_000)
    assert 0 < placed.filter_evictions <= placed.filter_lookups


def test_filter_needs_a_filter(moscope: Moscope) -> None:
    got = moscope("bench", "filter", "--machine", "small", "--set", "probe_filter.enabled=false")
    assert got.returncode == 2 and "no probe filter" in got.stderr


def test_the_table_for_people_has_the_columns_of_the_page_and_counts_per_1000_loads(capsys: pytest.CaptureFixture[str]) -> None:
    placement = {"accesses": 95_248, "ns_per_access": 25.9, "latency_cycles": 498.0, "filter_evictions": 31_316,
                 "back_invalidations": 31_315, "probes": 190_496}
    bench_filter.print_placements({
        "machine": "small", "protocol": "MSI", "bytes": 2**20, "cached_bytes": 2**20, "filter_bytes": 2**20, "slowdown": 8.5,
        "slowdown_by_filter": 8.8, "coverage": {"one node": 0.65}, "placements": [{"name": "one node", **placement}]})
    printed = capsys.readouterr().out
    assert re.search(r"one node +0\.65 +25\.9 +498 +329 +329 +2000", printed)
    explained = (paths.root() / "docs" / "calibration.md").read_text(encoding="utf-8")
    columns = ("covered by filters", "filter entries replaced per 1000 loads", "lines lost per 1000 loads", "ns per load of a core")
    for column in columns:
        assert f"| {column} |" in explained and set(column.split()) <= set(printed.split())


@pytest.mark.parametrize("size", ["1", "0B", "1KiB", "900GiB", "70 potatoes"])
def test_filter_refuses_sizes_that_cannot_be(moscope: Moscope, size: str) -> None:
    got = moscope("bench", "filter", "--machine", "small", "--bytes", size)
    assert got.returncode == 2 and "Traceback" not in got.stderr
