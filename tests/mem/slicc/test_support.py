# SPDX-License-Identifier: BSD-3-Clause
"""What protocols from outside the project rely on: the table of what is supported beside the documentation, declarations and C++ of
a protocol's own, older spellings, and code that names the protocol's line where it goes wrong."""
from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest

from moscope import buildproto
from slicc import cli
from slicc.compile import compile_protocol
from slicc.parse import PRELUDE
from slicc.supported import FUNCTIONS, NOT_IMPLEMENTED, PARAMETERS, TYPES

ROOT = Path(__file__).parents[3]
FOLDER = Path(__file__).parent / "protocols"


def page_rows(heading: str) -> dict[str, set[str]]:
    """The table below a heading of docs/slicc.md: the names in the first column, and those in the second."""
    text = (ROOT / "docs/slicc.md").read_text(encoding="utf-8").split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    return {name: set(re.findall(r"`([^`]+)`", second)) for first, second in rows for name in re.findall(r"`([^`]+)`", first)}


def test_the_page_lists_the_types_and_methods_that_protocols_may_declare() -> None:
    assert page_rows("Types that a protocol declares") == {name: set(known.methods) for name, known in TYPES.items()}


def test_the_page_lists_the_functions_that_protocols_may_declare() -> None:
    assert set(page_rows("Functions that a protocol declares")) == set(FUNCTIONS)


def test_the_page_lists_what_the_prelude_declares_and_moscope_does_not_define() -> None:
    assert page_rows("Not defined") == {name: set(methods) for name, methods in NOT_IMPLEMENTED.items()}


def test_the_page_lists_every_kind_of_warning() -> None:
    page = (ROOT / "docs/slicc.md").read_text(encoding="utf-8").split("## Warnings about omissions\n", 1)[1].split("\n## ", 1)[0]
    calls = [call for path in (ROOT / "src/mem/slicc").glob("*.py") for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
             if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("warn", "warning")]
    kinds = {str(call.args[-1].value) for call in calls if isinstance(call.args[-1], ast.Constant)}
    assert {kind for kind in kinds if f"`{kind}`" not in page} == set() and len(kinds) > 20


def test_every_header_of_a_supported_type_exists_and_defines_it() -> None:
    for name, known in TYPES.items():
        if known.header:
            assert re.search(rf"\b(class|struct|using) {name}\b", (ROOT / "src" / known.header).read_text(encoding="utf-8")), name


def test_the_types_of_parameters_are_declared_by_the_prelude_or_the_protocol() -> None:
    declared = set(re.findall(r"(?:structure|external_type)\s*\(([\w:]+)",
                              "".join(p.read_text(encoding="utf-8") for p in Path(PRELUDE).glob("*.sm"))))
    assert declared | set(TYPES) >= PARAMETERS


def tiny(tmp_path: Path, change: tuple[str, str] = ("", "")) -> Path:
    """A copy of ok_plain.slicc with another text in its actions."""
    shutil.copytree(FOLDER / "common", tmp_path / "common")
    actions = tmp_path / "common" / "actions.sm"
    text = actions.read_text(encoding="utf-8")
    assert change[0] in text
    actions.write_text(text.replace(*change, 1), encoding="utf-8")
    return shutil.copy(FOLDER / "ok_plain.slicc", tmp_path / "ok_plain.slicc")


ADD = "out_msg.Destination.add(mapAddressToMachine(address, MachineType:Directory));"


def test_a_protocol_brings_declarations_and_cxx_of_its_own(tmp_path: Path) -> None:
    protocol = tiny(tmp_path, (ADD, ADD + " double(latency); cache.profileOdd(address); TBEs.sample(2); mandatory_in.forget(address);"))
    cache = tmp_path / "common" / "cache.sm"
    table = 'structure(TBETable, external="yes") {'
    cache.write_text(cache.read_text(encoding="utf-8").replace(table, table + "\n  void sample(int);"), encoding="utf-8")
    program, diagnostics = compile_protocol(str(protocol))
    assert program is None and len(diagnostics.errors()) == 3
    (tmp_path / "ok_plain.prelude.sm").write_text(
        "int double(Cycles c);\nstructure(CacheMemory, external=\"yes\") { void profileOdd(Addr); }\n"
        "structure(InPort, external=\"yes\") { void forget(Addr); }\n"
        "enumeration(RubyRequestType, desc=\"\") { SPECULATIVE, desc=\"\"; }\n"
        "structure(RubyRequest, external=\"yes\") { int index, default=\"3\"; }\n")
    program, diagnostics = compile_protocol(str(protocol))
    assert program is None and sum("header" in d.message for d in diagnostics.errors()) == 3
    assert sum("method 'sample' of TBETable: not supported" in d.message for d in diagnostics.errors()) == 1
    (tmp_path / "ok_plain.hh").write_text("inline int double(std::int64_t c) { return 2 * c; }\nvoid CacheMemory_profileOdd();\n"
                                          "void TBETable_sample();\nvoid InPort_forget();\n")
    program, diagnostics = compile_protocol(str(protocol))
    assert program is not None, diagnostics.report()
    assert cli.run(["--protocol", str(protocol), "--out", str(tmp_path / "out"), "--no-warnings"]) == 0
    generated = (tmp_path / "out" / "L1Cache_Controller.cc").read_text(encoding="utf-8")
    shared = (tmp_path / "out" / "ok_plain_types.hh").read_text(encoding="utf-8")
    assert "CacheMemory_profileOdd(*cache, address);" in generated
    assert "TBETable_sample(TBEs, 2);" in generated and "InPort_forget(mandatoryQueue, address);" in generated
    assert "RubyRequestType_SPECULATIVE = static_cast<RubyRequestType>(RubyRequestType_NUM + 0)" in shared
    assert '#include "ok_plain_own.hh"' in shared and (tmp_path / "out" / "ok_plain_own.hh").exists()


