# SPDX-License-Identifier: BSD-3-Clause
"""Elaboration: machines and a protocol's interface become the object that the engine reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from moscope import paths
from moscope.config import ConfigError, Machine, Time, blamed, elaborate, load_machine, machine_names, with_cores
from moscope.config.bindings import generic
from moscope.config.bindings.generic import array_of
from moscope.config.bindings.names import OF_ALL
from slicc import roles

Json = dict[str, Any]


def param(name: str, kind: str, default: Any = None) -> Json:
    objects = ("CacheMemory", "Sequencer", "DirectoryMemory", "DMASequencer", "MessageBuffer")
    return {"name": name, "type": kind, "pointer": kind in objects, "default": default}


def buffer(name: str, network: str | None, vnet: int | None, kind: str | None) -> Json:
    return {"name": name, "network": network, "vnet": vnet, "vnet_type": kind, "ordered": False}


def interface(**machines: tuple[list[Json], list[Json]]) -> Json:
    machines.setdefault("Directory", ([], []))  # every protocol has a home
    return {
        "protocol": "TEST",
        "machines": [{"type": t, "params": p, "buffers": b} for t, (p, b) in machines.items()],
    }


REQUEST = buffer("request", "To", 0, "request")
TEST = interface(
    L1Cache=(
        [
            param("sequencer", "Sequencer"),
            param("L1Icache", "CacheMemory"),
            param("L1Dcache", "CacheMemory"),
            param("L2cache", "CacheMemory"),
            param("issue_latency", "Cycles", 2),
            param("send_evictions", "bool"),
            param("text_default", "bool", "True"),
        ],
        [REQUEST, buffer("forward", "From", 1, "forward"), buffer("mandatoryQueue", None, None, None)],
    ),
    L3Cache=([param("L3cache", "CacheMemory")], [buffer("response", "To", 2, "response")]),
    Directory=(
        [param("directory", "DirectoryMemory"), param("probeFilter", "CacheMemory"), param("wait", "Cycles")],
        [buffer("unblock", "From", 3, "unblock"), buffer("odd", "From", 7, "something")],
    ),
    DMA=([param("dma_sequencer", "DMASequencer"), param("quiet", "bool")], [REQUEST]),
)


def of_type(elaborated: Json, machine_type: str) -> list[Json]:
    return [c for c in elaborated["controllers"] if c["machine"] == machine_type]


@pytest.fixture(scope="module")
def opteron48() -> Machine:
    return load_machine("opteron48")


@pytest.fixture(scope="module")
def elaborated(opteron48: Machine) -> Json:
    return elaborate(opteron48, TEST)


@pytest.mark.parametrize("name", machine_names())
@pytest.mark.parametrize("caches", ["machine", "tiny"])
def test_every_machine_elaborates_to_plain_json_of_whole_numbers(name: str, caches: str) -> None:
    text = json.dumps(elaborate(load_machine(name), TEST, caches=caches))
    assert not re.search(r"\d\.\d", text.replace(name, ""))
    assert json.loads(text)["schema"] == "moscope.machine/1"


def test_the_page_names_all_parts_of_an_elaborated_machine_and_leaves_fields_to_the_tables(opteron48: Machine) -> None:
    text = (paths.root() / "docs" / "machines.md").read_text(encoding="utf-8").partition("## The elaborated machine")[2]
    shown = set(re.findall(r'"(\w+)"', text.partition("```\n{")[2].partition("```")[0]))
    result = elaborate(opteron48, TEST, runs_guest=True)
    groups = {key for key in ("pipeline", "core", "l1d_prefetch", "l1i_prefetch", "dram_prefetch") if key in result}
    assert not set(result) - shown
    assert len(groups) > 2 and not {field for key in groups for field in result[key]} & shown


def test_prefetchers_of_scripts_are_on_only_if_a_machine_file_or_an_option_names_a_policy(tmp_path: Path) -> None:
    def on(given: str, *sets: str) -> list[str]:
        path = tmp_path / "mine.py"
        path.write_text("from opteron48 import machine as base\nfrom moscope.config import *\n"
                        f"machine = replace(base, l1d_prefetch=replace(base.l1d_prefetch, {given}))\n")
        return [key for key in elaborate(load_machine(str(path), sets), TEST) if key.endswith("_prefetch")]

    default = Machine.l1d_prefetch.policy
    assert on(f"policy=Name({str(default)!r}, {default.source!r})") == on(f"policy={str(default)!r}") == ["l1d_prefetch"]
    assert on("streams=Count(4)") == on("policy='off'") == []
    assert on("streams=Count(4)", "dram_prefetch.policy=stride") == ["dram_prefetch"]


def test_there_is_a_cache_per_core_an_l3_per_chip_and_a_home_and_dma_per_node(elaborated: Json) -> None:
    counts = {t: len(of_type(elaborated, t)) for t in ("L1Cache", "L3Cache", "Directory", "DMA")}
    assert counts == {"L1Cache": 48, "L3Cache": 8, "Directory": 8, "DMA": 8}


def test_versions_count_from_0_and_cores_are_on_their_chips(elaborated: Json) -> None:
    cores = of_type(elaborated, "L1Cache")
    assert [(c["version"], c["core"], c["chip"]) for c in cores] == [(n, n, n // 6) for n in range(48)]
    assert [(c["version"], c["chip"]) for c in of_type(elaborated, "L3Cache")] == [(n, n) for n in range(8)]


def test_cores_run_at_the_core_clock_and_the_rest_at_the_northbridge_clock(elaborated: Json) -> None:
    assert elaborated["clocks"]["core"] == {"period_num": 1_250_000, "period_den": 3}
    assert elaborated["clocks"]["nb"] == {"period_num": 5_000_000, "period_den": 11}
    assert {c["machine"]: c["clock"] for c in elaborated["controllers"]} == {
        "L1Cache": "core", "L3Cache": "nb", "Directory": "nb", "DMA": "nb",
    }  # fmt: skip


def test_arrays_are_found_by_name(elaborated: Json) -> None:
    params = of_type(elaborated, "L1Cache")[0]["params"]
    for name, wanted in {"L1Icache": {"bytes": 65536, "ways": 2, "sets": 512, "replacement": "lru"},
                         "L2cache": {"bytes": 524288, "ways": 16, "sets": 512, "replacement": "lru"}}.items():
        assert params[name] | wanted == params[name]  # an array may have further parameters
    assert of_type(elaborated, "L3Cache")[0]["params"]["L3cache"]["ways"] == 40
    pf = of_type(elaborated, "Directory")[0]["params"]["probeFilter"]
    assert (pf["sets"], pf["ways"]) == (65536, 4)


@pytest.mark.parametrize(
    ("machine_type", "name", "per_chip", "array"),
    [
        ("L1Cache", "L1Icache", False, "l1i"),
        ("L1Cache", "L1Dcache", False, "l1d"),
        ("L1Cache", "L1DcacheMemory", False, "l1d"),
        ("L0Cache", "Icache", False, "l1i"),
        ("L0Cache", "Dcache", False, "l1d"),
        ("L1Cache", "cacheMemory", False, "l1d"),
        ("L1Cache", "L2cache", False, "l2"),
        ("L2Cache", "L2cache", True, "l3"),
        ("L2Cache", "cache", True, "l3"),
        ("L3Cache", "L3cacheMemory", True, "l3"),
        ("Directory", "probeFilter", False, "filter"),
        ("Directory", "directory_cache", False, "filter"),
    ],
)
def test_a_cache_parameter_of_an_unknown_protocol_gets_its_array(
    machine_type: str, name: str, per_chip: bool, array: str
) -> None:
    assert array_of(machine_type, name, {machine_type: {}}, per_chip) == array


def test_a_cache_beside_a_smaller_l0_is_the_second_level() -> None:
    assert array_of("L1Cache", "cache", {"L0Cache": {}, "L1Cache": {}}, False) == "l2"


def test_defaults_of_the_protocol_are_kept_and_the_rest_follows_rules(elaborated: Json) -> None:
    params = of_type(elaborated, "L1Cache")[0]["params"]
    assert params["issue_latency"] == 2
    assert params["send_evictions"] is True
    assert params["text_default"] is True
    assert of_type(elaborated, "Directory")[0]["params"]["wait"] == 1
    assert of_type(elaborated, "DMA")[0]["params"]["quiet"] is False


def test_a_parameter_can_be_set_by_name() -> None:
    machine = load_machine("opteron48", ["params.L1Cache.issue_latency=7", "params.DMA.quiet=true"])
    result = elaborate(machine, TEST)
    assert of_type(result, "L1Cache")[5]["params"]["issue_latency"] == 7
    assert of_type(result, "DMA")[0]["params"]["quiet"] is True


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("params.L1Cache.isue_latency=7", "such as L1Cache.issue_latency"),
        ("params.L1Cache.issue_latency=x", "is not of type Cycles: expected a whole number"),
        ("params.L1Cache.issue_latency=true", "is not of type Cycles: expected a whole number"),
        ("params.DMA.quiet=3", "is not of type bool: expected true or false"),
        ("params.L1Cache.issue_latency=-1", "issue_latency: -1: expected 0 to 1000000"),
        ("params.L1Cache.issue_latency=99999999999999999999", "expected 0 to 1000000"),
    ],
)
def test_a_wrong_parameter_is_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        elaborate(load_machine("opteron48", [text]), TEST)


@pytest.mark.parametrize(("sets", "error"), [
    (["l1d.size=2GiB"], "l1d.size: makes 16777216 sets of 2 ways: expected less than 2GiB of lines in all$"),
    (["l3.size=384MiB", "probe_filter.entry=1B", "probe_filter.ways=1"],
     "probe_filter.entry: makes 67108864 sets of 1 way: expected less than 2GiB of lines")])
def test_an_array_whose_size_is_no_int_of_a_protocol_is_refused_by_its_key(sets: list[str], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        elaborate(load_machine("small", sets), TEST)


def test_a_replacement_policy_that_the_ways_do_not_suit_is_refused_by_its_key() -> None:
    with pytest.raises(ConfigError, match="l3.replacement: 40 ways with tree_plru: expected a power of two of at most 64$"):
        elaborate(load_machine("small", ["l3.replacement=tree_plru"]), TEST)
    elaborate(load_machine("small", ["l2.replacement=tree_plru", "probe_filter.replacement=tree_plru"]), TEST)


def test_a_parameter_that_the_machine_determines_is_refused_but_a_latency_is_not() -> None:
    cache = TEST["machines"][0] | {"roles": {"per": "core", "role": "cache", "values": {"issue_latency": "latencies.l2_miss",
                                                                                        "per_chip": "cores_per_chip"}}}
    bound = {**TEST, "machines": [{**cache, "params": [*cache["params"], param("per_chip", "int")]}, *TEST["machines"][1:]]}
    machine = load_machine("opteron48", ["params.L1Cache.issue_latency=7"])
    assert of_type(elaborate(machine, bound), "L1Cache")[0]["params"] | {"issue_latency": 7, "per_chip": 6} == \
        of_type(elaborate(machine, bound), "L1Cache")[0]["params"]
    with pytest.raises(ConfigError, match="params.L1Cache.per_chip: the machine determines it: expected --set cores_per_chip=VALUE"):
        elaborate(load_machine("opteron48", ["params.L1Cache.per_chip=0"]), bound)


@pytest.mark.parametrize("name, value, says", [
    ("issue_latency", -3, "-3: expected 0 to 1000000"),
    ("number_of_TBEs", 0, "0: expected 1 to"),
])
def test_values_of_the_roles_have_the_limits_of_parameters(name: str, value: int, says: str) -> None:
    cache = TEST["machines"][0] | {"roles": {"values": {name: value}}}
    with pytest.raises(ConfigError, match=f"roles.toml: machines.L1Cache.values.{name}: {says}"):
        elaborate(load_machine("small"), {**TEST, "machines": [cache, *TEST["machines"][1:]]})


def test_parameters_that_every_machine_has_can_be_set_and_are_limited() -> None:
    assert OF_ALL == roles.OF_ALL
    for name in OF_ALL:
        cache, *_ = of_type(elaborate(load_machine("small", [f"params.L1Cache.{name}=5"]), TEST), "L1Cache")
        assert cache["params"][name] == 5
        with pytest.raises(ConfigError, match=f"params.L1Cache.{name}: 0: expected 1 to"):
            elaborate(load_machine("small", [f"params.L1Cache.{name}=0"]), TEST)


def test_a_value_without_default_or_rule_is_named_with_its_protocol() -> None:
    unknown = interface(L1Cache=([param("sequencer", "Sequencer"), param("frobs", "int")], [REQUEST]))
    says = r"^protocol TEST: parameter frobs of L1Cache .*--set params.L1Cache.frobs=VALUE, .*frobs := VALUE.*NAME.roles.toml"
    with pytest.raises(ConfigError, match=says):
        elaborate(load_machine("small"), unknown)
    result = elaborate(load_machine("small", ["params.L1Cache.frobs=3"]), unknown)
    assert of_type(result, "L1Cache")[0]["params"]["frobs"] == 3


def test_evictions_are_reported_unless_the_protocol_says_otherwise() -> None:
    def sent(default: str | None) -> Any:
        found = elaborate(load_machine("small"), interface(L1Cache=([param("sequencer", "Sequencer"),
                                                                     param("send_evictions", "bool", default)], [REQUEST])))
        return of_type(found, "L1Cache")[0]["params"]["send_evictions"]

    assert [sent(None), sent("True"), sent("False")] == [True, True, False]


def test_banks_of_a_shared_cache_are_selected_by_as_many_bits_as_there_are_chips() -> None:
    banked = interface(
        L1Cache=([param("sequencer", "Sequencer"), param("l2_select_num_bits", "int")], [REQUEST]),
        L2Cache=([param("L2cache", "CacheMemory")], [REQUEST]),
    )
    result = elaborate(load_machine("opteron48"), banked)
    assert of_type(result, "L1Cache")[0]["params"]["l2_select_num_bits"] == 3
    assert of_type(result, "L2Cache")[0]["params"]["L2cache"]["ways"] == 48  # no filter in this protocol
    odd = load_machine("opteron48", ["chips=3", "topology=ring"])
    with pytest.raises(ConfigError, match="3 banks.*power of two"):
        elaborate(odd, banked)


def test_tiny_caches_hold_a_few_lines(opteron48: Machine) -> None:
    result = elaborate(opteron48, TEST, caches="tiny")
    sizes = {n: p["sets"] * p["ways"] for c in result["controllers"] for n, p in c["params"].items() if isinstance(p, dict)}
    assert set(sizes) == {"L1Icache", "L1Dcache", "L2cache", "L3cache", "probeFilter"}
    assert max(sizes.values()) <= 8


def test_tiny_caches_have_all_parameters_of_an_array(opteron48: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generic, "described", lambda machine, array, sets, ways: {"replacement": "lru", "further": array})
    for caches in ("machine", "tiny"):
        params = of_type(elaborate(opteron48, TEST, caches=caches), "L1Cache")[0]["params"]
        assert params["L1Icache"] == {"replacement": "lru", "further": "l1i"}


def test_the_sequencer_gets_the_hit_latency_and_the_misses_in_flight(elaborated: Json) -> None:
    assert of_type(elaborated, "L1Cache")[0]["sequencer"] == {
        "hit_cycles": 3, "max_outstanding": 8, "nt_store_type": "ST", "uncached_load_type": "NULL", "flushes": False,
    }  # fmt: skip
    assert "sequencer" not in of_type(elaborated, "DMA")[0]


def test_homes_are_contiguous_blocks_of_each_nodes_memory(elaborated: Json) -> None:
    size = 8 << 30
    assert elaborated["address_map"] == [{"base": n * size, "bytes": size, "node": n} for n in range(8)]


def test_the_network_has_the_links_routes_and_ports_of_the_machine(elaborated: Json, opteron48: Machine) -> None:
    network = elaborated["network"]
    assert network["kind"] == "hypertransport"
    assert network["routers"] == 8
    assert len(network["links"]) == 10
    link = network["links"][0]
    assert (link["a"], link["b"], link["width_bits"], link["clock_hz"]) == (0, 1, 16, 1_000_000_000)
    assert network["routes"] == opteron48.routes()
    assert len(network["ports"]) == 72
    assert network["ports"][7] == {"controller": ["L1Cache", 7], "router": 1}
    assert network["credits"] == {
        "request": 4, "posted": 2, "response": 9, "probe": 9, "request_data": 2, "response_data": 2, "free": 8, "free_data": 2,
    }  # fmt: skip
    assert network["packet_bytes"] == {
        "request": 8, "request_data": 72, "posted": 8, "posted_data": 72,
        "response": 4, "response_data": 68, "probe": 8, "probe_data": 72,
    }  # fmt: skip


def test_a_link_has_the_buffers_of_each_sublink_where_they_are_counted_so(opteron48: Machine) -> None:
    def sets(machine: Machine) -> dict[int, int]:
        return {link["width_bits"]: link["credit_sets"] for link in elaborate(machine, TEST)["network"]["links"]}

    assert sets(opteron48) == {16: 1}
    assert sets(load_machine("opteron48", ["links.credits.per=x8"])) == {16: 2}
    assert sets(load_machine("magnycours_2p")) == {8: 1, 16: 2, 24: 3}


def test_virtual_networks_use_the_channel_of_their_type(elaborated: Json) -> None:
    assert elaborated["network"]["vnet_channel"] == {
        "0": "request", "1": "probe", "2": "response", "3": "response", "7": "posted",
    }  # fmt: skip


def test_edges_bring_their_own_width() -> None:
    links = elaborate(load_machine("magnycours_2p"), TEST)["network"]["links"]
    assert sorted(link["width_bits"] for link in links) == [8, 8, 16, 16, 24, 24]
    assert {link["clock_hz"] for link in links} == {3_200_000_000}


def test_the_ideal_network_has_a_latency_and_jitter_only(opteron48: Machine) -> None:
    network = elaborate(opteron48, TEST, network="ideal", jitter=Time("20ns"))["network"]
    assert network == {"kind": "ideal", "latency_fs": 10_000_000, "jitter_fs": 20_000_000}


def test_one_channel_of_dram_can_be_chosen() -> None:
    assert elaborate(load_machine("opteron48"), TEST)["dram"]["channels"] == 2
    assert elaborate(load_machine("opteron48", ["dram.channels=1"]), TEST)["dram"]["channels"] == 1


def test_dram_settings_replace_entries_of_the_standards_table() -> None:
    machine = load_machine("opteron48", ["dram.settings.scheduler_depth=3", "dram.settings.timing_fs.tRC=61500000"])
    dram = elaborate(machine, TEST)["dram"]
    assert dram["scheduler_depth"] == 3
    assert dram["timing_fs"]["tRC"] == 61_500_000
    assert elaborate(load_machine("opteron48"), TEST)["dram"]["timing_fs"]["tRC"] == 60_000_000


@pytest.mark.parametrize(
    ("cores", "chips"), [(1, 1), (2, 2), (7, 7), (8, 8), (12, 6), (13, 1), (16, 8), (48, 8), (64, 8)]
)
def test_a_machine_can_be_cut_to_a_number_of_cores(opteron48: Machine, cores: int, chips: int) -> None:
    machine = with_cores(opteron48, cores)
    assert (machine.cores, machine.chips) == (cores, chips)
    assert len(of_type(elaborate(machine, TEST), "L1Cache")) == cores


def test_cores_with_more_controllers_than_the_engine_can_have_are_refused_where_they_are_given(opteron48: Machine) -> None:
    assert len(elaborate(with_cores(opteron48, 232), TEST)["controllers"]) == 232 + 3 * 8
    wrong = "cores need 264 controllers of TEST: expected fewer cores, with at most 256 controllers"
    with pytest.raises(ConfigError, match=f"^--cores: 240 {wrong}"):
        elaborate(with_cores(opteron48, 240), TEST)
    sets = ["cores_per_chip=30"]
    with pytest.raises(ConfigError) as raised:
        elaborate(load_machine("opteron48", sets), TEST)
    assert str(blamed(raised.value, "opteron48", sets)) == f"--set cores_per_chip=30: cores_per_chip: 240 {wrong}"


def test_elaboration_is_deterministic(opteron48: Machine, elaborated: Json) -> None:
    assert json.dumps(elaborate(opteron48, TEST)) == json.dumps(elaborated)


def test_more_free_tbes_than_there_are_is_refused() -> None:
    crowded = interface(L1Cache=([param("sequencer", "Sequencer"), param("free_tbes", "int")], [REQUEST]))
    crowded["machines"][0]["roles"] = {"values": {"number_of_TBEs": 8}}
    result = elaborate(load_machine("small", ["params.L1Cache.free_tbes=8"]), crowded)
    assert of_type(result, "L1Cache")[0]["params"] == {"free_tbes": 8, "number_of_TBEs": 8}
    with pytest.raises(ConfigError, match="params.L1Cache.free_tbes: 9: expected at most 8, the number of its TBEs"):
        elaborate(load_machine("small", ["params.L1Cache.free_tbes=9"]), crowded)
    with pytest.raises(ConfigError, match="params.L1Cache.number_of_TBEs: 7: expected at least 8, its free_tbes"):
        elaborate(load_machine("small", ["params.L1Cache.free_tbes=8", "params.L1Cache.number_of_TBEs=7"]), crowded)


@pytest.mark.parametrize(("per", "cores"), [("core", 1), ("chip", 2)])
def test_fewer_tbes_than_requests_of_the_cores_are_refused(per: str, cores: int) -> None:
    filled = interface(L1Cache=([param("sequencer", "Sequencer")], [REQUEST]))
    filled["machines"][0]["roles"] = {"per": per, "for_requests": ["number_of_TBEs"]}
    given = ["cores_per_chip=2", "outstanding_misses=5", "l1i_prefetch.policy=off", "l1d_prefetch.buffers=4"]
    least, key = cores * (5 + 4), "params.L1Cache.number_of_TBEs"
    assert elaborate(load_machine("small", [*given, f"{key}={least}"]), filled)
    with pytest.raises(ConfigError, match=f"{key}: {least - 1}: expected at least {least}, as many requests as its cores"):
        elaborate(load_machine("small", [*given, f"{key}={least - 1}"]), filled)
    assert elaborate(load_machine("small", [*given, "l1d_prefetch.policy=off", f"{key}={least - 4 * cores}"]), filled)


def test_two_cores_that_share_a_controller_are_of_one_chip() -> None:
    pairs = interface(L1Cache=([param("sequencer", "Sequencer")], [REQUEST]))
    pairs["machines"][0]["roles"] = {"per": "pair"}
    found = of_type(elaborate(load_machine("opteron48"), pairs), "L1Cache")
    assert [c["chip"] for c in found] == [core // 6 for core in range(0, 48, 2)]
    with pytest.raises(ConfigError, match="cores_per_chip: 3: two cores of a chip share a L1Cache: expected an even number"):
        elaborate(load_machine("opteron48", ["cores_per_chip=3"]), pairs)
