# SPDX-License-Identifier: BSD-3-Clause
"""Tables, the interface description and the compiler's command line."""
from __future__ import annotations

import html.parser
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from slicc import ast, cli, interface_json, tables
from slicc.compile import compile_protocol

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PROTOCOLS = HERE / "protocols"


@pytest.fixture(name="program")
def _program() -> ast.Program:
    program, _ = compile_protocol(str(PROTOCOLS / "ok_plain.slicc"))
    assert program is not None
    return program


def slicc(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(ROOT / "src" / "mem" / "slicc"), *options], capture_output=True, text=True, timeout=120,
                          check=False)


# ---- tables


def test_the_text_table_has_a_row_for_each_state_and_fits_its_width(program: ast.Program) -> None:
    text = tables.to_text(program, width=60)
    assert max(map(len, text.splitlines())) <= 60
    row = next(line for line in text.splitlines() if line.startswith("IM "))
    assert row.split("│")[1].strip() == "stall"


def test_a_cell_has_the_actions_and_a_changed_next_state(program: ast.Program) -> None:
    table = program.machines[0].table
    assert tables.cell(table["I", "Load"]) == "c a p →IM"
    assert tables.cell(table["M", "Load"]) == "l p"
    assert tables.cell(table["IM", "Load"]) == "stall"
    assert tables.cell(None) == ""


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_table_explains_its_cells(form: str, program: ast.Program) -> None:
    text = " ".join(tables.FORMATS[form](program).split())
    assert "An empty cell: the event is a protocol error in this state." in text


def test_the_markdown_table_is_rectangular(program: ast.Program) -> None:
    rows = [line for line in tables.to_markdown(program).splitlines() if line.startswith(("| |", "| **"))]
    assert len(rows) == 1 + len(program.machines[0].states)
    assert len({len(re.split(r"(?<!\\)\|", row)) for row in rows}) == 1


def test_the_markdown_table_shows_no_escapes_inside_code() -> None:
    program, _ = compile_protocol(str(ROOT / "src/mem/ruby/protocol/MSI.slicc"))
    assert program is not None
    text = tables.to_markdown(program)
    assert "| gs | gs\\_sendGetS: Send GetS to the home directory |" in text
    assert not [code for code in re.findall(r"`[^`\n]*`", text) if "\\" in code]


class _Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)
        assert not any(name in ("src", "href") and value and not value.startswith("#") for name, value in attrs), "not self-contained"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_html_page_is_well_formed_and_self_contained(program: ast.Program) -> None:
    page = _Page()
    text = tables.FORMATS["html"](program)
    page.feed(text)
    machine = program.machines[0]
    assert not page.open and "script" not in page.tags and "link" not in page.tags
    assert text.count('class="hole"') == len(machine.states) * len(machine.events) - len(machine.transitions)
    assert all(action.name in text for action in tables.used_actions(machine))


def test_the_html_page_marks_messages_set_aside_as_stalls() -> None:
    program, diagnostics = compile_protocol(str(ROOT / "src" / "mem" / "ruby" / "protocol" / "MSI.slicc"))
    assert program is not None, diagnostics.report()
    text = tables.FORMATS["html"](program)
    aside = [t for m in program.machines for t in m.table.values() if any(a.short == "z" for a in t.actions)]
    assert aside and text.count("<td class=stall") == len(aside)


def test_the_html_page_escapes_descriptions_of_protocols(tmp_path: Path) -> None:
    program, diagnostics = compile_protocol(str(PROTOCOLS / "ok_plain.slicc"))
    assert program is not None, diagnostics.report()
    program.machines[0].states[0].pairs["desc"] = "<b>&\"</b>"
    text = tables.FORMATS["html"](program)
    assert "<b>&\"" not in text and "&lt;b&gt;&amp;" in text


# ---- interface


def test_the_interface_has_parameters_buffers_and_counts(program: ast.Program) -> None:
    described = json.loads(interface_json.text(program))
    machine = described["machines"][0]
    assert described["schema"] == "moscope.protocol/1" and described["protocol"] == "ok_plain"
    assert machine["params"] == [
        {"name": "sequencer", "type": "Sequencer", "pointer": True, "default": None},
        {"name": "cache", "type": "CacheMemory", "pointer": True, "default": None},
        {"name": "latency", "type": "Cycles", "pointer": False, "default": 2},
        {"name": "eager", "type": "bool", "pointer": False, "default": False},
    ]
    assert machine["buffers"][0] == {"name": "requestOut", "network": "To", "vnet": 0, "vnet_type": "request", "ordered": True}
    assert machine["buffers"][2]["network"] is None and machine["buffers"][2]["vnet"] is None
    assert machine["initial_state"] == "I"
    assert described["declared"] == machine["declared"] == len(machine["transitions"]) == 9
    assert {(hit["state"], hit["event"]) for hit in machine["pure_hits"]} == {("M", "Load"), ("M", "Store")}
    message = next(message for message in described["messages"] if message["name"] == "Msg")
    assert {"name": "Destination", "type": "NetDest"} in message["fields"]


