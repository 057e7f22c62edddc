# SPDX-License-Identifier: BSD-3-Clause
"""Call chains: as a tree, on the page, on the terminal, and for other tools."""

import re
from dataclasses import replace
from pathlib import Path

import browser
import pyarrow as pa
import pytest
from pyarrow import parquet

from analysis import Point, exports
from analysis.chains import called_at, chains, stores_note
from analysis.chains.table import innermost
from analysis.chains.tree import Call, placed, tree
from analysis.database import Database
from analysis.maps.text import show_chains
from analysis.page import flames
from analysis.page.document import HERE

US = 10**9
ROWS = (
    ("lock", "kernel symbol", "server", ("server:main", "server:loop", "entry", "sys_read", "down_read"), 6 * US, 6),
    ("lock", "kernel symbol", "server", ("server:main", "server:loop", "entry", "sys_write", "down_write"), 3 * US, 3),
    ("<queue>", "user symbol", "client", ("client:main", "take (inlined)"), 1 * US, 1),
)


@pytest.fixture
def point(tmp_path: Path) -> Point:
    names = ("name", "kind", "process", "frames", "waiting", "samples")
    parquet.write_table(pa.Table.from_pylist([dict(zip(names, (*row[:3], list(row[3]), *row[4:]), strict=True)) for row in ROWS]),
                        tmp_path / "stacks.parquet")
    for name in ("lines", "pairs", "transfers"):
        line = {"line": 0, "use": 0, "name": "lock", "kind": "kernel symbol", "waiter_function": "down_read",
                "stall": 6 * US, "spin": 0, "transfers": 0, "waiters": 0}
        parquet.write_table(pa.Table.from_pylist([{**line, **{f"{c}_{what}": 0 for what in ("stall", "count") for c in (
            "cold", "capacity", "upgrade", "secondary", "true_sharing", "false_sharing")}}]), tmp_path / f"{name}.parquet")
    return Point("p", {}, {}, Database({"p": tmp_path}))


def below(call: Call, *functions: str) -> Call:
    for function in functions:
        call = call.called[function, False]
    return call


def test_a_call_has_the_waiting_of_all_that_it_called_and_bars_lie_under_their_caller(point: Point) -> None:
    root = tree(chains(point))
    assert root.waiting == sum(row[4] for row in ROWS)
    loop = below(root, "server", "server:main", "server:loop")
    assert (loop.waiting, loop.own) == (9 * US, 0)
    assert below(loop, "entry", "sys_read", "down_read").own == 6 * US
    bars = list(placed(root, 0.0))
    for call, depth, start, width in bars:
        inside = [(s, w) for _, d, s, w in bars if d == depth + 1 and start - 1e-9 <= s < start + width - 1e-9]
        assert sum(w for _, w in inside) == pytest.approx((call.waiting - call.own) / root.waiting)
        assert all(s + w <= start + width + 1e-9 for s, w in inside)


def test_chains_that_end_in_functions_without_an_access_to_the_lines_are_said_to_wait_for_stores(point: Point) -> None:
    assert stores_note(point, "lock", "kernel symbol").startswith("At least 33 % of this waiting is for earlier stores: a locked")
    assert "At least 33 % of this waiting is for earlier stores" in flames.of_name(point, "lock", "kernel symbol", 0.9)
    assert innermost(chains(point, "<queue>", "user symbol")[0]) == "client:main", "pairs do not name an inlined function"
    point.made["chains"] = [replace(one, frames=("down_read", "inner (inlined)")) for one in chains(point)]
    assert stores_note(point, "lock", "kernel symbol") == ""


