# SPDX-License-Identifier: BSD-3-Clause
"""A run.json that a user has changed is refused by the key at fault."""

from typing import Any

import pytest

from moscope.runs.shape import fault, fault_of_point

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
