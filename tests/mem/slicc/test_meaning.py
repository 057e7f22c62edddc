# SPDX-License-Identifier: BSD-3-Clause
"""What generated code does where gem5's does the same, and what is an error because C++ could not do it: ok_plain.slicc or
ok_two_machines.slicc with other texts in their parts."""
from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from slicc import cli
from slicc.compile import compile_protocol
from slicc.emit_cpp.code import CHECKED_ON_ENGINE, MASK_CHECKS
from slicc.emit_cpp.places import CHECKED_OPERATORS
from slicc.runtime_names import MEMBERS

FOLDER = Path(__file__).parent / "protocols"
Change = tuple[str, str, str]
"""A part of the protocol, a text in it, and the text in its place; an empty text is the end of the part."""


def changed(folder: Path, *changes: Change, protocol: str = "ok_plain") -> Path:
    """A copy of a protocol with other texts."""
    shutil.copytree(FOLDER / "common", folder / "common")
    shutil.copy(FOLDER / f"{protocol}.slicc", folder)
    for name, old, new in changes:
        part = folder / f"{protocol}.slicc" if name == "main" else folder / "common" / f"{name}.sm"
        text = part.read_text(encoding="utf-8")
        assert old in text
        part.write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")
    return folder / f"{protocol}.slicc"


def generated(folder: Path, *changes: Change, protocol: str = "ok_plain") -> dict[str, str]:
    """The C++ of a protocol from outside, by file."""
    path = changed(folder, *changes, protocol=protocol)
    assert cli.run(["--protocol", str(path), "--out", str(folder / "out"), "--no-warnings"]) == 0
    return {p.name: p.read_text(encoding="utf-8") for p in (folder / "out").iterdir()}


def cache(folder: Path, *changes: Change) -> str:
    """The C++ of ok_plain.slicc's cache."""
    return generated(folder, *changes)["L1Cache_Controller.cc"]


def errors(folder: Path, *changes: Change) -> list[str]:
    """What the compiler rejects, each as FILE:LINE: MESSAGE."""
    program, diagnostics = compile_protocol(str(changed(folder, *changes)))
    assert program is None
    return [f"{Path(d.loc.file).name}:{d.loc.line}: {d.message}" for d in diagnostics.errors()]


def line_of(part: str, text: str) -> int:
    """The line of a part that a text is in."""
    return (FOLDER / "common" / f"{part}.sm").read_text(encoding="utf-8").split(text)[0].count("\n") + 1


def test_a_peek_with_wake_up_wakes_the_messages_that_wait_for_the_address(tmp_path: Path) -> None:
    text = cache(tmp_path, ("cache", "peek(response_in, Msg) {", 'peek(response_in, Msg, wake_up="addr") {'))
    assert re.search(r" head<Msg>\(responseIn, here\(.*\)\);\s*// at\(.*\);\s*wakeUpBuffers\(in_msg.addr\);\s*at\(.*\);\s*"
                     r"cause\(responseIn\);", text)


def test_a_trigger_takes_the_head_from_the_peek_if_the_in_port_leaves_the_head_where_it_is(tmp_path: Path) -> None:
    text = cache(tmp_path)
    assert re.search(r" ready_head<Msg>\(responseIn, here\(.*\)\);\s*.*?\scause\(responseIn, in_msg\);", text, re.DOTALL)
    assert "cause(responseIn);" not in text
    text = cache(tmp_path / "handled", ("cache", PORT, PORT + ", rsc_stall_handler=later"), ("cache", "", HANDLER))
    assert re.search(r" head<Msg>\(responseIn, here\(.*\)\);\s*.*?\scause\(responseIn\);", text, re.DOTALL)


def test_a_request_whose_peek_wakes_messages_is_no_pure_hit(tmp_path: Path) -> None:
    assert "kPureHit" in cache(tmp_path / "without")
    text = cache(tmp_path / "with", ("cache", 'block_on="LineAddress"', 'wake_up="LineAddress"'))
    assert "wakeUpBuffers(in_msg.LineAddress);" in text and "kPureHit" not in text


