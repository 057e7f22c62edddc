# SPDX-License-Identifier: BSD-3-Clause
"""The roles of a protocol's machines reach the elaborated machine, and no latency is left to a protocol's default."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moscope.buildproto import ensure_protocol
from moscope.config import ConfigError, check_roles, elaborate, load_machine
from slicc import roles

Json = dict[str, Any]


def interface_of(protocol: str) -> Json:
    read: Json = json.loads(ensure_protocol(protocol).interface.read_text())
    return read


def elaborated(interface: Json, machine: str = "small", *sets: str) -> dict[str, Json]:
    """The first controller of each machine type."""
    found: dict[str, Json] = {}
    for controller in elaborate(load_machine(machine, sets), interface)["controllers"]:
        found.setdefault(controller["machine"], controller)
    return found


def one_machine(machine_type: str, **roles: Any) -> Json:
    """An interface of a cache with a sequencer, and of one machine with these roles."""
    core = {"type": "L1Cache", "params": [{"name": "sequencer", "type": "Sequencer", "pointer": True, "default": None}], "buffers": []}
    other = {"type": machine_type, "buffers": [], "roles": roles, "params": [
        {"name": "store", "type": "CacheMemory", "pointer": True, "default": None}, {"name": "wait", "type": "Cycles", "default": 9}]}
    return {"protocol": "P", "machines": [core, other, {"type": "Directory", "params": [], "buffers": []}]}


def test_every_plain_parameter_of_moesi_htassist_comes_from_the_machine() -> None:
    for machine in interface_of("MOESI_HTAssist")["machines"]:
        plain = {p["name"] for p in machine["params"] if not p["pointer"] and p["type"] not in ("CacheMemory",)}
        assert plain == set(machine["roles"].get("values", {})) - set(roles.OF_ALL), machine["type"]


def test_the_request_types_of_a_protocol_reach_the_sequencers() -> None:
    sequencers = {p: elaborated(interface_of(p))["L1Cache"]["sequencer"] for p in ("MOESI_HTAssist", "MSI")}
    assert {p: s["nt_store_type"] for p, s in sequencers.items()} == {"MOESI_HTAssist": "COMMIT", "MSI": "ST"}
    assert {p: s["uncached_load_type"] for p, s in sequencers.items()} == {"MOESI_HTAssist": "IO", "MSI": "NULL"}


def test_the_switch_of_the_probe_filter_reaches_the_protocol() -> None:
    for machine, enabled in (("opteron48", True), ("opteron48_broadcast", False)):
        found = elaborated(interface_of("MOESI_HTAssist"), machine)
        assert [found[t]["params"]["probe_filter_enabled"] for t in ("Directory", "L3Cache")] == [enabled, enabled]


def test_roles_that_a_protocol_leaves_out_follow_the_names_of_gem5s_machines() -> None:
    assert {t: c["role"] for t, c in elaborated(interface_of("MSI")).items()} == {"L1Cache": "cache", "Directory": "home"}


@pytest.mark.parametrize(("per", "role", "count"), [("core", "cache", 8), ("chip", "cache", 4), ("node", "home", 2), ("node", "dma", 4)])
def test_the_roles_of_a_machine_decide_how_many_controllers_there_are(per: str, role: str, count: int) -> None:
    machine = load_machine("small", ["chips=4", "cores_per_chip=2"])
    made = elaborate(machine, one_machine("TCC", per=per, role=role), homes=2)
    found = [c for c in made["controllers"] if c["machine"] == "TCC"]
    assert len(found) == count and {c["role"] for c in found} == {role}


def test_arrays_and_values_are_those_that_the_roles_name() -> None:
    interface = one_machine("TCC", per="chip", role="cache", arrays={"store": "l2"}, values={"wait": "latencies.l3_hit"})
    params = elaborated(interface, "opteron48")["TCC"]["params"]
    assert params["store"]["bytes"] == 512 * 1024
    assert params["wait"] == load_machine("opteron48").latencies.l3_hit.count
    assert elaborated(one_machine("TCC", values={"wait": 3}), "opteron48")["TCC"]["params"]["wait"] == 3


@pytest.mark.parametrize("key", ["latencies.l9_hit", "topology", "l3"])
def test_a_value_that_the_machine_does_not_have_is_an_error_of_the_roles(key: str) -> None:
    with pytest.raises(ConfigError, match=f"^P.roles.toml: machines.TCC.values.wait: '{key}': expected the key of a number"):
        elaborated(one_machine("TCC", values={"wait": key}))


@pytest.mark.parametrize("key", ["cores_per_chip", "line", "probe_filter.enabled", "latencies.l2_hit", "references.l1"])
def test_a_value_of_every_plain_kind_is_accepted(key: str) -> None:
    check_roles(one_machine("TCC", values={"wait": key}))


@pytest.mark.parametrize(("roles", "message"), [
    ({"role": "cache"}, "machines: none has the role \"home\": expected role = \"home\""),
    ({"per": "none"}, "machines: none has the role \"home\""),
    ({"per": "core"}, "machines.Directory.per: 'core' of a home: expected \"node\""),
])
def test_roles_without_a_home_for_each_node_are_an_error(roles: Json, message: str) -> None:
    interface = one_machine("TCC", per="chip", role="cache")
    interface["machines"][-1]["roles"] = roles
    with pytest.raises(ConfigError, match=f"^P.roles.toml: {message}"):
        elaborated(interface)


@pytest.mark.parametrize(("key", "least"), [("L1Cache.number_of_TBEs", 5), ("L3Cache.free_tbes", 10)])
def test_the_machines_protocol_has_a_tbe_for_each_request_of_a_core(key: str, least: int) -> None:
    off = ["cores_per_chip=2", "outstanding_misses=5", "l1i_prefetch.policy=off", "l1d_prefetch.policy=off"]
    with pytest.raises(ConfigError, match=f"params.{key}: {least - 1}: expected at least {least}, as many requests"):
        elaborated(interface_of("MOESI_HTAssist"), "small", *off, f"params.{key}={least - 1}")
