# SPDX-License-Identifier: BSD-3-Clause
"""What the generated C++ takes for granted: the only destination of a message, and states that share the code of a transition."""
from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from slicc import cli

FOLDER = Path(__file__).parent / "protocols"
ADD = "out_msg.Destination.add(mapAddressToMachine(address, MachineType:Directory));"


def generated(tmp_path: Path, old: str = ADD, new: str = ADD) -> str:
    """The C++ of ok_plain.slicc's cache, with another text in its actions."""
    shutil.copytree(FOLDER / "common", tmp_path / "common")
    actions = tmp_path / "common" / "actions.sm"
    text = actions.read_text(encoding="utf-8")
    assert old in text
    actions.write_text(text.replace(old, new), encoding="utf-8")
    protocol = tmp_path / "ok_plain.slicc"
    protocol.write_text((FOLDER / "ok_plain.slicc").read_text(encoding="utf-8"), encoding="utf-8")
    assert cli.run(["--protocol", str(protocol), "--out", str(tmp_path / "out"), "--no-warnings", "--strict"]) == 0
    return (tmp_path / "out" / "L1Cache_Controller.cc").read_text(encoding="utf-8")


def test_a_message_that_goes_to_one_machine_needs_no_search_for_it(tmp_path: Path) -> None:
    text = generated(tmp_path)
    assert "const NodeIndex only_ = index_of(mapAddressToMachine(address, MachineType_Directory));" in text
    assert "&out_msg, only_, " in text


@pytest.mark.parametrize("statements, before", [
    (ADD, True),
    ("assert(address == address); " + ADD, True),
    ("out_msg.Type := out_msg.Type; " + ADD, False),
    ("DPRINTF(RubySlicc, \"%s\", out_msg.Type); " + ADD, True),
    ("if (address == address) { out_msg.Hops := 1; } " + ADD, False),
])
def test_the_destination_is_looked_up_before_the_message_is_made_if_possible(tmp_path: Path, statements: str, before: bool) -> None:
    text = generated(tmp_path, new=statements)
    made, found = text.index("&out_msg = *new_message<"), text.index("only_ = index_of(")
    assert (found < made) == before


def test_a_machine_whose_triggers_show_their_events_has_no_dispatch_over_all_events(tmp_path: Path) -> None:
    assert "doTransition" not in generated(tmp_path)