def test_what_an_in_port_sends_by_itself_is_for_the_message_that_it_peeks_at(tmp_path: Path) -> None:
    again = "      enqueue(request_out, Msg, 1) { out_msg := in_msg; }\n"
    text = cache(tmp_path, ("cache", "peek(response_in, Msg) {\n", "peek(response_in, Msg) {\n" + again))
    ports = re.search(r"// in_port response_in,(.*?)// in_port mandatory_in,(.*?)return next_due", text, re.DOTALL)
    assert ports is not None and "no_cause();" not in ports[2]
    assert re.match(r".*no_cause\(\);.*head<Msg>\(responseIn, here\(.*?\)\);\s*cause\(responseIn\);.*new_message", ports[1], re.DOTALL)


def test_a_copy_of_a_message_has_a_number_of_its_own(tmp_path: Path) -> None:
    peek = "peek(response_in, Msg) {\n"
    text = cache(tmp_path, ("cache", peek, f"{peek}      enqueue(request_out, Msg, 1) {{ out_msg := in_msg; }}\n"))
    assert "copy_fields(out_msg, in_msg);" in text and "out_msg = in_msg;" not in text


def test_the_state_of_a_line_comes_from_whichever_table_has_its_tbe(tmp_path: Path) -> None:
    table = 'TBETable TBEs, template="<L1Cache_TBE>", constructor="m_number_of_TBEs";\n'
    text = cache(tmp_path, ("cache", table, table + table.replace("TBEs", "leaving", 1)))
    assert "return getState(first_of(TBEs.lookup(line), leaving.lookup(line)), found_entry(line), line);" in text


def test_a_buffer_in_the_body_of_a_machine_is_an_error(tmp_path: Path) -> None:
    change, where = new_at_start("MessageBuffer inner;")
    assert errors(tmp_path, change) == [where[0] + "'inner': MessageBuffer in the body of machine 'L1Cache': expected a parameter, "
                                        "MessageBuffer * inner"]


MORE = 'structure(More, desc="", interface="Message") { Addr addr, desc=""; }\n'


def test_messages_of_several_machines_may_have_one_name(tmp_path: Path) -> None:
    files = generated(tmp_path, ("cache", "Tick clockEdge();\n", MORE + "Tick clockEdge();\n"),
                      ("main", "  Tick clockEdge();\n", MORE + "  Tick clockEdge();\n"), protocol="ok_two_machines")
    numbers = [re.findall(r"kType = (\d+);", files[f"{machine}_Controller.cc"]) for machine in ("L1Cache", "Directory")]
    assert numbers == [["1"], ["2"]]
    assert 'kMessages[] = {"Msg", "More", "More"};' in files["ok_two_machines.cc"] and "kMessages, 3," in files["ok_two_machines.cc"]


FIRST = "State getState(TBE tbe, Entry cache_entry"
SHORTER = "State getState(Addr addr) {\n  return getState(TBEs[addr], getCacheEntry(addr), addr);\n}\n\n"
REST = "void setState(TBE tbe, Addr addr, State state) {\n}\nvoid setAccessPermission(Addr addr, State state) {\n}\n"


def test_of_several_functions_the_engine_calls_the_one_that_gem5_calls(tmp_path: Path) -> None:
    text = cache(tmp_path, ("cache", FIRST, SHORTER + REST + FIRST))
    assert "state = getState(tbe, cache_entry, address);" in text
    assert "return getState(TBEs.lookup(line), found_entry(line), line);" in text
    assert "setState(tbe, cache_entry, address, next);" in text and "setAccessPermission(cache_entry, address, next);" in text


