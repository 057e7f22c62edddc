# SPDX-License-Identifier: BSD-3-Clause
"""`moscope latency`: rows that are what they say, borne out by their traces; bandwidths with a named limit."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moscope import jsonio, paths
from moscope.bench.streams import LOOPS, streams_of
from moscope.bench.streams import measure as measure_streams
from moscope.cli import Shared
from moscope.config import load_machine, machine_names
from moscope.errors import ProtocolError, UserError
from moscope.experiment import TOO_LONG, Subject, prepare, slowness_is_a_user_error
from moscope.latencies import references, steady
from moscope.latencies.bandwidth import Load, find_limit, loads
from moscope.latencies.bandwidth import measure as measure_bandwidth
from moscope.latencies.report import difference, print_tables, remarks
from moscope.latencies.rows import Row, buffer_in, levels, measure, measuring_core, middle_half
from moscope.traces.text import SEGMENTS

Moscope = Callable[..., subprocess.CompletedProcess[str]]


def latency(moscope: Moscope, *options: str) -> dict[str, Any]:
    got = moscope("latency", "--json", *options)
    assert got.returncode == 0, got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    return document


def recomputed(path: Path) -> float:
    """Core cycles of the middle half of the accesses to each home of a trace file, from nothing but their segments."""
    trace = json.loads(path.read_text())
    jsonio.validate(trace)
    numerator, denominator = trace["clock"]["core_period_fs"]
    middle: list[int] = []
    for home in {a["home"] for a in trace["accesses"]}:
        sums = sorted(sum(s["fs"] for s in a["segments"]) for a in trace["accesses"] if a["home"] == home)
        middle += sums[len(sums) // 4: len(sums) - len(sums) // 4]
    return sum(middle) / len(middle) * denominator / numerator


def test_each_row_is_recomputed_from_the_segments_of_its_trace(moscope: Moscope, tmp_path: Path) -> None:
    document = latency(moscope, "--machine", "small")
    for row in document["rows"]:
        assert recomputed(tmp_path / row["trace"]) == pytest.approx(row["recomputed"], abs=0.01)
        assert row["measured"] == pytest.approx(row["recomputed"], rel=0.02, abs=2)
        assert sum(s["cycles"] for s in row["segments"]) == pytest.approx(row["measured"], abs=0.02)


def test_rows_come_level_by_level_each_slower_than_the_one_before(moscope: Moscope) -> None:
    rows = latency(moscope, "--machine", "small")["rows"]
    names = [r["name"] for r in rows]
    assert names[:4] == ["L1", "L2", "L3", "DRAM 0 hops"] and names[4] == "DRAM 1 hop"
    measured = [r["measured"] for r in rows]
    assert measured == sorted(measured)


def test_each_row_is_served_by_the_level_that_it_names(moscope: Moscope) -> None:
    rows = {r["name"]: r["suppliers"] for r in latency(moscope, "--machine", "small")["rows"]}
    assert set(rows["L3"]) == {"L3Cache"}
    assert all(set(suppliers) == {"Directory"} for name, suppliers in rows.items() if name.startswith("DRAM"))
    assert not {"Directory", "L3Cache"} & (set(rows["L1"]) | set(rows["L2"]))


def test_the_48_core_machine_has_the_seven_rows_of_the_contract(moscope: Moscope) -> None:
    rows = latency(moscope, "--machine", "opteron48")["rows"]
    assert [(r["name"], r["reference"], r["source"]) for r in rows] == [
        ("L1", 3, "published"), ("L2", 14, "published"), ("L3", 28, "published"), ("DRAM 0 hops", 122, "published"),
        ("DRAM 1 hop", 249, "derived"), ("DRAM 2 hops", 376, "derived"), ("DRAM 3 hops", 503, "published")]


def test_rows_that_set_may_change_have_no_published_reference(moscope: Moscope) -> None:
    rows = latency(moscope, "--set", "links.clock=2.4GHz")["rows"]
    assert [r["reference"] for r in rows] == [3, 14, 28, None, None, None, None]
    assert [r["source"] for r in rows] == ["published"] * 3 + [None] * 4
    text = moscope("latency", "--set", "links.clock=2.4GHz").stdout
    assert "The published values are those of opteron48 without --set links.clock=2.4GHz." in text


@pytest.mark.parametrize(("sets", "kept"), [
    ((), {"l1", "l2", "l3", "dram", "dram_hop"}),
    (("memory_per_node=1GiB", "name=mine"), {"l1", "l2", "l3", "dram", "dram_hop"}),
    (("core.model=blocking", "pipeline.store_buffer=2", "nic.queues=2"), {"l1", "l2", "l3", "dram", "dram_hop"}),
    (("dram.channels=1",), {"l1", "l2", "l3"}),
    (("l2.ways=8",), set()),
    (("l2.ways=8", "references.l2=14"), {"l2"}),
])
def test_references_are_kept_only_for_rows_that_an_option_cannot_change(sets: tuple[str, ...], kept: set[str]) -> None:
    machine = load_machine("opteron48", sets)
    found = references.latency_references(machine, sets)
    assert {name for name in ("l1", "l2", "l3", "dram", "dram_hop") if getattr(found, name) is not None} == kept
    assert bool(references.bandwidth_references(machine, sets)) == (kept >= {"dram"} and machine.name == "opteron48")


@pytest.mark.parametrize(("change", "kept", "said"), [
    ("", {"l1", "l2", "l3", "dram", "dram_hop"}, ""),
    ('topology="ring"', {"l1", "l2", "l3"}, "The published values are those of opteron48 without this file's topology. Rows that"),
    ('l1d=replace(m.l1d, ways=4), cores_per_chip=4', set(), "without this file's cores_per_chip, l1d. Rows that such a difference may"),
    ('topology="ring", name="mine"', {"l1", "l2", "l3"}, "The published values are those of opteron48 without this file's topology."),
    ('topology="ring", name="mine", references=replace(m.references, dram_hop=100)', {"l1", "l2", "l3", "dram", "dram_hop"}, ""),
])
def test_an_edited_copy_is_not_compared_with_what_was_published_of_another_machine(tmp_path: Path, change: str, kept: set[str],
                                                                                   said: str) -> None:
    file = tmp_path / "copy.py"
    file.write_text(f"from moscope.config import replace\nfrom opteron48 import machine as m\nmachine = replace(m, {change})\n")
    machine = load_machine(str(file))
    found = references.latency_references(machine, ())
    assert {name for name in ("l1", "l2", "l3", "dram", "dram_hop") if getattr(found, name) is not None} == kept
    assert bool(references.bandwidth_references(machine)) == (kept >= {"dram"} and machine.name == "opteron48")
    assert said in references.note(machine, ()) and bool(said) == bool(references.note(machine, ()))


@pytest.mark.parametrize(("name", "bandwidths", "said"), [("magnycours_2p", False, False), ("magnycours_2p", True, True),
                                                          ("opteron48", False, True), ("small", True, False)])
def test_published_values_are_mentioned_only_where_a_table_would_have_some(name: str, bandwidths: bool, said: bool) -> None:
    sets = ["dram.channels=1"]
    assert bool(references.note(load_machine(name, sets), sets, bandwidths)) == said


def test_a_protocol_with_one_cache_has_one_cache_row(moscope: Moscope) -> None:
    rows = latency(moscope, "--machine", "small", "--set", "protocol=MSI")["rows"]
    assert [r["name"] for r in rows if not r["name"].startswith("DRAM")] == ["L1"]


def test_an_l1_load_takes_what_the_machine_says(moscope: Moscope) -> None:
    rows = latency(moscope, "--machine", "small", "--set", "latencies.l1_hit=5cycles")["rows"]
    assert rows[0]["measured"] == 5


def test_bandwidths_name_what_limits_them(moscope: Moscope) -> None:
    rows = latency(moscope, "--machine", "small", "--bandwidth")["rows"]
    loads = {r["name"]: r for r in rows if r["unit"] == "GB/s"}
    assert set(loads) == {"node", "machine", "XFIRE"}
    assert loads["machine"]["measured"] > loads["node"]["measured"] > 0
    assert all(r["limit"]["name"] and r["limit"]["why"] for r in loads.values())


def test_with_one_miss_in_flight_the_misses_in_flight_are_the_limit(moscope: Moscope) -> None:
    rows = latency(moscope, "--machine", "small", "--bandwidth", "--set", "outstanding_misses=1")["rows"]
    node = next(r for r in rows if r["name"] == "node")
    assert node["limit"]["name"] == "misses in flight"


def test_people_get_a_table_beside_the_references(moscope: Moscope) -> None:
    got = moscope("latency", "--quiet")
    assert got.returncode == 0, got.stderr
    assert "DRAM 3 hops" in got.stdout and "503" in got.stdout and "published" in got.stdout
    assert not got.stderr


@pytest.mark.parametrize("measured, said", [(100.0, "0.0 %"), (100.04, "0.0 %"), (99.96, "0.0 %"), (100.06, "+0.1 %"), (97.0, "-3.0 %")])
def test_a_deviation_that_rounds_to_zero_has_no_sign(measured: float, said: str) -> None:
    assert difference(measured, 100.0)[0] == said


def test_results_never_replace_a_folder_of_something_else(moscope: Moscope, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    got = moscope("latency", "--machine", "small", "--out", "mine")
    assert got.returncode == 2 and (tmp_path / "mine" / "thesis.txt").exists()


def test_the_measuring_core_sees_the_greatest_distance() -> None:
    machine = load_machine("opteron48")
    hops = machine.hops()
    chip = measuring_core(machine) // int(machine.cores_per_chip)
    assert max(hops[chip]) == max(map(max, hops)) == 3


def test_the_middle_half_leaves_out_outliers_on_both_sides() -> None:
    accesses = [{"latency_fs": t, "address": "0x0"} for t in (5, 1, 900, 6, 5, 4, 7, 5)]
    assert sorted(a["latency_fs"] for a in middle_half(accesses, 4096)) == [5, 5, 5, 6]


def test_the_middle_half_is_taken_home_by_home() -> None:
    near = [{"latency_fs": t, "address": "0x0"} for t in (9, 10, 11, 90)]
    far = [{"latency_fs": t, "address": "0x1000"} for t in (20, 21, 22, 95)]
    assert sorted(a["latency_fs"] for a in middle_half(near + far, 4096)) == [10, 11, 21, 22]


# --- naming the limit, from made-up counts --------------------------------------------------------

LOAD = Load("node", (0,), ((0,),), 8, None, None)
NO_NETWORK = {"links": [], "ports": []}
TIMINGS = {"tCK_fs": 3000, "timing_fs": {"tRRD": 7500, "tFAW": 37500}}


def dram(busy: int, queue: int = 0, **lost: int) -> dict[str, Any]:
    channel = {"reads": 10, "writes": 0, "busy": busy, "lost": lost, "accounted": busy + sum(lost.values()),
               "read_queue": 100 * queue, "write_queue": 0, "clocks": 100}
    return {"dram": [{"name": "dram-0", "node": 0, "channels": [channel]}], "network": NO_NETWORK}


def test_a_dram_that_loses_its_time_to_one_rule_is_named_by_that_rule() -> None:
    limit = find_limit(dram(50, row_cycle=45, no_request=5), 1000, LOAD, 500, TIMINGS)
    assert limit.name == "DRAM row cycle" and "45 %" in limit.why


@pytest.mark.parametrize(("faw", "name"), [(37_500, "four-activate limit (tFAW)"), (36_000, "minimum time between activates (tRRD)"),
                                           (0, "minimum time between activates (tRRD)")])
def test_of_the_rules_for_activates_the_one_that_allows_fewer_is_named(faw: int, name: str) -> None:
    timings = {**TIMINGS, "timing_fs": {"tRRD": 7500, "tFAW": faw}}
    assert find_limit(dram(60, activate_rate=40), 1000, LOAD, 500, timings).name == f"DRAM {name}"


def test_a_dram_that_waits_for_requests_is_not_the_limit() -> None:
    assert find_limit(dram(50, row_cycle=10, no_request=40), 1000, LOAD, 500, TIMINGS).name == "misses in flight"
    assert find_limit(dram(50, row_cycle=10, activate=30, precharge=10), 1000, LOAD, 500, TIMINGS).name == "misses in flight"


@pytest.mark.parametrize(("queue", "name"), [(12, "DRAM four-activate limit (tFAW)"), (2, "crossbar port 0:L3Cache0")])
def test_of_several_resources_in_use_the_one_at_which_most_requests_wait_is_the_limit(queue: int, name: str) -> None:
    port = {"name": "0:L3Cache0", "busy_fs": 960, "wait_fs": 5000}
    counts = {**dram(60, queue, activate_rate=40), "network": {"links": [], "ports": [port]}}
    assert find_limit(counts, 1000, LOAD, 500, TIMINGS).name == name


def test_a_link_without_buffers_behind_it_is_named_with_its_channel() -> None:
    def channel(busy: int, stall: int) -> dict[str, int]:
        return {"busy_fs": busy, "credit_stall_fs": stall, "wait_fs": stall}

    link = {"name": "0->2", "channels": {"request": channel(100, 0), "response": channel(200, 650)}}
    limit = find_limit({"network": {"links": [link], "ports": []}}, 1000, LOAD, 500, TIMINGS)
    assert limit.name == "link 0->2, buffers of channel response"


def test_a_row_leaves_out_nodes_that_packets_reach_by_a_detour() -> None:
    edges = "0-1 0-2 0-3 1-4 2-6 3-4 3-5 4-5 4-6 5-7 6-7"
    subject = prepare(Shared(machine="opteron48", sets=[f"topology={edges}"], quiet=True))
    assert subject.machine.hops()[0][6] == 2
    nodes = {row.name: row.nodes for row in levels(subject) if row.nodes}
    assert nodes["DRAM 2 hops"] and 6 not in nodes["DRAM 2 hops"]


@pytest.mark.parametrize(("sets", "fs"), [("links.latency=1ms", 2 * 10**12), ("dram.settings.timing_fs.tCL=1ms", 10**12)])
def test_a_request_of_a_slow_machine_does_not_count_as_lost(sets: str, fs: int) -> None:
    subject = prepare(Shared(machine="small", sets=[sets], quiet=True))
    level = next(one for one in levels(subject) if one.name == "DRAM 1 hop")
    assert measure(subject, level).measured == pytest.approx(subject.cycles(fs), rel=0.001)


@pytest.mark.parametrize(("under_way", "ahead"), [
    (["outstanding_misses=63"], 1000),
    (["outstanding_misses=2", "l1d_prefetch.policy=next_line", "l1d_prefetch.ahead=32", "l1d_prefetch.buffers=64"], 450)])
def test_a_request_does_not_count_as_lost_while_it_waits_behind_those_of_many_cores(under_way: list[str], ahead: int) -> None:
    sets = ["chips=2", "cores_per_chip=16", "topology=0-1", "links.latency=10us", "links.credits.response_data=1",
            "links.credits.free_data=0", *under_way]
    subject = prepare(Shared(machine="small", sets=sets, quiet=True))
    remote = subject.machine.memory_per_node.bytes
    lines = int(subject.machine.outstanding_misses)
    streams = [{"core": c, "in_flight": lines, "ranges": [[remote + c * 4096, 4096]]} for c in range(16)]
    answer = subject.run([{"kind": "loads", "accesses": 63, "streams": streams}])[0]
    assert max(s["longest_fs"] for s in answer["streams"]) >= ahead * 2 * subject.machine.links.latency.fs  # one line at a time


def test_a_machine_too_slow_for_an_experiment_is_a_user_error() -> None:
    subject = prepare(Shared(machine="small", sets=["links.clock=1Hz"], quiet=True))
    with pytest.raises(UserError, match="latency: DRAM 1 hop: its loads did not finish within 3.6 s"):
        measure(subject, next(one for one in levels(subject) if one.name == "DRAM 1 hop"))


def test_requests_of_the_machines_of_moscope_are_lost_after_a_millisecond() -> None:
    assert {prepare(Shared(machine=name, quiet=True)).watchdog_fs() for name in machine_names()} == {10**12}


def test_a_protocol_whose_cores_have_no_caches_is_a_user_error() -> None:
    subject = prepare(Shared(machine="small", quiet=True))
    without = [{**c, "params": {}} for c in subject.elaborated["controllers"]]
    bare = replace(subject, elaborated={**subject.elaborated, "controllers": without})
    with pytest.raises(UserError, match="latency: the cores of .* have no caches: expected a protocol that has some"):
        levels(bare)


def small_with(memory: int) -> Subject:
    sets = [f"memory_per_node={memory}MiB", "l2.replacement=random", "l3.replacement=random"]
    return prepare(Shared(machine="small", sets=sets, quiet=True))


def test_a_bandwidth_of_memory_that_the_caches_hold_is_a_user_error() -> None:
    load = loads(small_with(4))[0]
    with pytest.raises(UserError, match="memory_per_node: 4MiB: expected 16MiB or more for a bandwidth"):
        measure_bandwidth(small_with(4), load)
    least, more = (measure_bandwidth(small_with(memory), load) for memory in (16, 64))
    assert least.measured == pytest.approx(more.measured, rel=0.02)


@pytest.mark.parametrize("loop", LOOPS)
def test_streams_over_memory_that_the_caches_hold_are_a_user_error(loop: str) -> None:
    with pytest.raises(UserError, match=f"memory_per_node: 27MiB: expected 28MiB or more for {loop}"):
        streams_of(small_with(27), loop, 1, 8)
    assert streams_of(small_with(28), loop, 1, 8)


@pytest.mark.parametrize(("key", "changes"), [("l3_hit", {"L3"}), ("l2_miss", {"L3", "DRAM 0 hops"}), ("l3_miss", {"DRAM 0 hops"}),
                                               ("done", set())])
def test_a_fitted_latency_changes_the_rows_that_the_calibration_names(key: str, changes: set[str]) -> None:
    usual, slower = (prepare(Shared(machine="small", sets=sets, quiet=True)) for sets in ([], [f"latencies.{key}=100"]))
    rows = [(measure(usual, level), measure(slower, level)) for level in levels(usual)[:4]]
    assert {before.name for before, after in rows if after.measured != before.measured} == changes


# --- rows that need a remark ----------------------------------------------------------------------

@pytest.mark.parametrize(("sets", "level"), [
    (["l2.size=4KiB"], "L2"),
    (["l3.size=24KiB", "probe_filter.enabled=false"], "L3"),
])
def test_a_cache_that_is_not_larger_than_those_in_front_serves_its_own_row(sets: list[str], level: str) -> None:
    subject = prepare(Shared(machine="small", sets=sets, quiet=True))
    row = measure(subject, next(one for one in levels(subject) if one.name == level))
    assert set(row.suppliers) == {f"{level}Cache"}
    assert not remarks([row], "Directory")


def test_the_buffer_of_a_much_larger_level_is_the_geometric_mean() -> None:
    assert buffer_in(64, 0) == 32 and buffer_in(512, 64) == 181 and buffer_in(64, 64) == 96 and buffer_in(96, 576) == 624


def row(name: str, suppliers: dict[str, int], cycles: float, homes: dict[int, float] | None = None) -> Row:
    return Row(name, None, None, cycles, cycles, suppliers, [], {}, cycles, cycles, homes or {})


def test_a_row_whose_loads_other_levels_served_has_a_remark() -> None:
    l1, dram = row("L1", {"own": 256}, 3), row("DRAM 0 hops", {"Directory": 256}, 122)
    assert remarks([l1, row("L2", {"own": 190, "L2Cache": 66}, 3), row("L3", {"Directory": 256}, 122), dram], "Directory") == {
        "L2": "L1 served 190 of its 256 loads", "L3": "DRAM served 256 of its 256 loads"}
    assert not remarks([l1, row("L2", {"L2Cache": 250, "L3Cache": 6}, 14), row("L3", {"L3Cache": 255, "Directory": 1}, 28), dram],
                       "Directory")
    assert not remarks([l1, row("L2", {"own": 256}, 14)], "Directory")  # a protocol that does not tell its private levels apart


def test_a_row_over_unequal_homes_has_a_remark_with_their_range() -> None:
    assert remarks([row("DRAM 1 hop", {"Directory": 256}, 1141.2, {1: 2030.4, 2: 252.0})], "Directory") == {
        "DRAM 1 hop": "the mean over homes from 252.0 cycles (node 2) to 2030.4 cycles (node 1)"}
    assert not remarks([row("DRAM 1 hop", {"Directory": 256}, 252, {1: 252.0, 2: 254.0})], "Directory")


def test_the_mark_of_a_remark_stays_beside_the_name_of_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    subject = prepare(Shared(quiet=True))
    far = row("DRAM 2 hops", {"Directory": 256}, 391.6, {1: 413.8, 2: 380.5})
    far.segments = [{"name": name, "cycles": 100.0} for name in SEGMENTS]
    print_tables(subject, [far], [], Path("out"))
    printed = capsys.readouterr().out
    assert "DRAM 2 hops *" in printed and "recomputed" in printed


# --- machines that are too slow to be measured ----------------------------------------------------

def test_a_walk_beyond_the_limit_of_simulated_time_is_a_user_error() -> None:
    assert f'"{TOO_LONG}3.6 s' in (paths.root() / "src" / "experiment" / "paced_machine.hh").read_text(encoding="utf-8")
    said = "latency: L2: its loads did not finish within 3.6 s: expected a machine with shorter latencies"
    with pytest.raises(UserError, match=said), slowness_is_a_user_error("latency: L2"):
        raise ProtocolError(f"{TOO_LONG}3.6 s")
    with pytest.raises(ProtocolError, match="stuck"), slowness_is_a_user_error("latency: L2"):
        raise ProtocolError("stuck")


def test_a_machine_of_which_a_second_shows_no_steady_state_is_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady, "WINDOW_FS", 1_000_000)
    monkeypatch.setattr(steady, "LONGEST_FS", 2_000_000)
    subject = prepare(Shared(machine="small", sets=["latencies.memory_controller=100000"], quiet=True))
    said = "a window of 150 latencies would take more than .* s: expected a machine with shorter latencies"
    with pytest.raises(UserError, match=f"bandwidth: node: {said}"):
        measure_bandwidth(subject, loads(subject)[0])
    with pytest.raises(UserError, match=f"streams: read: {said}"):
        measure_streams(subject, "read", 1, 1)
