# SPDX-License-Identifier: BSD-3-Clause
"""The help of every command is readable at usual widths: no line is wider than the terminal, and no word is split or cut."""

import json
import os
import re
import subprocess
import sys

import pytest

from moscope import cli, commands, paths

# Renders the help of the commands on its standard input, each on a console of each width.
RENDER = """
import contextlib, io, json, os, sys
from moscope import cli
answers = {}
for command, width in json.load(sys.stdin):
    os.environ["COLUMNS"] = str(width)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        cli.main([*command, "--help"])
    answers[f"{' '.join(command)} {width}"] = out.getvalue()
json.dump(answers, sys.stdout)
"""
WIDE = 1000
WIDTHS = (80, 120)
FRAME = re.compile(r"[─│╭╮╰╯]")


def every_command(package: str = commands.__name__, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [before]
    for name, module in cli._names_in(package).items():
        inner = paths.PACKAGE.joinpath(*module.split(".")[1:])
        found += every_command(module, (*before, name)) if inner.is_dir() else [(*before, name)]
    return found


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    wanted: list[tuple[tuple[str, ...], int]] = [(("run",), 40)]
    wanted += [(command, width) for command in every_command() for width in (*WIDTHS, WIDE)]
    env = {**os.environ, "PYTHONPATH": str(paths.import_dir()), "NO_COLOR": "1", "TERM": "dumb"}
    got = subprocess.run([sys.executable, "-P", "-c", RENDER], input=json.dumps(wanted), env=env, capture_output=True, text=True,
                         check=True)
    answers: dict[str, str] = json.loads(got.stdout)
    return answers


def words(text: str) -> set[str]:
    return set(FRAME.sub(" ", text).split())


def test_the_list_has_groups_and_their_commands() -> None:
    assert {(), ("run",), ("protocol",), ("protocol", "check"), ("bench", "memory")} <= set(every_command())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", every_command(), ids=lambda command: " ".join(command) or "moscope")
def test_help_fits_the_terminal_and_splits_no_word(command: tuple[str, ...], width: int, helps: dict[str, str]) -> None:
    name = " ".join(command)
    narrow, wide = helps[f"{name} {width}"], helps[f"{name} {WIDE}"]
    assert "Usage:" in narrow
    assert not [line for line in narrow.splitlines() if len(line) > width]
    assert words(narrow) <= words(wide), words(narrow) - words(wide)


def test_the_check_finds_words_that_a_narrow_terminal_splits(helps: dict[str, str]) -> None:
    assert not words(helps["run 40"]) <= words(helps[f"run {WIDE}"])