@pytest.mark.parametrize("strict", [False, True])
def test_code_of_a_protocol_from_outside_says_where_it_is(tmp_path: Path, strict: bool) -> None:
    protocol = tiny(tmp_path)
    assert cli.run(["--protocol", str(protocol), "--out", str(tmp_path / "out"), "--no-warnings", *["--strict"] * strict]) == 0
    generated = (tmp_path / "out" / "L1Cache_Controller.cc").read_text(encoding="utf-8")
    assert ('in("action ' in generated and 'at("common/actions.sm", ' in generated) != strict


def test_files_in_folders_of_a_protocol_are_named_with_the_folder(tmp_path: Path) -> None:
    """So that a user finds the one at fault of two with one name."""
    protocol, cache = tiny(tmp_path), tmp_path / "common" / "cache.sm"
    (tmp_path / "common" / "deep").mkdir()
    cache.rename(tmp_path / "common" / "deep" / "actions.sm")
    for file in (protocol, *(tmp_path / "common").glob("*.sm")):
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(r'include "(common/)?cache.sm"', 'include "common/deep/../deep/actions.sm"', text), encoding="utf-8")
    assert cli.run(["--protocol", str(protocol), "--out", str(tmp_path / "out"), "--no-warnings"]) == 0
    generated = (tmp_path / "out" / "L1Cache_Controller.cc").read_text(encoding="utf-8")
    named = set(re.findall(r'\b(?:at|in)\((?:"[^"]*", )?"([^"]*\.\w+)", \d+\)', generated))
    assert {"common/actions.sm", "common/deep/actions.sm"} <= named
    assert named <= {buildproto.name_of(path, protocol) for path in buildproto.protocol_inputs(protocol)}
    interface = (tmp_path / "out" / "ok_plain.json").read_text(encoding="utf-8")
    assert set(re.findall(r'"file": ?"([^"]*)"', interface)) <= named


@pytest.mark.parametrize("old, new, error", [
    (ADD, ADD + " Address a;", "type 'Address': of gem5 before 2015: expected Addr"),
    ("protocol \"ok_plain\";", "protocol \"ok-plain\";", ""),
    ("protocol \"ok_plain\";", "protocol \"ok_plain\" use_secondary_load_linked;", ""),
    ("include \"common/messages.sm\";", "include \"common/mesages.sm\";", "no such file in the folder of the including file"),
])
def test_older_and_newer_spellings_are_taken_or_explained(tmp_path: Path, old: str, new: str, error: str) -> None:
    protocol = tiny(tmp_path)
    for path in (protocol, tmp_path / "common" / "actions.sm"):
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    program, diagnostics = compile_protocol(str(protocol))
    found = [d.message for d in diagnostics.errors()]
    assert (len(found) == 1 and error in found[0]) if error else program is not None and not found


def test_the_prelude_has_what_gem5_24_1_adds(tmp_path: Path) -> None:
    protocol = tiny(tmp_path)
    with (tmp_path / "common" / "cache.sm").open("a", encoding="utf-8") as cache:
        cache.write("bool ofLine(RubyRequestType type, Addr a, WriteMask given) {\n  WriteMask mask;\n"
                    "  mask.setBlockSize(given.getBlockSize());\n"
                    "  return type != RubyRequestType:hasNoAddr && makeLineAddress(a, 6) == a;\n}\n")
    assert cli.run(["--protocol", str(protocol), "--out", str(tmp_path / "out"), "--no-warnings"]) == 0
    assert "set_block_size(mask, given.getBlockSize());" in (tmp_path / "out" / "L1Cache_Controller.cc").read_text(encoding="utf-8")


@pytest.mark.parametrize("own", [False, True], ids=["alone", "with declarations of its own"])
def test_a_protocol_that_does_not_include_the_prelude_has_it_all_the_same(tmp_path: Path, own: bool) -> None:
    path = tiny(tmp_path)
    include = 'include "RubySlicc_interfaces.slicc";\n'
    text = path.read_text(encoding="utf-8")
    assert include in text
    path.write_text(text.replace(include, ""), encoding="utf-8")
    if own:
        path.with_suffix(".prelude.sm").write_text("int ofItsOwn();\n", encoding="utf-8")
    program, diagnostics = compile_protocol(str(path))
    assert program is not None, diagnostics.report()
    assert any(f.name == "ofItsOwn" for f in program.functions) == own
