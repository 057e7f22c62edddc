# SPDX-License-Identifier: BSD-3-Clause
"""A machine of a protocol that is several levels of the hierarchy (`kinds` of NAME.roles.toml): how many controllers there are, with
which values, and which are next towards memory and towards the cores."""

from __future__ import annotations

from typing import Any

import pytest

from moscope.config import ConfigError, elaborate, load_machine

Json = dict[str, Any]


def interface(**below: str) -> Json:
    """Caches of cores, second levels of cores and homes, all of them one machine; and memory."""
    params = [{"name": "sequencer", "type": "Sequencer", "pointer": True}, {"name": "cache", "type": "CacheMemory", "pointer": True},
              {"name": "is_home", "type": "bool", "pointer": False, "default": "false"},
              {"name": "width", "type": "int", "pointer": False, "default": None}]
    kinds = [{"name": "first", "per": "core", "role": "cache", "arrays": {"cache": "l1d"}},
             {"name": "second", "per": "core", "role": "cache", "arrays": {"cache": "l2"}, "values": {"number_of_TBEs": 4}},
             {"name": "home", "per": "node", "role": "home", "arrays": {"cache": "l3"}, "values": {"is_home": True}}]
    for kind in kinds:
        if kind["name"] in below:
            kind["below"] = below[str(kind["name"])]
    return {"protocol": "P", "machines": [
        {"type": "Cache", "params": params, "buffers": [], "roles": {"values": {"width": 32}, "kinds": kinds}},
        {"type": "Memory", "params": [], "buffers": [], "roles": {"per": "node", "role": "home"}}]}


def controllers(homes: int, **below: str) -> dict[tuple[str, int], Json]:
    machine = load_machine("small", ["chips=4", "cores_per_chip=1"])
    return {(c["machine"], c["version"]): c for c in elaborate(machine, interface(**below), homes=homes)["controllers"]}


def test_each_kind_has_its_own_controllers_and_values() -> None:
    made = controllers(2, first="home", second="home", home="Memory")
    assert list(made) == [("Cache", v) for v in range(10)] + [("Memory", 0), ("Memory", 1)]
    assert [made["Cache", v]["params"]["is_home"] for v in (0, 4, 8, 9)] == [False, False, True, True]
    assert all(made["Cache", v]["params"]["width"] == 32 for v in range(10))
    assert [made["Cache", v]["params"].get("number_of_TBEs") for v in (0, 4, 8)] == [None, 4, None]
    assert made["Cache", 0]["params"]["cache"] != made["Cache", 8]["params"]["cache"]


def test_only_the_first_level_has_cores_behind_it() -> None:
    made = controllers(1, first="second", second="home", home="Memory")
    assert [made["Cache", v].get("core") for v in range(9)] == [0, 1, 2, 3, None, None, None, None, None]


def test_the_next_level_belongs_to_the_same_core_or_to_each_home() -> None:
    made = controllers(1, first="second", second="home", home="Memory")
    assert [made["Cache", v]["downstream"] for v in (1, 6, 8)] == [
        {"machine": "Cache", "version": 5}, {"machine": "Cache", "version": 8}, {"machine": "Memory", "version": 0}]
    assert made["Cache", 5]["upstream"] == [{"machine": "Cache", "version": 1}]
    assert made["Cache", 8]["upstream"] == [{"machine": "Cache", "version": v} for v in (4, 5, 6, 7)]


def test_every_home_knows_all_caches_above() -> None:
    made = controllers(2, first="home", home="Memory")
    assert made["Cache", 0]["downstream"] == {"machine": "Cache", "version": 8}  # and 9, by address
    assert len(made["Cache", 9]["upstream"]) == 4


def test_impossible_levels_are_an_error() -> None:
    with pytest.raises(ConfigError, match="below: 'nowhere'"):
        controllers(1, first="nowhere")
    with pytest.raises(ConfigError, match="each core has its own .*, but the machine has 2 homes"):
        controllers(2, first="second", second="home", home="Memory")