@pytest.mark.parametrize(("samples", "note"), [(3, ""), (300, "At least 17 % of this waiting is for earlier stores")])
def test_chains_of_a_function_that_waits_less_itself_are_said_to_wait_for_stores_unless_chance_explains_it(
        point: Point, monkeypatch: pytest.MonkeyPatch, samples: int, note: str) -> None:
    # Each function has half of the waiting; of the chains, one has a third and the other two thirds.
    monkeypatch.setattr(point.database, "entries", lambda _: {})
    monkeypatch.setattr(point.database, "rows", lambda *_: [{"waiter_function": f"down_{way}", "waiting": 5} for way in ("read", "write")])
    point.made["chains"] = [replace(one, samples=one.samples * samples // 9) for one in chains(point)]
    found = stores_note(point, "lock", "kernel symbol")
    assert found.startswith(note) and bool(found) == bool(note)


def test_narrow_bars_are_left_out_with_what_they_called(point: Point) -> None:
    assert "client:main" not in {call.function for call, _, _, _ in placed(tree(chains(point)), 0.2)}


@pytest.mark.parametrize(("function", "above", "kind"), [
    ("server:loop", "a", "u"), ("take (inlined)", "u", "u"), ("entry_SYSCALL_64_after_hwframe", "u", "k"), ("do_syscall_64", "k", "k"),
    ("__lookup (inlined)", "k", "k"), ("ext4_file_read_iter [ext4]", "u", "k"), ("kthread", "a", "k"),
    ("libstdc++.so.6 (no symbols)", "u", "u"), ("[vdso] (no symbols)", "u", "u")])
def test_a_bar_has_the_colour_of_a_program_or_of_the_kernel(function: str, above: str, kind: str) -> None:
    """Also code without symbols, and a function that is inlined into a program's."""
    assert flames._kind(Call(function), above) == kind


def test_a_line_has_its_colour_whatever_its_name_and_a_legend_has_the_colours_that_are_drawn(point: Point) -> None:
    point.made["chains"] = [replace(one, frames=("server:main", "[vdso] (no symbols)")) for one in chains(point, "lock", "kernel symbol")]
    page = flames.section(point)
    drawn = dict(re.findall(r'<button type="button" class="(.)"[^>]*>([^<]*)</button>', page))
    assert drawn == {"a": "server", "u": "[vdso] (no symbols)", "l": "[lock]"}
    assert re.findall(r'<i class="(.)">', page) == ["a", "u", "l"] and "function of the kernel" not in page


@pytest.mark.skipif(browser.find() is None, reason="no Chromium here")
def test_a_graph_is_one_tab_stop_within_which_arrow_keys_move(point: Point, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(f"<main>{flames.section(point)}</main><script>{(HERE / 'script.js').read_text()}</script>")
    with browser.Page(file, 1280, profile=tmp_path / "profile") as page:
        stops = '[...document.querySelectorAll(".flames button")].filter(bar => bar.tabIndex === 0).map(bar => bar.textContent)'
        press = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Arrow{}', bubbles: true}}))"
        assert page.ask(stops) == ["all"]
        page.ask('document.querySelector(".flames button").focus()')
        for key, reached in (("Down", "client"), ("Right", "server"), ("Right", "server"), ("Down", "server:main"), ("Up", "server"),
                             ("Left", "client"), ("Up", "all"), ("Up", "all")):
            page.ask(press.format(key))
            assert page.ask(stops) == [page.ask("document.activeElement.textContent")] == [reached], key
        page.ask(f"document.querySelectorAll('.flames button')[1].click(); {press.format('Right')}")
        assert page.ask(stops) == ["client"], "the bars beside it are out of the picture"
        assert page.errors == []


def test_the_page_has_all_functions_and_escapes_markup_in_names(point: Point) -> None:
    page = flames.section(point)
    for function in ("down_write", "client:main", "take (inlined)", "[lock]"):
        assert f">{function}</button>" in page
    assert "<queue>" not in page and "[&lt;queue&gt;]" in page
    of_lock = flames.of_name(point, "lock", "kernel symbol", 0.9)
    assert "client" not in of_lock and "67" in of_lock


def test_the_code_that_called_what_waits_has_its_share_of_all_chains_of_the_name(point: Point, tmp_path: Path) -> None:
    assert called_at(point) == {}  # written before there were source lines
    file = tmp_path / "stacks.parquet"
    rows = parquet.read_table(file).to_pylist()
    places = (("server:loop", "server.c:7", "serve called at server.c:20"), ("server:loop", "server.c:9", ""), ("", "", ""))
    columns = ("at_function", "at_source", "at_inlined")
    with_places = [{**row, **dict(zip(columns, place, strict=True))} for row, place in zip(rows, places, strict=True)]
    parquet.write_table(pa.Table.from_pylist(with_places), file)
    assert called_at(point) == {("lock", "kernel symbol"): [
        {"function": "server:loop", "source": "server.c:7", "inlined": ["serve called at server.c:20"], "share": 6 / 9},
        {"function": "server:loop", "source": "server.c:9", "inlined": [], "share": 3 / 9}]}


def test_a_point_without_samples_has_no_section(tmp_path: Path) -> None:
    nothing = Point("p", {})
    assert flames.section(nothing) == "" and chains(nothing) == [] and flames.of_name(nothing, "lock", "kernel symbol", 1.0) == ""


def test_the_terminal_lists_the_chains_of_a_name_innermost_first(point: Point, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    show_chains(Console(highlight=False, width=200), point, "lock", "kernel symbol")
    printed = capsys.readouterr().out
    assert "9 samples" in printed and re.search(r"67 %  down_read <- sys_read <- entry <- server:loop <- server:main", printed)


def test_in_words_chains_with_the_same_functions_are_one(point: Point, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    read, write = chains(point, "lock", "kernel symbol")
    point.made["chains"] = [read, write, replace(read, waiting=1 * US, samples=1), replace(read, process="client")]
    show_chains(Console(highlight=False, width=200), point, "lock", "kernel symbol")
    printed = capsys.readouterr().out
    assert "16 samples" in printed and re.findall(r"(\d+ %)  (\w+)", printed)[:2] == [("81 %", "down_read"), ("19 %", "down_write")]
    assert flames.of_name(point, "lock", "kernel symbol", 0.9).count("<li>") == 2


def test_collapsed_stacks_are_call_chains(point: Point) -> None:
    (text,) = exports.find("collapsed").files(point, exports.Slice()).values()
    assert "server;server:main;server:loop;entry;sys_read;down_read;lock 6000\n" in text.decode()