def transitions_by_event(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """How many transitions the functions of events have: those that are inlined, and the others."""
    start = re.compile(r"^    \[\[gnu::(always_inline|noinline)\]\] Result on_(\w+)\(", re.MULTILINE)
    starts = list(start.finditer(text))
    counts = {m: text.count("++transition_counts_[", m.end(), next_) for m, next_ in
              zip(starts, [*(m.start() for m in starts[1:]), len(text)], strict=True)}
    inlined = {m[2]: n for m, n in counts.items() if m[1] == "always_inline"}
    return inlined, {m[2]: n for m, n in counts.items() if m[2] not in inlined}


@pytest.mark.parametrize("room, some, all_", [(0, False, False), (1500, True, False), (30_000, True, True)])
def test_the_smallest_events_are_inlined_as_many_as_there_is_room_for(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, some: bool, all_: bool) -> None:
    monkeypatch.setattr("slicc.emit_cpp.inlining._ROOM", room)
    inlined, called = transitions_by_event(generated(tmp_path))
    assert bool(inlined) == some and bool(called) != all_
    assert max(inlined.values(), default=0) <= min(called.values(), default=100)


@pytest.mark.parametrize("statements", [
    ADD + ADD,
    "if (address == address) { " + ADD + " }",
    "out_msg.Destination.broadcast(MachineType:Directory); " + ADD,
])
def test_a_message_that_may_go_to_several_machines_or_none_is_searched_for_them(tmp_path: Path, statements: str) -> None:
    assert "send_only_to" not in generated(tmp_path, new=statements)


def test_each_transition_of_an_event_has_a_case(tmp_path: Path) -> None:
    text = generated(tmp_path)
    load = text[text.index("Result on_Load("):]
    load = load[:load.index("default: no_transition(")]
    table = re.search(r"kTransitions\[\] = \{(.*?)\};", text, re.DOTALL)
    assert table is not None
    events = re.search(r"kEvents\[\] = \{(.*?)\};", text)
    assert events is not None
    number = events[1].split(", ").index('"Load"')
    assert load.count("case L1Cache_State_") == len(re.findall(rf"\{{\d+, {number}, ", table[1])) > 0


def test_structures_may_be_declared_after_those_that_contain_them(tmp_path: Path) -> None:
    generated(tmp_path)
    later = 'structure(Outer, desc="") { Inner inner, desc=""; }\nstructure(Inner, desc="") { int a, desc=""; }\n'
    messages = tmp_path / "common" / "messages.sm"
    text = messages.read_text(encoding="utf-8")
    messages.write_text(text + later, encoding="utf-8")
    protocol = str(tmp_path / "ok_plain.slicc")
    assert cli.run(["--protocol", protocol, "--out", str(tmp_path / "out"), "--no-warnings"]) == 0
    types = (tmp_path / "out" / "ok_plain_types.hh").read_text(encoding="utf-8")
    assert types.index("struct Inner") < types.index("struct Outer")


def test_a_structure_within_itself_is_an_error_at_the_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generated(tmp_path)
    messages = tmp_path / "common" / "messages.sm"
    text = messages.read_text(encoding="utf-8")
    messages.write_text(text + 'structure(Loop, desc="") {\n  Loop again, desc="";\n}\n', encoding="utf-8")
    assert cli.run(["--protocol", str(tmp_path / "ok_plain.slicc"), "--out", str(tmp_path / "out"), "--no-warnings"]) == 2
    place = f"messages.sm:{text.count(chr(10)) + 2}:8"
    assert f"{place}: error: field 'again': of type Loop, which would contain itself" in capsys.readouterr().err


def of_cache(tmp_path: Path, *changes: tuple[str, str]) -> str:
    """The C++ of ok_plain.slicc's cache as of a protocol from outside, with other texts in its body."""
    generated(tmp_path)
    cache = tmp_path / "common" / "cache.sm"
    text = cache.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    cache.write_text(text, encoding="utf-8")
    assert cli.run(["--protocol", str(tmp_path / "ok_plain.slicc"), "--out", str(tmp_path / "out"), "--no-warnings"]) == 0
    return (tmp_path / "out" / "L1Cache_Controller.cc").read_text(encoding="utf-8")


def test_a_field_of_an_entry_does_not_hide_a_field_of_the_runtime(tmp_path: Path) -> None:
    text = of_cache(tmp_path, ("  bool Dirty, ", "  int slot, desc=\"mine\";\n  bool Dirty, "))
    assert "int slot_{" in text and 'append_field(view_.entry, "slot", e->slot_);' in text


READY = "  if (response_in.isReady(clockEdge())) {\n"


@pytest.mark.parametrize("condition, again", [("response_in.isReady(clockEdge())", False), ("eager", True),
                                              ("eager && response_in.isReady(clockEdge())", False),
                                              ("eager || response_in.isReady(clockEdge())", True)])
def test_in_ports_that_need_no_message_are_polled_after_each_transition(tmp_path: Path, condition: str, again: bool) -> None:
    assert ("if (const Tick next = first_head(" not in of_cache(tmp_path, (READY, f"  if ({condition}) {{\n"))) == again


EVENT = "trigger(request_to_event(in_msg.Type)"


@pytest.mark.parametrize("condition, again", [("eager", False), ("curCycle() < latency", True), ("clockEdge(latency) == clockEdge()", True),
                                              ("ripe()", True), ("requestOut.getSize(clockEdge()) == 3", True),
                                              ("mandatoryQueue.getSize(clockEdge()) == 3", False),
                                              ("response_in.isReady(look)", False), ("look == intToTick(5)", True)])
def test_a_stall_is_retried_in_the_next_cycle_if_passing_time_may_end_it(tmp_path: Path, condition: str, again: bool) -> None:
    text = of_cache(tmp_path,
                    ("Tick clockEdge();\n", "Tick clockEdge();\nTick clockEdge(Cycles c);\nCycles curCycle();\n"
                                            "bool ripe() {\n  return curCycle() > latency;\n}\n"),
                    (f"        {EVENT}", f"        Tick look := clockEdge();\n        if ({condition}) {{\n"
                                         f"          DPRINTF(RubySlicc, \"%s\", curCycle());\n        }}\n        {EVENT}"))
    assert ("protocol_stall: look_again_next_cycle(); break;" in text) == again
    assert ("requestOut.capacity = " in text) == ("requestOut" in condition)


def test_a_string_keeps_the_quotation_marks_within_it(tmp_path: Path) -> None:
    text = generated(tmp_path, new=ADD + " std::string s := 'say \"x\" or \\n'; s := 'back\\';")
    assert r'std::string("say \"x\" or \n")' in text and r'std::string("back\\")' in text


def test_numbers_of_64_bits_are_unsigned(tmp_path: Path) -> None:
    text = generated(tmp_path, new=ADD + " Addr a := 18446744073709551615; a := 9223372036854775807;")
    assert "= 18446744073709551615u;" in text and "= 9223372036854775807;" in text


def test_code_of_types_and_objects_names_their_lines_for_errors_of_the_cxx_compiler(tmp_path: Path) -> None:
    text = of_cache(tmp_path)
    line = (tmp_path / "common" / "cache.sm").read_text(encoding="utf-8").split("TBETable TBEs")[0].count("\n") + 1
    assert re.search(rf'// at\("common/cache.sm", {line}\);\s*TBETable<L1Cache_TBE> TBEs', text)
    types = (tmp_path / "out" / "ok_plain_types.hh").read_text(encoding="utf-8")
    assert re.search(r'// at\("common/messages.sm", \d+\);\s*int Hops\{0\};', types)
    assert re.search(r'// at\("common/messages.sm", \d+\);\s*return testAndRead', types)
