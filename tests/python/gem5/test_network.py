# SPDX-License-Identifier: BSD-3-Clause
"""The links of gem5's network as configs/gem5 works them out, without gem5."""

import importlib
import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from moscope import buildproto, config


@pytest.fixture
def network(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """configs/gem5/machine_network.py, with a stand-in for gem5's own modules."""
    objects = ModuleType("m5.objects")
    for name in ("SimpleExtLink", "SimpleIntLink", "SimpleNetwork", "Switch"):
        setattr(objects, name, None)
    monkeypatch.setitem(sys.modules, "m5", ModuleType("m5"))
    monkeypatch.setitem(sys.modules, "m5.objects", objects)
    monkeypatch.syspath_prepend(str(root / "configs/gem5"))
    yield importlib.import_module("machine_network")
    sys.modules.pop("machine_network")


@pytest.fixture(scope="module")
def machine() -> dict[str, Any]:
    built = buildproto.ensure_protocol("MOESI_HTAssist")
    return config.elaborate(config.load_machine("small", []), json.loads(built.interface.read_text()))


def test_every_virtual_network_has_a_link_for_each_length_of_its_packets(network: ModuleType, machine: dict[str, Any]) -> None:
    shape = machine["network"]
    different, ways = network.lengths(shape)
    assert different == sorted(set(different)) and len(ways) == 2 * (1 + max(map(int, shape["vnet_channel"])))
    for vnet, channel in shape["vnet_channel"].items():
        for data, part in enumerate(("", "_data")):
            assert different[ways[2 * int(vnet) + data]] == shape["packet_bytes"][channel + part]
    assert network.vnets_beside(machine) == len(different) - 1


def test_a_links_latency_is_wire_crossbar_and_the_packets_own_length(network: ModuleType, machine: dict[str, Any]) -> None:
    shape = machine["network"]
    link = shape["links"][0]
    per_byte = network.link_latency_fs(shape, link, 9) - network.link_latency_fs(shape, link, 8)
    assert per_byte * link["width_bits"] * 2 * link["clock_hz"] == Fraction(8 * 10**15)
    assert network.link_latency_fs(shape, link, 0) == link["latency_fs"] + shape["router"]["latency_fs"]