def test_several_functions_of_which_the_engine_can_call_none_are_an_error(tmp_path: Path) -> None:
    found = errors(tmp_path, ("cache", FIRST, SHORTER + "State getState(Entry cache_entry"), ("cache", "(TBEs[addr], ", "("),
                   ("cache", "is_valid(tbe)", "false"), ("cache", "return tbe.TBEState;", "return State:I;"))
    assert found == [f"cache.sm:{line_of('cache', FIRST)}: function 'getState': 2 of this name, none with the parameters of the engine's "
                     "call: expected one with (TBE, Entry, Addr)"]


TABLE = "TBETable TBEs, template"
ASKS = ("actions", "  set_cache_entry(cache.allocate", "  check_allocate(mine);\n  set_cache_entry(cache.allocate")


def test_a_protocols_own_table_is_asked_whether_it_has_room(tmp_path: Path) -> None:
    (tmp_path / "ok_plain.hh").write_text("struct Mine { bool areNSlotsAvailable(int, Tick) { return true; } };\n")
    own = 'structure(Mine, external="yes") {\n  bool areNSlotsAvailable(int, Tick);\n}\nMine mine;\n'
    text = cache(tmp_path, ("cache", TABLE, own + TABLE), ASKS)
    assert "if (!mine.areNSlotsAvailable(1, now_)) return Result::resource_stall;" in text


def test_check_allocate_of_an_object_that_does_not_count_its_places_is_an_error(tmp_path: Path) -> None:
    (found,) = errors(tmp_path, (ASKS[0], ASKS[1], ASKS[2].replace("mine", "cache")))
    assert re.match(r"actions.sm:\d+: check_allocate: 'cache' of type CacheMemory, which counts no places: expected a table", found)


PORT = "in_port(response_in, Msg, responseIn, rank=1"
HANDLER = "bool later() {\n  response_in.recycle(clockEdge(), clockEdge());\n  return true;\n}\n"


def test_a_handler_of_stalls_may_have_all_ports_polled_again(tmp_path: Path) -> None:
    pairs = ", rsc_stall_handler=later, prot_stall_handler=later"
    response, request = cache(tmp_path, ("cache", PORT, PORT + pairs), ("cache", "", HANDLER)).split("// in_port mandatory_in", 1)
    assert "case Result::resource_stall: if (later()) goto after_transition; look_again_next_cycle(); break;" in response
    assert "case Result::protocol_stall: if (later()) goto after_transition; " in response
    assert "if (later())" not in request


def test_a_handler_of_stalls_takes_nothing_and_returns_a_bool(tmp_path: Path) -> None:
    found = errors(tmp_path, ("cache", PORT, PORT + ", rsc_stall_handler=later, prot_stall_handler=never"),
                   ("cache", "", HANDLER.replace("later()", "later(int n)")))
    where = f"cache.sm:{line_of('cache', PORT)}: "
    assert found == [where + "rsc_stall_handler: 'later': with later(int) of type bool: expected a function later() of type bool",
                     where + "prot_stall_handler: 'never': unknown: expected a function never() of type bool"]


def test_a_pair_of_a_port_without_effect_is_warned_of(tmp_path: Path) -> None:
    _, diagnostics = compile_protocol(str(changed(tmp_path, ("cache", PORT, PORT + ', block_on="addr"'))))
    assert [d.message for d in diagnostics.warnings() if d.option == "unknown-pair"] == [
        "block_on: at in_port 'response_in', where it has no effect: expected desc, rank, rsc_stall_handler, prot_stall_handler"]


AT_START = ("cache", "Tick clockEdge();\n")


def new_at_start(*texts: str) -> tuple[Change, list[str]]:
    """Texts before the cache's functions, and the file and line of each."""
    first = line_of("cache", AT_START[1])
    return (*AT_START, "\n".join(texts) + "\n" + AT_START[1]), [f"cache.sm:{first + i}: " for i in range(len(texts))]


