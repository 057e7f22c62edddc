# SPDX-License-Identifier: BSD-3-Clause
"""`moscope trace` on real machines: every access accounted for, every message with an end, diagrams that can be read."""

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope import cli, jsonio
from moscope.traces import diagram, text
from moscope.traces import document as trace_document
from moscope.traces import part as parts
from moscope.traces.document import UNFINISHED
from moscope.traces.draw import Box, Text, text_width, to_svg
from moscope.traces.script import ScriptAccess

Moscope = Callable[..., subprocess.CompletedProcess[str]]
SMALL = ("--machine", "small")
MSI = (*SMALL, "--set", "protocol=MSI")


def trace(moscope: Moscope, script: str, *options: str) -> dict[str, Any]:
    got = moscope("trace", script, "--json", *options)
    assert got.returncode == 0, got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    return document


@pytest.mark.parametrize("options", [SMALL, MSI], ids=["MOESI_HTAssist", "MSI"])
def test_segments_of_every_access_add_up_to_its_latency(moscope: Moscope, options: tuple[str, ...]) -> None:
    document = trace(moscope, "c0 ld A@n0; c1 st A@n0; c0 ld A@n0 | c7 ld A@n0; c3 rmw B@n1; c2 if C@n1", *options)
    assert len(document["accesses"]) == 6
    for access in document["accesses"]:
        assert sum(s["fs"] for s in access["segments"]) == access["done"] - access["issued"] == access["latency_fs"] > 0
        assert sum(s["cycles"] for s in access["segments"]) == pytest.approx(access["latency_cycles"])


def test_every_message_arrives_not_before_it_is_sent_and_its_hops_follow_each_other(moscope: Moscope) -> None:
    document = trace(moscope, "c0 st A@n3; c7 st A@n3; c0 ld A@n3", *SMALL)
    assert document["messages"]
    for message in document["messages"]:
        assert message["deliveries"], message
        assert all(d["at"] >= message["sent"] for d in message["deliveries"])
        by_link = {(h["from"], h["to"]): h for h in message["hops"]}
        for hop in message["hops"]:
            assert hop["depart"] < hop["arrive"]
            followers = [h for (start, _), h in by_link.items() if start == hop["to"]]
            assert all(h["depart"] >= hop["arrive"] for h in followers)


def test_every_transition_names_the_message_that_caused_it(moscope: Moscope) -> None:
    document = trace(moscope, "c0 st A@n1; c1 ld A@n1", *MSI)
    messages = {m["id"]: m for m in document["messages"]}
    for t in document["transitions"]:
        assert t["at"] >= min(d["at"] for d in messages[t["cause"]]["deliveries"])


@pytest.mark.parametrize("options", [(), ("--set", "probe_filter.enabled=false")], ids=["filter", "broadcast"])
def test_each_transition_begins_in_the_state_in_which_the_one_before_it_ended(moscope: Moscope, options: tuple[str, ...]) -> None:
    """Also at a home without an entry for the line, which cannot hold the declared next state."""
    document = trace(moscope, "c0 nt A@n1:8; c1 nt A@n1:64; c7 ldu A@n1; d3 st A@n1; c0 ld A@n1", *SMALL, *options)
    held: dict[tuple[str, str], str] = {}
    for t in document["transitions"]:
        place = (t["controller"], t["address"])
        assert t["state"] == held.get(place, t["state"]), t
        held[place] = t["next"]


def test_msi_load_miss_takes_the_six_steps_of_the_textbook(moscope: Moscope) -> None:
    document = trace(moscope, "c0 ld A@n0", *MSI)
    assert [(t["machine"], t["state"], t["event"], t["next"]) for t in document["transitions"]] == [
        ("L1Cache", "I", "Load", "IS"), ("Directory", "I", "GetS", "B_D"), ("Directory", "B_D", "Mem_Data", "B_U"),
        ("L1Cache", "IS", "Data", "S"), ("Directory", "B_U", "UnblockS", "S")]
    assert [m["type"] for m in document["messages"]] == ["LD", "GetS", "MEMORY_READ", "MEMORY_READ", "Data", "UnblockS"]


