# SPDX-License-Identifier: BSD-3-Clause
"""The help of every command is readable at usual widths: no line is wider than the terminal, and no word is split or cut."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

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


def lacking(folder: Path) -> list[str]:
    """What keeps the files below a folder of commands from being commands with a help."""
    faults = [f"{inner.name}/: no __init__.py whose docstring is the help of the group"
              for inner in sorted({p.parent for p in folder.rglob("*.py")})
              if not (inner / "__init__.py").is_file() or not ast.get_docstring(ast.parse((inner / "__init__.py").read_text("utf-8")))]
    for path in sorted(p for p in folder.rglob("*.py") if p.name != "__init__.py"):
        functions = [node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
        commands_of = [f for f in functions if any(ast.unparse(d).split("(")[0] == "command" for d in f.decorator_list)]
        if len(commands_of) != 1:
            faults.append(f"{path.name}: {len(commands_of)} functions with @command")
        faults += [f"{path.name}: {f.name} has no docstring" for f in commands_of if not ast.get_docstring(f)]
    return faults


def test_each_file_of_the_commands_is_a_command_with_a_help() -> None:
    assert not lacking(Path(commands.__path__[0]))


def test_files_that_are_no_commands_with_a_help_are_found(tmp_path: Path) -> None:
    for name, text in {"__init__": '"""Commands."""', "a": "def a(shared):\n    pass", "b": "@command\ndef b(shared):\n    pass",
                       "group/c": '@command(fills_out=True)\ndef c(shared):\n    """Print."""'}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    assert lacking(tmp_path) == ["group/: no __init__.py whose docstring is the help of the group", "a.py: 0 functions with @command",
                                 "b.py: b has no docstring"]


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