def test_a_structure_with_another_of_the_protocol_as_its_interface_is_an_error(tmp_path: Path) -> None:
    change, where = new_at_start('structure(Less, desc="") { int a, desc=""; }', 'structure(More, desc="", interface="Less") { int b; }')
    assert errors(tmp_path, change) == [where[1] + "interface 'Less': of a structure of the protocol's own: expected Message, "
                                        "AbstractCacheEntry, or a field of type Less"]


@pytest.mark.parametrize("one, other", [("Cycles", "Tick"), ("int", "NodeID"), ("Addr", "uint64_t")])
def test_functions_that_differ_in_types_that_are_one_in_cxx_are_an_error(tmp_path: Path, one: str, other: str) -> None:
    change, where = new_at_start(f"void f({one} a) {{ }}", f"void f({other} a) {{ }}")
    assert errors(tmp_path, change) == [f"{where[1]}function f({other}): in C++ the same as f({one}) of line {where[0].split(':')[1]}: "
                                        "expected another name, or other parameter types"]


@pytest.mark.parametrize("number", ["--5", "5" * 5000, "-"])
def test_a_default_that_is_no_number_is_an_error(tmp_path: Path, number: str) -> None:
    (found,) = errors(tmp_path, ("main", "Cycles latency := 2", f'Cycles latency := "{number}"'))
    assert found.endswith("default of 'latency': of another type: expected Cycles")


def test_numbers_of_thousands_of_digits_are_too_large(tmp_path: Path) -> None:
    (found,) = errors(tmp_path, ("main", 'virtual_network="1"', f'virtual_network="{"1" * 5000}"'),
                      ("cache", "rank=0", "rank=" + "1" * 5000))
    assert re.search(r": virtual_network: 1+: expected 0 to 15$", found)


def test_a_set_of_machines_is_no_set_of_numbers(tmp_path: Path) -> None:
    change, where = new_at_start("void f(NetDest n, Set s) {", "  n := s;", "}")
    assert errors(tmp_path, change) == [where[1] + "assignment: value of type Set: expected NetDest, as its setNetDest(MachineType, Set) "
                                        "sets"]


FINDER = "Entry getCacheEntry(Addr addr), return_by_pointer"


def test_looking_up_a_lines_state_calls_no_function_with_side_effects(tmp_path: Path) -> None:
    own = 'Entry placeFor(Addr a) {\n  cache.allocate(a, new Entry);\n  return getCacheEntry(a);\n}\n'
    text = cache(tmp_path, ("cache", FINDER, own + FINDER))
    assert text.count("placeFor(") == 1 and "if (auto *e = getCacheEntry(line)) return e;" in text


TAKES = "      trigger(Event:Data, in_msg.addr, getCacheEntry(in_msg.addr), TBEs[in_msg.addr]);\n    }\n"


@pytest.mark.parametrize("code, again", [("Entry e := getCacheEntry(in_msg.addr);", False),
                                         ("Addr a := cache.cacheProbe(in_msg.addr);", False), ("busy := false;", True),
                                         ("response_in.dequeue(clockEdge());", True), ("idle();", True)])
def test_a_stall_that_an_in_port_itself_may_end_is_retried_in_the_next_cycle(tmp_path: Path, code: str, again: bool) -> None:
    change, _ = new_at_start("bool busy;", "void idle() {", "  busy := false;", "}")
    text = cache(tmp_path, change, ("cache", TAKES, f"      {code}\n    }}\n"))
    assert ("protocol_stall: look_again_next_cycle(); break;" in text) == again


@pytest.mark.parametrize("key, again", [("rsc_stall_handler", False), ("prot_stall_handler", True)])
def test_a_stall_that_a_stall_handler_may_end_is_retried_in_the_next_cycle(tmp_path: Path, key: str, again: bool) -> None:
    text = cache(tmp_path, ("cache", PORT, f"{PORT}, {key}=later"), ("cache", "", HANDLER))
    assert ("protocol_stall: look_again_next_cycle(); break;" in text) == again


