# SPDX-License-Identifier: BSD-3-Clause
"""The command `moscope step`: the page as a file, the trace as JSON, examples."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import paths
from moscope.cli import Shared
from moscope.errors import UserError
from moscope.stepping import examples, options
from moscope.stepping import open as opening

Moscope = Callable[..., subprocess.CompletedProcess[str]]


def test_the_page_is_written_beside_the_trace(moscope: Moscope, tmp_path: Path) -> None:
    got = moscope("step", "c0 st A@n0; c1 ld A@n0", "--protocol", "MSI", "--machine", "small", "--html", "page.html", "--json")
    assert got.returncode == 0, got.stderr
    trace = json.loads(got.stdout)
    assert (trace["schema"], trace["protocol"]) == ("moscope.trace/1", "MSI")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("arguments", [
    [], ["c0 ld A@n0", "--example", "false-sharing"], ["--example", "nothing"], ["c0 ld"], ["c0 ld A@n0", "--port", "65536", "--json"],
    ["c0 ld A@n0", "--html", "no/such/folder.html"], ["c0 ld A@n0", "--html", "page.png"],
    ["c0 ld A@n0", "--protocol", "nothing", "--json"],
], ids=" ".join)
def test_a_mistake_is_a_user_error(moscope: Moscope, arguments: list[str]) -> None:
    got = moscope("step", *arguments)
    assert got.returncode == 2
    assert "expected" in got.stderr


@pytest.mark.parametrize(("found", "code"), [({}, 0), ({"violations": []}, 0), ({"violations": [{}]}, 1), ({"protocol_error": "hangs"}, 3)])
def test_a_failed_check_ends_with_its_exit_code_and_the_page_is_written(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: dict[str, object], code: int) -> None:
    printed: list[object] = []
    monkeypatch.setattr(opening.page, "html", lambda _: "<!doctype html>")
    monkeypatch.setattr(Shared, "result", lambda _, document: printed.append(document))
    trace = {"schema": "moscope.trace/1", "accesses": [], "messages": [], "transitions": [], **found}
    assert opening.show(Shared(json=True), {"trace": trace}, None, tmp_path / "page.html", 0) == code
    assert (tmp_path / "page.html").exists() and printed == [trace]


@pytest.mark.parametrize("name", examples.names())
def test_an_example_has_a_title_and_text(name: str) -> None:
    example = examples.load(name)
    assert example.title
    assert all(step["text"] for step in example.steps)


def test_help_and_documentation_list_the_examples(moscope: Moscope) -> None:
    said = " ".join(moscope("step", "--help").stdout.replace("\u2502", " ").split())
    page = (paths.root() / "docs/stepping.md").read_text(encoding="utf-8")
    for name in examples.names():
        assert name in said and f"| `{name}` | {examples.load(name).title} |" in page, name


def test_a_file_of_another_kind_is_no_script_file(tmp_path: Path) -> None:
    picture = tmp_path / "x.png"
    picture.touch()
    with pytest.raises(UserError, match=r"x\.png: is not a script file: expected a file whose name ends in \.toml"):
        options.chosen(Shared(), str(picture), None, None)


def test_a_script_file_has_its_own_seed_unless_the_option_gives_one(tmp_path: Path) -> None:
    file = tmp_path / "random.toml"
    file.write_text('title = "random victims"\nscript = "c0 ld A@n0"\nseed = 5\n', encoding="utf-8")
    assert options.chosen(Shared(), str(file), None, None)[0].seed == 5
    assert options.chosen(Shared(seed=1, given=frozenset({"seed"})), str(file), None, None)[0].seed == 1
    assert options.chosen(Shared(), "c0 ld A@n0", None, None)[0].seed == 1


def test_the_options_protocol_replaces_the_files(tmp_path: Path) -> None:
    file = tmp_path / "found.toml"
    file.write_text('title = "a counterexample"\nscript = "c0 ld A@n0"\nprotocol = "MSI"\n', encoding="utf-8")
    for sets, protocol in (([], None), (["protocol=MOESI_HTAssist"], None), ([], "MOESI_HTAssist")):
        spec, _ = options.chosen(Shared(sets=sets), str(file), None, protocol)
        assert spec.all_sets[-1] == ("protocol=MOESI_HTAssist" if sets or protocol else "protocol=MSI")
    with pytest.raises(UserError, match="expected one of the two"):
        options.chosen(Shared(sets=["protocol=MSI"]), str(file), None, "MSI")


@pytest.mark.parametrize(("shared", "protocol", "kept"), [
    (Shared(), None, True), (Shared(sets=["protocol=MSI"]), None, True), (Shared(), "MOESI_HTAssist", False),
    (Shared(machine="small", given=frozenset({"machine"})), None, False), (Shared(sets=["dram.channels=1"]), None, False)])
def test_an_example_keeps_its_text_only_with_its_own_machine_and_protocol(shared: Shared, protocol: str | None, kept: bool) -> None:
    spec, example = options.chosen(shared, None, "msi-life", protocol)
    assert example
    shown = example.shown_with(spec)
    assert (shown == example.as_json()) is kept
    assert (shown["name"] == "msi-life") is kept
    assert kept or "is not shown" in shown["steps"][0]["text"]


@pytest.mark.parametrize("shared", [Shared(sets=["dram.channels=1"]), Shared(machine="small", given=frozenset({"machine"})),
                                    Shared(seed=2, given=frozenset({"seed"}))])
def test_an_episode_of_a_run_has_the_runs_machine_and_seed(shared: Shared) -> None:
    with pytest.raises(UserError, match="--run and --"):
        options.check_run(shared, None, None, None)
    options.check_run(Shared(), None, None, None)
