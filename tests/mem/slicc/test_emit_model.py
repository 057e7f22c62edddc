# SPDX-License-Identifier: BSD-3-Clause
"""Models for `protocol verify`: which fields a state may forget, and which lines violations name."""
from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from slicc import emit_model
from slicc.compile import compile_protocol
from slicc.emit_model.machine import Place
from slicc.emit_model.unread import Unread

PROTOCOLS = Path(__file__).resolve().parents[3] / "src/mem/ruby/protocol"


def test_a_field_that_only_a_method_of_its_structure_reads_is_kept(tmp_path: Path) -> None:
    for path in PROTOCOLS.glob("MSI*"):
        shutil.copy(path, tmp_path)
    home = tmp_path / "MSI-dir.sm"
    text = home.read_text(encoding="utf-8").replace("tbe.Acks := tbe.Acks - 1;", "").replace("tbe.Acks == 1", "tbe.is_last()")
    home.write_text(text.replace("MachineID Requestor, desc", "bool is_last() { return Acks == 1; }\n MachineID Requestor, desc"),
                    encoding="utf-8")
    program, found = compile_protocol(str(tmp_path / "MSI.slicc"))
    assert program is not None, found.report()
    directory = next(machine for machine in program.machines if machine.name == "Directory")
    assert "Acks" not in Unread(program).of(directory.tbe_type, False)


def test_triggers_and_assertions_record_their_lines_after_the_functions_that_they_call() -> None:
    program, found = compile_protocol(str(PROTOCOLS / "MSI.slicc"))
    assert program is not None, found.report()
    places = {m.name: Place(2, {p.name: 1 for p in m.params}) for m in program.machines}
    text = emit_model.emit(program, emit_model.Model(places, lines=1, messages=8), found)
    assert all(re.search(r'\{ at\("[^"]+", \d+\); throw', line) for line in text.splitlines() if "throw Violation(" in line)
    assert all(re.search(r', "[^"]+", \d+\)\) return;', line) for line in text.splitlines() if "if (take_(" in line)
    assert len(re.findall(r"= getState\(.*\);\n\s*at\(file, line\);", text)) == len(program.machines)
    assert "throw Violation(" in text and "if (take_(" in text


@pytest.mark.parametrize("field, read, value", [
    ('int Limit, default="1000"', True, "1000"), ('uint32_t Limit, default="-1"', True, "-1"), ('int Limit, default="1000"', False, ""),
    ('int Limit, default="-128"', True, ""), ('Cycles Limit, default="1000"', True, ""),
])
def test_a_number_that_begins_a_field_fits_in_a_byte_if_a_rule_reads_it(tmp_path: Path, field: str, read: bool, value: str) -> None:
    for path in PROTOCOLS.glob("MSI*"):
        shutil.copy(path, tmp_path)
    home = tmp_path / "MSI-dir.sm"
    text = home.read_text(encoding="utf-8").replace("MachineID Requestor, desc", f"{field};\n MachineID Requestor, desc", 1)
    home.write_text(text.replace("tbe.Acks == 1", "tbe.Acks == 1 && tbe.Limit > 0") if read else text, encoding="utf-8")
    program, found = compile_protocol(str(tmp_path / "MSI.slicc"))
    assert program is not None, found.report()
    places = {m.name: Place(2, {p.name: 1 for p in m.params}) for m in program.machines}
    model = emit_model.emit(program, emit_model.Model(places, lines=1, messages=8), found)
    line, column = text[:text.index(field)].count("\n") + 1, text.splitlines()[text[:text.index(field)].count("\n")].index("Limit") + 1
    assert [d.header() for d in found.errors()] == (
        [f"{home}:{line}:{column}: error: 'Limit': {value}: expected a number of one byte in a model"] if value else [])
    assert re.search(r"Limit\{static_cast<std::u?int8_t>\(", model)


@pytest.mark.parametrize("count", ["++seen;", "seen := seen + 1;"])
@pytest.mark.parametrize("kind, read", [("Scalar", False), ("Scalar", True), ("int", False), ("int", True)])
def test_a_counter_is_part_of_a_state_only_if_a_rule_reads_it(tmp_path: Path, count: str, kind: str, read: bool) -> None:
    for path in PROTOCOLS.glob("MSI*"):
        shutil.copy(path, tmp_path)
    home = tmp_path / "MSI-dir.sm"
    text = home.read_text(encoding="utf-8").replace("  TBETable TBEs", f"  {kind} seen;\n  {kind} limit;\n  TBETable TBEs", 1)
    text = text.replace("if (tbe.Acks == 1", f"{count}\n if ({'seen < limit && ' * read}tbe.Acks == 1", 1)
    home.write_text(text, encoding="utf-8")
    program, found = compile_protocol(str(tmp_path / "MSI.slicc"))
    assert program is not None, found.report()
    places = {m.name: Place(2, {p.name: 1 for p in m.params}) for m in program.machines}
    model = emit_model.emit(program, emit_model.Model(places, lines=1, messages=8), found)
    assert len(re.findall(r'assign_\(seen, \(?seen \+ 1\)?, "MSI-dir.sm:\d+"\);', model)) == read
    assert "++seen" not in model and "seen = seen" not in model


@pytest.mark.parametrize("assigned, kept, text", [("tbe.Acks", False, 'present_(tbe, "tbe")->Acks'), ("seen", False, "seen"),
                                                  ("mod(seen, 3)", True, "remainder_of(seen, 3)"), ("7 / seen", True, "divide(7, seen)"),
                                                  ("7 << seen", True, "shift_left(7, seen)")])
def test_the_value_of_a_variable_that_no_rule_reads_is_computed_as_it_may_be_a_violation(tmp_path: Path, assigned: str, kept: bool,
                                                                                         text: str) -> None:
    for path in PROTOCOLS.glob("MSI*"):
        shutil.copy(path, tmp_path)
    home = tmp_path / "MSI-dir.sm"
    changed = home.read_text(encoding="utf-8").replace("  TBETable TBEs", "  int seen;\n  int last;\n  TBETable TBEs", 1)
    home.write_text(changed.replace("if (tbe.Acks == 1", f"seen := seen + 1; last := {assigned};\n if (tbe.Acks == 1", 1), encoding="utf-8")
    program, found = compile_protocol(str(tmp_path / "MSI.slicc"))
    assert program is not None, found.report()
    places = {m.name: Place(2, {p.name: 1 for p in m.params}) for m in program.machines}
    model = emit_model.emit(program, emit_model.Model(places, lines=1, messages=8), found)
    assert f"static_cast<void>({text});" in model and not re.search(r"(?<!&)\blast = [^{]", model)
    assert ("assign_(seen, " in model) == kept