def test_a_variable_of_an_enumeration_begins_outside_its_values(tmp_path: Path) -> None:
    change, _ = new_at_start('structure(Pair, desc="") { Kind one; Kind other, default="Kind_Done"; RubyRequestType asked; }',
                             "Kind last;")
    text = cache(tmp_path, change)
    assert re.search(r"Kind one\{Kind_NUM\};\s*.*\s*Kind other\{Kind_Done\};\s*.*\s*RubyRequestType asked\{RubyRequestType_NULL\};", text)
    assert "Kind last{Kind_NUM};" in text
    assert "L1Cache_State CacheState{L1Cache_State_I};" in text


def test_the_initial_value_is_also_outside_the_values_that_a_protocol_adds(tmp_path: Path) -> None:
    (tmp_path / "ok_plain.prelude.sm").write_text('enumeration(MessageSizeType, desc="") { Huge, desc=""; }\n')
    text = generated(tmp_path)["ok_plain_types.hh"]
    assert "MessageSizeType MessageSize{static_cast<MessageSizeType>(MessageSizeType_NUM + 1)};" in text


def test_the_error_of_an_assertion_shows_no_checks_of_the_generated_code(tmp_path: Path) -> None:
    change, _ = new_at_start("void half(TBE given) { assert(given.Pending / 2 == 1); }")
    assert re.search(r'protocol_assert\(\(divide\(present\(given, "given", here\(.*\)\)->Pending, 2\) == 1\), '
                     r'"assertion failed: \(\(given->Pending / 2\) == 1\)", ', cache(tmp_path, change))


@pytest.mark.parametrize("statements, recorded", [
    ("TBEs.allocate(address);", True),
    ("wakeUpBuffers(address);", False),
    ("tbe.Pending := 1;", False),  # a null handle records its own place
    ("tbe.Pending := 1 / tbe.Pending;", True),
    ("assert(is_valid(tbe));", False),
])
def test_a_statement_records_its_place_if_it_can_fail_in_the_runtime(tmp_path: Path, statements: str, recorded: bool) -> None:
    change, _ = new_at_start(f"void mine(TBE tbe, Addr address) {{ {statements} }}")
    body = cache(tmp_path, change).split("void mine(")[1].split("\n")[1]
    assert body.strip().startswith('at("' if recorded else '// at("')


def test_assertions_in_a_row_look_up_once_what_they_are_certain_to_look_up(tmp_path: Path) -> None:
    has = "cache.isTagPresent(a)"
    change, _ = new_at_start(f"void mine(Addr a) {{ assert(({has} && {has}) == false); assert({has}); TBEs.allocate(a); assert({has}); }}")
    body = cache(tmp_path, change).split("void mine(")[1].split("\n    }\n")[0]
    assert body.count("made1_ = cache->isTagPresent(a);") == 1 and "made2_" not in body
    assert "protocol_assert(((made1_ && made1_) == false), " in body and "protocol_assert(made1_, " in body
    assert body.index("TBEs.allocate(a);") < body.index("protocol_assert(cache->isTagPresent(a), ")


@pytest.mark.parametrize("between", ["make(a)", "is_valid(cache)"])
def test_an_assertion_that_changes_something_or_guards_a_handle_ends_the_row(tmp_path: Path, between: str) -> None:
    has = "cache.isTagPresent(a)"
    change, _ = new_at_start("bool make(Addr a) { TBEs.allocate(a); return true; }",
                             f"void mine(Addr a) {{ assert({has}); assert({has}); assert({between}); assert({has}); }}")
    body = cache(tmp_path, change).split("void mine(")[1].split("\n    }\n")[0]
    assert body.count("protocol_assert(made1_, ") == 2 and body.count("protocol_assert(cache->isTagPresent(a), ") == 1


def test_a_condition_that_asks_for_more_than_a_message_is_the_in_ports_own(tmp_path: Path) -> None:
    name, ready = 'in("in_port response_in");', "response_in.isReady(clockEdge())"
    plain = cache(tmp_path).split("// in_port response_in")[1].split("if (")
    more = cache(tmp_path / "more", ("cache", ready, f"{ready} && TBEs[0].Pending == 0")).split("// in_port response_in")[1].split("if (")
    assert name not in plain[0] and name in plain[1]
    assert name in more[0]