def test_a_dram_answers_a_read_with_data_and_a_write_without(moscope: Moscope) -> None:
    document = trace(moscope, "c0 st A@n0; c1 ld A@n0", *MSI)
    memory = [(m["type"], m["from"].startswith("DRAM"), m["data"]) for m in document["messages"] if m["structure"] == "MemoryMsg"]
    assert memory == [("MEMORY_READ", False, False), ("MEMORY_READ", True, True), ("MEMORY_WB", False, True), ("MEMORY_WB", True, False)]


def test_an_access_without_a_size_ends_at_the_end_of_its_line(moscope: Moscope) -> None:
    document = trace(moscope, "c0 st A@n0; c0 st A@n0+60; c0 st A@n0+8:2; d0 ld A@n0+62", *SMALL)
    assert [a["size"] for a in document["accesses"]] == [8, 4, 2, 2]


def test_a_step_begins_after_the_one_before_and_its_accesses_at_the_same_time(moscope: Moscope) -> None:
    document = trace(moscope, "c0 ld A@n0; c1 ld A@n0 | c2 ld A@n0; c3 ld A@n0", *SMALL)
    first, second, third, last = document["accesses"]
    assert first["done"] <= second["issued"] == third["issued"]
    assert max(second["done"], third["done"]) <= last["issued"]


def test_a_load_sees_the_number_of_the_store_before_it(moscope: Moscope) -> None:
    document = trace(moscope, "c0 st A@n0; c1 ld A@n0; c2 st A@n0; c7 ld A@n0; c3 rmw A@n0; c0 ld A@n0", *SMALL)
    assert [a["value"] for a in document["accesses"]] == [1, 1, 3, 3, 4, 4]


def test_a_flush_leaves_no_copy(moscope: Moscope) -> None:
    document = trace(moscope, "c0 st A@n0; c1 flush A@n0; c0 ld A@n0", *SMALL)
    assert document["accesses"][2]["supplier"] == "Directory"
    assert document["accesses"][2]["value"] == 1


def test_an_uncached_load_takes_the_line_to_memory(moscope: Moscope) -> None:
    document = trace(moscope, "c0 st A@n0; c1 ldu A@n0; c0 ld A@n0; c1 nt A@n0; c0 ldu A@n0", *SMALL)
    assert [a["value"] for a in document["accesses"]] == [1, 1, 1, 4, 4]
    assert [document["accesses"][i]["supplier"] for i in (2, 4)] == ["Directory"] * 2


def test_an_access_records_its_supplier_the_suppliers_state_and_the_number_of_probes(moscope: Moscope) -> None:
    def shown(access: dict[str, Any]) -> tuple[object, ...]:
        return tuple(access[k] for k in ("supplier", "supplier_number", "supplier_state", "probes"))

    script = "c0 ld A@n1; c0 st A@n1; c7 ld A@n1; c5 ld A@n1; c7 st A@n1; c0 ld B@n1; c7 ld B@n1; c7 st B@n1"
    first, own, far, third, taken, _, shared, upgrade = (shown(a) for a in trace(moscope, script)["accesses"])
    assert first == ("Directory", 1, "NP", 0)
    assert own[1:] == (None, None, 0), "it had the line to itself"
    assert far == ("L1Cache", 0, "M", 2), "its chip was asked, and there the core"
    assert third[:3] == ("L1Cache", 0, "O")
    assert taken[:3] == ("L1Cache", 0, "O") and taken[3] > 8, "a dirty owner sends the line to whoever takes it; all chips were asked"
    assert shared == ("L1Cache", 0, "E", 2)
    assert upgrade[1:3] == (None, None) and upgrade[3] > 8, "no data moved; all chips were asked, and a core"


