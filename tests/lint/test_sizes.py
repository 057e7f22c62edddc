# SPDX-License-Identifier: BSD-3-Clause
"""Sizes that keep the sources readable: files per folder, lines per function, columns per line of source and of prose."""

import ast
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import repository

from moscope import paths

ROOT = paths.root()
FOLDER, FUNCTION, COLUMNS, PROSE = 30, 80, 140, 100
CXX = {".cc", ".hh"}
HAND_WRITTEN = {*CXX, ".py", ".c", ".h", ".slicc", ".sm", ".lark", ".js", ".css", ".sh"}

# Larger folders, each with its reason.
LARGE_FOLDERS = {
    "docs": "one page for each topic; docs/index.md lists them by topic",
    "tests/mem/slicc/protocols": "one small protocol per rule of the compiler: data, read by one test",
}
# Longer functions, to be split; a function that is split leaves this list.
LONG_FUNCTIONS: set[str] = set()
# Files with wider lines, to be wrapped; a file that is wrapped leaves this list.
WIDE_FILES: set[str] = set()


def all_files() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("sizes are of the repository's files: this copy has no git folder")
    return repository.files(ROOT)


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def python_functions(name: str) -> list[tuple[str, int]]:
    return [(f"{name}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1)
            for node in ast.walk(ast.parse(text_of(name))) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def cxx_functions(names: list[str]) -> list[tuple[str, int]]:
    """Names and lengths, as Universal Ctags finds them."""
    got = subprocess.run(["ctags", "--fields=+neK", "--c++-kinds=f", "-o", "-", "-L", "-"], cwd=ROOT, input="\n".join(names),
                         capture_output=True, text=True, check=True)
    found = []
    for line in got.stdout.splitlines():
        place = re.search(r"\tline:(\d+).*\tend:(\d+)", line)
        if place:
            function, file = line.split("\t")[:2]
            found.append((f"{file}:{function}", int(place[2]) - int(place[1]) + 1))
    return found


def test_no_folder_holds_more_files_than_a_reader_can_survey() -> None:
    count = Counter(str(Path(name).parent) for name in all_files())
    assert not {folder: n for folder, n in count.items() if n > FOLDER and folder not in LARGE_FOLDERS}


def test_no_function_in_python_is_long() -> None:
    files = [name for name in all_files() if name.endswith(".py") or name in ("SConstruct", "moscope")]
    assert not {f: n for name in files for f, n in python_functions(name) if n > FUNCTION and f not in LONG_FUNCTIONS}


def test_no_function_in_cxx_is_long() -> None:
    if shutil.which("ctags") is None or "Universal" not in subprocess.run(
            ["ctags", "--version"], capture_output=True, text=True, check=False).stdout:
        pytest.skip("this system has no Universal Ctags (package universal-ctags)")
    found = cxx_functions([name for name in all_files() if Path(name).suffix in CXX])
    assert not {f: n for f, n in found if n > FUNCTION and f not in LONG_FUNCTIONS}


def test_no_line_is_wide() -> None:
    sources = [name for name in all_files() if Path(name).suffix in HAND_WRITTEN or name in ("SConstruct", "moscope")]
    wide = [f"{name}:{i}: {len(line)} columns" for name in sources if name not in WIDE_FILES
            for i, line in enumerate(text_of(name).splitlines(), 1) if len(line) > COLUMNS]
    assert not wide, "\n".join(wide)


def wide_prose(text: str) -> list[int]:
    """Numbers of the lines of a Markdown page that should be wrapped: no code, no table, nothing that is one link or one word."""
    found, fence = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r" *(```+|~~~+)", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        elif not fence and len(line) > PROSE and not line.lstrip().startswith(("|", "<!--")):
            words = re.sub(r"\[[^]]*\]\([^)]*\)|`[^`]*`", "x", re.sub(r"^ *([-*+>]|\d+[.)]) ", "", line)).split()
            found += [number] if len(words) > 1 else []
    return found


def test_no_line_of_prose_is_wide() -> None:
    wide = [f"{name}:{number}" for name in all_files() if name.endswith(".md") for number in wide_prose(text_of(name))]
    assert not wide, f"more than {PROSE} columns:\n" + "\n".join(wide)


@pytest.mark.parametrize("text, numbers", [
    ("word " * 30, [1]),
    ("- " + "word " * 30, [1]),
    ("short\n\n```\n" + "code " * 30 + "\n```\n" + "word " * 30, [6]),
    ("| " + "cell " * 30 + "|", []),
    (f"[a link](https://example.org/{'x' * 100})", []),
])
def test_the_check_finds_wide_prose_and_nothing_else(text: str, numbers: list[int]) -> None:
    assert wide_prose(text) == numbers
