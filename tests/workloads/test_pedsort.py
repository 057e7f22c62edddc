# SPDX-License-Identifier: BSD-3-Clause
"""The indexer on all cores: what threads share, and what processes on one chip share."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Moscope = Callable[..., Any]


def points(moscope: Moscope, *arguments: str) -> dict[tuple[str, int], dict[str, Any]]:
    got = moscope("run", *arguments, "--json", "--out", "out", timeout=3600)
    assert got.returncode == 0, got.stderr
    found = {(point["workload"], point["cores"]): point for point in json.loads(got.stdout)["points"]}
    assert all(point["verified"] for point in found.values())
    return found


@pytest.mark.long
def test_the_kernels_time_for_a_file_grows_with_threads_and_not_with_processes(moscope: Moscope) -> None:
    found = points(moscope, "--workload", "pedsort,pedsort-processes", "--kernel", "stock", "--cores", "1,48", "--windows", "6")
    kernel = {key: point["system_us_per_op"] for key, point in found.items()}
    assert kernel["pedsort", 48] > 8 * kernel["pedsort", 1]
    assert kernel["pedsort-processes", 48] < 3 * kernel["pedsort-processes", 1]


@pytest.mark.long
def test_processes_on_all_chips_wait_less_for_memory_than_on_two_whose_l3_their_tables_exceed(moscope: Moscope) -> None:
    both = "pedsort-quarter-packed,pedsort-quarter-spread"
    found = points(moscope, "--workload", both, "--kernel", "pk", "--cores", "48", "--windows", "4")
    packed, spread = (found[f"pedsort-quarter-{how}", 48] for how in ("packed", "spread"))
    waited = [point["cycles"]["memory"] / point["ops"] for point in (packed, spread)]
    assert waited[1] < 0.7 * waited[0] and spread["ops"] > packed["ops"]