def test_a_handle_as_a_parameter_is_a_pointer_also_with_a_reference_sign(tmp_path: Path) -> None:
    """gem5 ignores the sign with a warning, too."""
    change, where = new_at_start("bool known(TBE & tbe, const Entry & e) { return is_valid(tbe) && is_valid(e); }")
    assert "bool known(L1Cache_TBE *tbe, L1Cache_Entry *e)" in cache(tmp_path, change)
    _, diagnostics = compile_protocol(str(tmp_path / "ok_plain.slicc"))
    assert [d.message.split(",")[0] for d in diagnostics.warnings() if d.option == "no-effect"] == [
        f"parameter of 'known': '&' with handle type '{name}'" for name in ("TBE", "Entry")]


def test_a_field_begins_with_the_value_after_its_name(tmp_path: Path) -> None:
    """gem5 accepts one in a global structure only, and ignores that of a variable of a machine, so each is warned of."""
    change, where = new_at_start('structure(Pair, desc="") { int one := -3; Kind other := Kind:Done; bool set := true; int none := 0; }',
                                 "Kind last := Kind:Get;", "int zero := 0;", 'global(Fixed, desc="") { int one := 3; }')
    text = cache(tmp_path, change)
    for field in ("int one{(-3)};", "Kind other{Kind_Done};", "bool set{true};", "int none{0};", "Kind last{Kind_Get};", "int one{3};"):
        assert f"{field}\n" in text
    _, diagnostics = compile_protocol(str(tmp_path / "ok_plain.slicc"))
    warned = {(d.loc.line, d.message.split(":")[0]) for d in diagnostics.warnings() if "after ':='" in d.message}
    first = int(where[0].split(":")[1])
    assert warned == {(first, "field 'one'"), (first, "field 'other'"), (first, "field 'set'"), (first, "field 'none'"),
                      (first + 1, "'last'")}


def test_a_negative_number_may_begin_a_variable_of_an_unsigned_type(tmp_path: Path) -> None:
    change, _ = new_at_start("Addr last := -1;", "int low := -5;")
    text = cache(tmp_path, change)
    assert "Addr last{static_cast<Addr>((-1))};" in text and "int low{(-5)};" in text


def test_a_function_that_ends_without_a_value_is_an_error_at_its_line(tmp_path: Path) -> None:
    change, where = new_at_start("int one(int x) {", "  if (x == 1) { return 1; }", "}", "void none() { }")
    text = cache(tmp_path, change)
    end = "function 'one': ended without a value: expected a return of int"
    assert f'assertion_failed("{end}", "common/cache.sm", {where[0].split(":")[1]});' in text and text.count("ended without a value") == 1


def test_an_event_outside_its_enumeration_is_no_pure_hit(tmp_path: Path) -> None:
    change, _ = new_at_start("Event seen(RubyRequestType type) { Event e := request_to_event(type); return e; }")
    text = cache(tmp_path, change, ("cache", "trigger(request_to_event(in_msg.Type)", "trigger(seen(in_msg.Type)"))
    assert "kPureHit[3][5] =" in text and "default: break;" in text


# --- names of a protocol keep their meaning in C++, whatever names the runtime and the generated code use ---------------------------

TRIGGER = "trigger(Event:Data, in_msg.addr, getCacheEntry(in_msg.addr), TBEs[in_msg.addr]);"


def calls(*statements: str) -> Change:
    return ("cache", TRIGGER, f"{' '.join(statements)} {TRIGGER}")