def test_an_access_that_brings_no_line_to_the_core_has_no_supplier(moscope: Moscope) -> None:
    flush = trace(moscope, "c0 st A@n1; c7 flush A@n1")["accesses"][1]
    assert (flush["supplier"], flush["supplier_number"], flush["supplier_chip"]) == ("own", None, None), "the owner's line goes to memory"
    assert flush["probes"] >= 2


def test_reads_side_by_side_know_at_least_their_suppliers_chip(moscope: Moscope) -> None:
    script = "c0 st A@n1; c7 ld A@n1; " + " | ".join(f"c{core} ld A@n1" for core in range(12, 48))
    reads = trace(moscope, script)["accesses"][2:]
    assert {a["supplier"] for a in reads} <= {"L1Cache", "L3Cache"} and {a["supplier_chip"] for a in reads} >= {0}
    assert all(a["supplier_chip"] is not None for a in reads)
    assert any(a["supplier_number"] is None for a in reads), "some are answered with what the owner gave to others"


def test_the_same_seed_gives_the_same_trace(moscope: Moscope) -> None:
    script = "c0 st A@n1 | c5 st A@n1 | c7 ld A@n1; c0 ld A@n1"
    assert trace(moscope, script, *SMALL) == trace(moscope, script, *SMALL)


def test_a_far_home_costs_more_by_its_links(moscope: Moscope) -> None:
    document = trace(moscope, "c0 ld A@n0; c0 ld A@n3", *SMALL)
    near, far = document["accesses"]

    def links(access: dict[str, Any]) -> int:
        return sum(s["fs"] for s in access["segments"] if s["name"] == "link")

    assert links(near) == 0 < links(far) and near["hops"] == 0 < far["hops"]


def test_the_text_shows_each_message_transition_and_sum(moscope: Moscope) -> None:
    got = moscope("trace", "c0 ld A@n0; c1 st A@n0", *MSI)
    assert got.returncode == 0, got.stderr
    for part in ("Step 1: c0 ld A@n0", "GetS: I -> B_D", "-> Directory-0: GetS (request)", "Inv: S -> I",
                 "total: the latency of the access", "supplied by the memory of node 0"):
        assert part in got.stdout, part
    shown = [line.split(None, 2)[2] for line in got.stdout.splitlines() if "DRAM" in line and "->" in line]
    assert [line.split("-> ")[1].split(" (")[0] for line in shown][:2] == ["DRAM-0: read", "Directory-0: data"]
    lines = got.stdout.splitlines()
    answer = next(i for i, line in enumerate(lines) if "Directory-0: data" in line)
    assert "Mem_Data" in lines[answer + 1] and "Mem_Data" not in "".join(lines[:answer]), "what the answer causes comes after it"


def test_the_text_of_a_script_takes_time_in_proportion_to_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    line = text.Line

    def counted(*values: Any) -> text.Line:
        made.append(values)
        return line(*values)

    monkeypatch.setattr(text, "Line", counted)
    document = {"clock": {"core_period_fs": [1, 1]}, "messages": [], "transitions": [], "accesses": [
        {"step": i, "issued": 10 * i, "done": 10 * i + 5, "op": "ld", "core": 0, "line": "A@n0", "address": "0x0", "latency_cycles": 5.0}
        for i in range(100)]}
    assert [[event.at for event in step] for step in text.lines_of(document)] == [[10 * i, 10 * i + 5] for i in range(100)]
    assert len(made) == 200, "each event is made once"


def test_remarks_on_an_access_read_only_its_own_messages_and_transitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the time for all remarks does not grow with the square of the script's length."""
    events = [{"access": 0}, {"access": 1}, {"access": 0}, {"access": None}]
    made: dict[str, Any] = {"accesses": [{"id": 0}, {"id": 1}], "messages": events, "transitions": events}
    read = []

    def remarks(document: dict[str, Any], access: dict[str, Any], delays: object) -> list[str]:
        read.append([[event["access"] for event in document[kind]] for kind in ("messages", "transitions")])
        return []

    monkeypatch.setattr(trace_document, "remarks", remarks)
    trace_document.with_remarks(made, [ScriptAccess(0, "ld", 0, "A@n0")] * 2)
    assert read == [[[0, 0], [0, 0]], [[1], [1]]]


