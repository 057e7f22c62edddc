# SPDX-License-Identifier: BSD-3-Clause
"""A run.json that a user has changed is refused by the key at fault."""

from typing import Any

import pytest

from moscope.runs.shape import fault, fault_of_point, fault_of_stats

CONFIG: dict[str, Any] = {"machine": "small", "set": ["links.clock=2GHz"], "points": [{"cores": 1}], "folders": {"mine": "/here"},
                          "hops": [[0, 1], [1, 0]], "cores_per_chip": 6, "core_hz": 2.4e9, "description": {"chips": "8"}}


@pytest.mark.parametrize("run", [{}, {"points": [{}], "config": None}, {"points": None}, {"points": [], "config": CONFIG}])
def test_what_a_run_writes_and_what_it_may_lack_is_no_fault(run: dict[str, Any]) -> None:
    assert fault(run) == ""


@pytest.mark.parametrize(("run", "said"), [
    ({"points": 5}, "its points: expected a list of objects"), ({"points": [None]}, "its points: expected a list of objects"),
    ({"config": []}, "its config: expected an object"), ({"config": {**CONFIG, "set": 5}}, "its config.set: expected a list of strings"),
    ({"config": {**CONFIG, "versions": "x"}}, "its config.versions: expected an object"),
    ({"config": {**CONFIG, "folders": {"mine": 5}}}, "its config.folders: expected an object of strings"),
    ({"config": {**CONFIG, "hops": [{}]}}, "its config.hops: expected a list of lists"),
    ({"config": {**CONFIG, "cores_per_chip": "x"}}, "its config.cores_per_chip: expected a number")])
def test_another_type_than_a_run_writes_is_named_by_its_key(run: dict[str, Any], said: str) -> None:
    assert fault(run) == said


def test_a_point_is_held_against_its_own_keys() -> None:
    assert fault_of_point({"cycles": {"busy": 0.5}, "windows": [{}], "trend": None}) == ""
    assert fault_of_point({"windows": 5}) == "its windows: expected a list of objects"
    assert fault_of_point({"cycles": {"busy": "x"}}) == "its cycles: expected an object of numbers"


@pytest.mark.parametrize(("point", "said"), [
    ({"windows": [{"cycles": {"busy": "x"}}]}, "its windows[0].cycles.busy: expected a number"),
    ({"throughput_per_s": []}, "its throughput_per_s: expected a number"), ({"notes": None, "ops": 3.5}, ""),
    ({"top_lines": [{"name": 5}]}, "its top_lines[0].name: expected a string"), ({"of_a_later_version": {}}, ""),
    ({"schema": "moscope.point/2"}, "its schema: expected moscope.point/1")])
def test_a_value_of_another_type_within_a_point_is_named_by_its_place(point: dict[str, Any], said: str) -> None:
    assert fault_of_point(point) == said
    assert fault({"points": [point]}) == ""  # one bad point does not affect others


@pytest.mark.parametrize(("stats", "said"), [
    ({"cores": [{"window": 5, "busy": {"user": None}}]}, "its cores[0].busy.user: expected a number"),
    ({"cores": [{"window": 5, "spin": {"core": {"kernel": {}}}}]}, "its cores[0].spin.core.kernel: expected a number"),
    ({"cores": [{"window": 5, "spin": {"core": True}}]}, "its cores[0].spin.core: expected an object"),
    ({"attribution": {"segments": {"dram": "x"}}}, "its attribution.segments.dram: expected a number"),
    ({"cores": [], "attribution": None, "machine": {}}, "")])
def test_numbers_of_the_statistics_must_be_numbers(stats: dict[str, Any], said: str) -> None:
    assert fault_of_stats(stats) == said