def test_a_function_of_a_machine_does_not_hide_the_preludes_of_its_name(tmp_path: Path) -> None:
    change, _ = new_at_start("int getOffset(State s) { return 7; }")
    text = cache(tmp_path, change, calls("int a := getOffset(in_msg.addr); a := getOffset(State:M);"))
    assert "int a = getOffset(in_msg.addr);" in text and "a = getOffset_function(L1Cache_State_M);" in text
    assert "int getOffset_function(L1Cache_State s) {" in text


@pytest.mark.parametrize("argument, passed", [("5", "static_cast<std::uint32_t>(5)"), ("in_msg.addr", "in_msg.addr")])
def test_the_overload_that_the_compiler_chose_is_called(tmp_path: Path, argument: str, passed: str) -> None:
    change, _ = new_at_start("int size(uint32_t a) { return 1; }", "int size(Addr a) { return 2; }")
    assert f"int a = size({passed});" in cache(tmp_path, change, calls(f"int a := size({argument});"))


def test_a_variable_of_a_machine_is_no_variable_of_the_polling_code(tmp_path: Path) -> None:
    change, _ = new_at_start("bool done;")
    text = cache(tmp_path, change, calls("done := true;"))
    polling = text[text.index("Tick poll() {"):text.index("Tick next_due()")]
    assert "done = true;" in polling and "int done" not in polling


@pytest.mark.parametrize("name", ["present", "head", "send", "cause", "on_Load"])
def test_functions_actions_and_their_variables_may_have_the_names_of_the_runtimes(tmp_path: Path, name: str) -> None:
    change, _ = new_at_start(f"bool {name}(Addr {name}) {{ return {name} == {name}; }}")
    text = cache(tmp_path, change, calls(f"bool {name} := {name}(in_msg.addr); assert({name});"))
    assert f"bool {name}_own = {name}_function(in_msg.addr);" in text and f"protocol_assert({name}_own," in text
    assert f"bool {name}_function(Addr {name}_own) {{" in text


def test_a_variable_of_a_machine_with_the_name_of_a_controllers_member_is_an_error(tmp_path: Path) -> None:
    change, where = new_at_start("int head;")
    assert errors(tmp_path, change) == [f"{where[0]}object 'head': a member of moscope's controllers: expected another name"]


def test_the_names_of_members_include_all_that_generated_code_calls(tmp_path: Path) -> None:
    text = re.sub(r'"(\\.|[^"\\])*"|//.*', "", cache(tmp_path))
    text = text[text.index("class L1Cache_Controller"):text.index("AbstractController *create")]
    called = set(re.findall(r"(?<![.>:\w])([a-z]\w*)(?:<\w+>)?\(", text))
    declared = set(re.findall(r"\w+", "".join(p.read_text(encoding="utf-8") for p in (tmp_path / "common").iterdir())))
    of_cxx = {"if", "switch", "decltype", "return", "alignof", "sizeof", "static_assert", "static_cast"}
    assert called - declared - of_cxx - {name for name in called if name.startswith("on_")} <= MEMBERS | {"wakeUpBuffers"}
    assert {*CHECKED_OPERATORS.values(), *CHECKED_ON_ENGINE.values(), *MASK_CHECKS.values()} <= MEMBERS


def test_a_protocols_function_does_not_replace_the_check_of_an_operator(tmp_path: Path) -> None:
    change, _ = new_at_start("int shift_left(int a, int b) { return a; }")
    text = cache(tmp_path, change, calls("assert((shift_left(1, 2) << 3) == 8);"))
    assert "int shift_left_function(int a, int b) {" in text and "shift_left(shift_left_function(1, 2), 3)" in text


def test_a_field_may_have_the_name_of_a_type(tmp_path: Path) -> None:
    field = 'structure(Msg, desc="any message", interface="Message") {'
    text = generated(tmp_path, ("messages", field, f"{field} DataBlock DataBlock; Kind Kind; NetDest Other;"))["ok_plain_types.hh"]
    assert "DataBlock DataBlock_{};" in text and "Kind Kind_{Kind_NUM};" in text and "NetDest Other{};" in text
    assert 'append_field(s, "Kind", m.Kind_);' in text
