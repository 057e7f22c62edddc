# SPDX-License-Identifier: BSD-3-Clause
"""`moscope protocol table`: the same tables as text, Markdown, HTML and JSON."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import jsonio

Moscope = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("format, mark", [("text", "│"), ("markdown", "# Protocol MSI"), ("html", "<!DOCTYPE html>")])
def test_each_format_shows_the_states_of_both_machines(moscope: Moscope, format: str, mark: str) -> None:
    got = moscope("protocol", "table", "MSI", "--format", format)
    assert got.returncode == 0, got.stderr
    assert mark in got.stdout
    plain = got.stdout.replace("\\", "")  # Markdown escapes underscores
    for word in ("L1Cache", "Directory", "Fwd_GetS", "B_O"):
        assert word in plain, word


def test_json_holds_each_declared_transition_once(moscope: Moscope) -> None:
    got = moscope("protocol", "table", "MSI", "--json")
    document = json.loads(got.stdout)
    jsonio.validate(document)
    for machine in document["machines"]:
        pairs = [(t["state"], t["event"]) for t in machine["transitions"]]
        assert pairs and len(pairs) == len(set(pairs))


def test_out_takes_the_table_as_a_file(moscope: Moscope, tmp_path: Path) -> None:
    assert moscope("protocol", "table", "MSI", "--format", "html", "--out", "tables").returncode == 0
    assert (tmp_path / "tables" / "MSI.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("arguments, said", [
    (("MSJ",), "MSI"), (("MSI", "--format", "json"), "expected text, markdown, html, or the option --json"),
    (("gone.slicc",), "no such file")])
def test_unknown_names_are_user_errors(moscope: Moscope, arguments: tuple[str, ...], said: str) -> None:
    got = moscope("protocol", "table", *arguments)
    assert got.returncode == 2 and said in got.stderr
