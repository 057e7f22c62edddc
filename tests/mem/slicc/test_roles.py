# SPDX-License-Identifier: BSD-3-Clause
"""NAME.roles.toml of a protocol: what the interface contains of it, and which errors are reported."""

import json
import shutil
from pathlib import Path

import pytest

from slicc import interface_json, roles
from slicc.compile import compile_protocol

PROTOCOLS = Path(__file__).parent / "protocols"
GOOD = """
[sequencer]
nt_store_type = "COMMIT"
[machines.L1Cache]
per = "chip"
role = "cache"
arrays = { cache = "l3" }
values = { latency = "latencies.l3_hit", eager = true }
"""


@pytest.fixture
def protocol(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROTOCOLS, tmp_path / "protocols")) / "ok_plain.slicc"


def read(protocol: Path, text: str) -> dict:  # type: ignore[type-arg]
    protocol.with_suffix(roles.SUFFIX).write_text(text)
    program, _ = compile_protocol(str(protocol))
    assert program
    return dict(json.loads(interface_json.text(program, roles.read(str(protocol), program))))


def test_roles_reach_the_interface(protocol: Path) -> None:
    described = read(protocol, GOOD)
    assert described["sequencer"] == {"nt_store_type": "COMMIT"}
    assert described["machines"][0]["roles"] == {"per": "chip", "role": "cache", "arrays": {"cache": "l3"},
                                                 "values": {"latency": "latencies.l3_hit", "eager": True}}


def test_without_the_file_the_interface_has_no_roles(protocol: Path) -> None:
    program, _ = compile_protocol(str(protocol))
    assert program
    described = json.loads(interface_json.text(program, roles.read(str(protocol), program)))
    assert "sequencer" not in described and "roles" not in described["machines"][0]


@pytest.mark.parametrize(("old", "new", "message"), [
    ("machines.L1Cache", "machines.L9Cache", r"machines.L9Cache: unknown: expected L1Cache"),
    ('"chip"', '"socket"', r"machines.L1Cache.per: 'socket': expected one of core, pair, chip, node, none"),
    ('"cache"', '"dma"', r"machines.L1Cache.role: 'dma' of a machine without a DMASequencer: expected cache or home"),
    ('"cache"', '"memory"', r"machines.L1Cache.role: 'memory': expected one of cache, home, dma"),
    ("{ cache =", "{ cash =", r"machines.L1Cache.arrays.cash: unknown: expected cache"),
    ('"l3"', '"l4"', r"machines.L1Cache.arrays.cache: 'l4': expected one of l1i"),
    ("latency =", "latancy =", r"machines.L1Cache.values.latancy: unknown: expected eager, latency"),
    ("eager = true", "eager = 0.5", r"machines.L1Cache.values.eager: 0.5: expected a number, true, false or a key"),
    ('"COMMIT"', "1979-05-27", r"sequencer.nt_store_type: datetime.date\(1979, 5, 27\): expected a request type"),
    ("nt_store_type", "nt_type", r"sequencer.nt_type: unknown: expected nt_store_type, uncached_load_type"),
    ("[sequencer]", "[sequencer", r"not TOML"),
    ("[machines.L1Cache]", '[[machines.L1Cache.kinds]]\n[machines.L1Cache]', r"machines.L1Cache.kinds.0.name: None: expected"),
    ("[machines.L1Cache]", '[machines.L1Cache]\nbelow = 3', r"machines.L1Cache.below: 3: expected the name of a machine"),
    ("[machines.L1Cache]", '[machines.L1Cache]\nfor_requests = "latency"', r"machines.L1Cache.for_requests: 'latency': expected a list"),
    ("[machines.L1Cache]", '[machines.L1Cache]\nfor_requests = ["cache"]', r"machines.L1Cache.for_requests.cache: unknown: expected"),
], ids=["machine", "per", "role of devices", "role", "array's parameter", "array", "parameter", "value", "request", "sequencer", "syntax",
        "kind", "below", "no list", "array for requests"])
def test_a_wrong_file_is_an_error(protocol: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(roles.RolesError, match=f"ok_plain.roles.toml: {message}"):
        read(protocol, GOOD.replace(old, new, 1))


def test_the_roles_of_a_protocol_of_gem5_are_used_where_they_fit(protocol: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours = tmp_path / "gem5_roles" / "ok_plain.roles.toml"
    ours.parent.mkdir()
    monkeypatch.setattr(roles, "__file__", str(tmp_path / "roles.py"))
    program, _ = compile_protocol(str(protocol))
    assert program
    ours.write_text(GOOD)
    assert roles.read(str(protocol), program).sequencer == {"nt_store_type": "COMMIT"}
    ours.write_text(GOOD.replace("machines.L1Cache", "machines.L9Cache"))  # another protocol of that name
    assert roles.read(str(protocol), program) == roles.Roles()