def test_diagrams_are_whole_files_of_their_kind(moscope: Moscope, tmp_path: Path) -> None:
    got = moscope("trace", "c0 st A@n0; c6 ld A@n0 | c7 ld A@n0", "--svg", "t.svg", "--png", "t.png", *SMALL)
    assert got.returncode == 0, got.stderr
    svg = ElementTree.parse(tmp_path / "t.svg").getroot()
    texts = " ".join("".join(t.itertext()) for t in svg.iter("{http://www.w3.org/2000/svg}text"))
    for word in ("Directory-0", "L1Cache-6", "DRAM-0", "core 6", "c6 ld A@n0", "home queue: waiting at the home node", "with data"):
        assert word in texts, word
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    for box in svg.iter("{http://www.w3.org/2000/svg}rect"):
        assert 0 <= float(box.attrib.get("x", 0)) <= width
        assert float(box.attrib.get("y", 0)) + float(box.attrib["height"]) <= height + 1
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.png", "t.svg"]


def test_the_name_of_a_message_covers_no_state(moscope: Moscope) -> None:
    shapes = diagram.draw(trace(moscope, "c0 ld A@n7; c13 st A@n7 | c14 st A@n7; c20 rmw B@n2")).shapes
    boxes = [one for one in shapes if isinstance(one, Box) and one.fill == "#ffffff" and one.height == diagram.PILL]
    names = [one for one in shapes if isinstance(one, Text) and one.halo and one.tip and one.anchor == "middle" and one.size == 10]
    assert len(boxes) > 10 and len(names) > 10
    for name in names:
        half = text_width(name.text, name.size, name.bold) / 2 - 1
        assert not [box for box in boxes if box.x - half < name.x < box.x + box.width + half and box.y < name.y - 2 < box.y + box.height]


def test_a_broadcast_to_all_chips_can_be_drawn(moscope: Moscope, tmp_path: Path) -> None:
    got = moscope("trace", "c0 st A@n3; c7 ld A@n3", *SMALL, "--set", "probe_filter.enabled=false", "--svg", "b.svg")
    assert got.returncode == 0, got.stderr
    drawn = (tmp_path / "b.svg").read_text()
    assert drawn.count("ProbeReadAll") >= 1 and all(f"L3Cache-{chip}" in drawn for chip in range(4))


