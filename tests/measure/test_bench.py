# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench`: the short forms give figures of the right kind, and the filter experiment shows what it is for."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from moscope import jsonio

Moscope = Callable[..., subprocess.CompletedProcess[str]]


def bench(moscope: Moscope, *arguments: str) -> dict[str, Any]:
    got = moscope("bench", *arguments, "--json", timeout=600)
    assert got.returncode == 0, got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    return document


def test_memory_gives_every_figure_of_the_contract(moscope: Moscope) -> None:
    document = bench(moscope, "memory", "--short", "--runs", "1", "--machine", "small")
    jsonio.validate(document)
    assert document["l1_hits_per_s"] > document["l3_misses_per_s"] > 0
    assert set(document["cost_per_miss_ns"]) == {"8"}


def test_memory_says_when_a_protocol_has_no_l3(moscope: Moscope) -> None:
    got = moscope("bench", "memory", "--short", "--runs", "1", "--machine", "small", "--set", "protocol=MSI")
    assert got.returncode == 2 and "has no L3" in got.stderr


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


def test_filter_needs_a_filter(moscope: Moscope) -> None:
    got = moscope("bench", "filter", "--machine", "small", "--set", "probe_filter.enabled=false")
    assert got.returncode == 2 and "no probe filter" in got.stderr


@pytest.mark.parametrize("size", ["1", "1KiB", "900GiB", "70 potatoes"])
def test_filter_refuses_sizes_that_cannot_be(moscope: Moscope, size: str) -> None:
    got = moscope("bench", "filter", "--machine", "small", "--bytes", size)
    assert got.returncode == 2 and "Traceback" not in got.stderr