def test_buffers_are_ordered_by_default_only_if_the_machine_declares_no_order(program: ast.Program) -> None:
    def ordered() -> dict[str, bool]:
        return {b["name"]: b["ordered"] for b in json.loads(interface_json.text(program))["machines"][0]["buffers"]}

    assert ordered() == {"requestOut": True, "responseIn": True, "mandatoryQueue": True}
    out = next(param for param in program.machines[0].params if param.name == "requestOut")
    out.pairs["ordered"] = "true"
    assert ordered() == {"requestOut": True, "responseIn": False, "mandatoryQueue": False}
    out.pairs["ordered"] = "false"
    assert ordered() == {"requestOut": False, "responseIn": False, "mandatoryQueue": False}


# ---- command line


def test_a_correct_protocol_ends_with_0_and_without_output() -> None:
    done = slicc("--protocol", str(PROTOCOLS / "ok_two_machines.slicc"), "--check-only", "--no-warnings")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_errors_end_with_2_and_show_the_line_and_a_caret() -> None:
    done = slicc("--protocol", str(PROTOCOLS / "unknown_variable.slicc"), "--check-only", "--no-warnings")
    assert done.returncode == 2 and done.stdout == ""
    head, source, caret = done.stderr.splitlines()
    assert re.match(r".*unknown_variable\.slicc:\d+:\d+: error: variable 'adress': unknown", head)
    assert source[caret.index("^"):].startswith("adress") and caret.strip() == "^~~~~~"


def test_the_line_of_an_error_ends_without_a_mark_where_lines_end_with_cr_and_lf(tmp_path: Path) -> None:
    path = tmp_path / "odd.slicc"
    path.write_bytes(b'protocol "odd";\r\nint\tx = 1;\r\n')
    _, diagnostics = compile_protocol(str(path))
    assert f"{path}:2:7: error: '=': unexpected" in diagnostics.report() and "\n    int x = 1;\n          ^" in diagnostics.report()


def test_several_errors_are_reported_in_one_run() -> None:
    done = slicc("--protocol", str(PROTOCOLS / "syntax_in_several_places.slicc"), "--check-only")
    assert done.stderr.count(": error: ") == 6 and "Traceback" not in done.stderr


def test_strict_turns_warnings_into_errors_and_no_warnings_hides_them() -> None:
    name = str(PROTOCOLS / "unreachable_and_unused_warned.slicc")
    relaxed, silent, strict = slicc("--protocol", name, "--check-only"), slicc("--protocol", name, "--check-only", "--no-warnings"), slicc(
        "--protocol", name, "--check-only", "--strict")
    assert (relaxed.returncode, silent.returncode, strict.returncode) == (0, 0, 2)
    assert "warning: state 'X'" in relaxed.stderr and silent.stderr == "" and "error: state 'X'" in strict.stderr


def test_enqueuing_into_a_from_buffer_is_an_error_only_with_strict() -> None:
    name = str(PROTOCOLS / "enqueue_to_from_buffer.slicc")
    assert slicc("--protocol", name, "--check-only", "--strict").returncode == 2
    assert slicc("--protocol", name, "--check-only").returncode == 0


def test_outputs_are_the_files_that_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = str(PROTOCOLS / "ok_two_machines.slicc")
    assert cli.run(["--protocol", name, "--list-outputs", "--no-warnings"]) == 0
    listed = capsys.readouterr().out.split()
    assert cli.run(["--protocol", name, "--out", str(tmp_path / "new" / "folder"), "--no-warnings"]) == 0
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(listed)
    assert "ok_two_machines.json" in listed


def test_an_unchanged_output_keeps_its_time(tmp_path: Path) -> None:
    name = str(PROTOCOLS / "ok_plain.slicc")
    assert cli.run(["--protocol", name, "--out", str(tmp_path), "--no-warnings"]) == 0
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert cli.run(["--protocol", name, "--out", str(tmp_path), "--no-warnings"]) == 0
    assert before == {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}


def test_an_output_folder_that_cannot_be_made_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.run(["--protocol", str(PROTOCOLS / "ok_plain.slicc"), "--out", str(tmp_path / "file" / "x"), "--no-warnings"]) == 2
    assert "expected a writable folder" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_tables_go_to_standard_output(form: str) -> None:
    done = slicc("--protocol", str(PROTOCOLS / "ok_plain.slicc"), "--table", form, "--no-warnings")
    assert done.returncode == 0 and "ok_plain" in done.stdout and done.stderr == ""


def test_the_projects_own_protocols_pass_the_strict_check() -> None:
    for path in sorted((ROOT / "src" / "mem" / "ruby" / "protocol").glob("*.slicc")):
        done = slicc("--protocol", str(path), "--check-only", "--strict")
        assert done.returncode == 0, done.stderr