def test_a_message_to_many_is_drawn_with_one_label_and_their_number(moscope: Moscope, tmp_path: Path) -> None:
    got = moscope("trace", "c0 ld A@n0; c6 ld A@n0; c1 st A@n0", "--svg", "b.svg")
    assert got.returncode == 0, got.stderr
    svg = ElementTree.parse(tmp_path / "b.svg").getroot()
    # A tip comes before what is written.
    texts = [list(t.itertext())[-1] for t in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert [t for t in texts if "\N{MULTIPLICATION SIGN}" in t and "Probe" in t] == ["ProbeInv \N{MULTIPLICATION SIGN}7"]


def test_data_from_memory_is_said_to_be_so_also_where_the_last_answer_to_a_probe_came_later(moscope: Moscope) -> None:
    got = moscope("trace", "c0 ld A@n0; c6 ld A@n0; c1 st A@n0")
    assert got.returncode == 0, got.stderr
    last = next(line for line in got.stdout.splitlines() if line.startswith("c1 st A@n0: "))
    assert "supplied by the memory of node 0" in last


def test_out_holds_the_document_and_both_diagrams(moscope: Moscope, tmp_path: Path) -> None:
    got = moscope("trace", "c0 ld A@n0", "--out", "result", *MSI)
    assert got.returncode == 0, got.stderr
    document = json.loads((tmp_path / "result" / "trace.json").read_text())
    jsonio.validate(document)
    assert (tmp_path / "result" / "trace.svg").exists() and (tmp_path / "result" / "trace.png").exists()


@pytest.mark.parametrize("arguments, said", [
    (("c0 lod A@n0", *SMALL), "expected one of ld, st, if"),
    (("c0 flush A@n0", *MSI), "MSI has no flush"),
    (("c0 ldu A@n0", *MSI), "MSI has no uncached load"),
    (("d0 ld A@n0", *MSI), "trace script: the protocol MSI has no DMA machine for accesses of devices: expected accesses of cores"),
    (("c0 nt A@n0", *MSI), "MSI has no non-temporal store"),
    (("c0 ld A@n0", *SMALL, "--svg", "nowhere/t.svg"), "nowhere"),
    (("c0 ld A@n0", *SMALL, "--png", "."), "is a folder"),
    (("c0 ld A@n0", *SMALL, "--png", "t.svg"), "t.svg: the name does not end in .png: expected one that does, such as t.png"),
    (("c0 ld A@n0", *SMALL, "--svg", "t"), "t: the name does not end in .svg: expected one that does, such as t.svg"),
    (("c0 ld A@n0", "--machine", "smal"), "small"),
])
def test_mistakes_are_user_errors_without_a_traceback(moscope: Moscope, arguments: tuple[str, ...], said: str) -> None:
    got = moscope("trace", *arguments)
    assert got.returncode == 2
    assert said in got.stderr and "Traceback" not in got.stderr and not got.stdout


def test_selected_steps_keep_their_numbers_and_kind_of_sharing(moscope: Moscope) -> None:
    got = moscope("trace", "c0 st A@n0; c6 st A@n0+8; c0 st A@n0", "--steps", "3", "--svg", "part.svg").stdout
    assert "Step 3: c0 st A@n0" in got and "Step 1" not in got and "Step 2" not in got
    assert "false sharing" in got


def test_an_access_finds_the_value_of_the_older_store_that_it_waits_for(moscope: Moscope) -> None:
    """Both end when the line arrives, and the script may name the younger one first."""
    accesses = trace(moscope, "c0 ld A@n0 at 20ns | c0 st A@n0", *SMALL)["accesses"]
    assert accesses[0]["done"] == accesses[1]["done"] and accesses[0]["value"] == accesses[1]["value"]
    assert [a["value_of"] for a in accesses] == [1, None]
    accesses = trace(moscope, "c0 st A@n0+4:4 at 400ns | c6 st A@n0; c1 ld A@n0", *SMALL)["accesses"]
    assert [a["value_of"] for a in accesses] == [None, None, 0], "of two stores, the last one"


def test_another_access_of_the_core_does_not_hide_false_sharing(moscope: Moscope) -> None:
    document = trace(moscope, "c0 st A@n0; c6 st A@n0+8; c0 st A@n0 | c0 ld A@n0", *SMALL)
    assert [a["remarks"] for a in document["accesses"]] == [[], [], ["false sharing"], []]


def test_a_line_that_its_core_has_flushed_is_not_falsely_shared(moscope: Moscope) -> None:
    document = trace(moscope, "c0 ld A@n0; c0 flush A@n0; c6 st A@n0+8; c0 ld A@n0; c0 nt B@n0; c6 st B@n0+8; c0 ld B@n0; "
                     "c0 ld C@n0; c6 st C@n0+8; c0 nt C@n0", *SMALL)
    assert not [a["text"] for a in document["accesses"] if a["remarks"]]


def test_a_delay_of_a_message_that_an_access_never_sends_is_named(moscope: Moscope) -> None:
    """Otherwise it would have no effect, without a message."""
    script = "c0 st A@n0; c6 st A@n0 {}+40ns"
    plain, delayed = (json.loads(moscope("trace", script.format(d), "--json").stdout)["accesses"][1]
                      for d in ("ProbeInv#1>L1Cache-0", "ProbeInv>L1Cache-0"))
    assert delayed["remarks"] == [] and delayed["latency_ns"] == pytest.approx(plain["latency_ns"] + 40)
    (said,) = plain["remarks"]
    assert said.startswith("no message for the delay ProbeInv#1>L1Cache-0: the access's messages are ") and "ProbeInv>L1Cache-0" in said


def test_a_device_is_served_by_the_home(moscope: Moscope) -> None:
    assert "supplied by node 0, the home, 2 link crossings" in moscope("trace", "c6 st A@n0; d0 ld A@n0").stdout
    accesses = json.loads(moscope("trace", "d0 st A@n1; d0 ld A@n1", "--json").stdout)["accesses"]
    assert [(a["supplier"], a["supplier_number"]) for a in accesses] == [("own", None)] * 2  # which does not say whose data it was


def test_a_store_of_a_whole_line_has_no_supplier(moscope: Moscope) -> None:
    for home in ("n0", "n1"):
        said = moscope("trace", f"c0 nt A@{home}:64", *SMALL).stdout
        assert f"issues non-temporal store of the line A@{home} (" in said and "of a word" not in said
        assert "supplied by no cache: the access writes the whole line" in said


@pytest.fixture
def stopped(moscope: Moscope) -> dict[str, Any]:
    """A trace of three steps that the second one's access ended, as one of a protocol with a mistake does."""
    document = trace(moscope, "c0 st A@n0; c6 ld A@n0; c7 ld A@n0", *SMALL)
    first, second, third = document["accesses"]
    begun = {key: [one for one in document[key] if one["access"] != third["id"]] for key in ("messages", "transitions")}
    return {**document, **begun, "protocol_error": "L1Cache: no transition",
            "accesses": [first, {**second, **UNFINISHED, "done": None}, {**third, **UNFINISHED, "issued": None, "done": None}]}


def test_a_trace_with_accesses_that_did_not_end_follows_its_schema(stopped: dict[str, Any]) -> None:
    jsonio.validate(stopped)


def test_a_diagram_shows_accesses_that_did_not_end(stopped: dict[str, Any]) -> None:
    drawn = to_svg(diagram.draw(stopped))
    assert "not done" in drawn and "because it had not begun" in drawn


def test_the_legend_says_that_colours_are_those_of_networks(stopped: dict[str, Any]) -> None:
    used = {stopped["vnets"][str(m["vnet"])] for m in stopped["messages"] if m["network"]}
    drawn = to_svg(diagram.draw(stopped))
    assert {"request", "response"} <= used and all(diagram.KINDS[kind][1] in drawn for kind in used)
    assert all(diagram.KINDS[kind][1].startswith("network for ") for kind in used)


@pytest.mark.parametrize("found, code", [({"violations": [{"access": 2, "text": "a wrong value", "found": 1, "expected": [1]}]}, 1),
                                         ({"protocol_error": "no transition"}, 3)])
def test_a_protocol_error_of_a_checked_script_has_the_exit_code_of_a_protocol_error(
        stopped: dict[str, Any], monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], code: int) -> None:
    del stopped["protocol_error"]
    monkeypatch.setattr(trace_document, "run_script", lambda *_: {**stopped, **found})
    assert cli.main(["trace", "c0 st A@n0; c6 ld A@n0; c7 ld A@n0", "--json", *SMALL]) == code


def test_errors_are_reported_though_their_steps_are_not_shown(stopped: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    stopped |= {"violations": [{"access": 2, "text": "a wrong value", "found": 1, "expected": [1]}]}
    text.print_trace(parts.of(stopped, range(1)), text.end_texts(stopped))
    said = capsys.readouterr().out
    assert "no transition" in said and "access 3 (c7 ld A@n0) found" in said
