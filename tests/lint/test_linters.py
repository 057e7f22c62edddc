# SPDX-License-Identifier: BSD-3-Clause
"""ruff and mypy over the Python sources, clang-format over the C++ ones. Settings: pyproject.toml and .clang-format; versions:
requirements-lint.txt and toolchain.CLANG_FORMAT. Each linter also has a mistake that it must find.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import repository

from moscope import bootstrap, paths

ROOT = paths.root()
# Folders and files that are not clean yet, by tool. A folder that is clean leaves the list.
NOT_CLEAN: dict[str, tuple[str, ...]] = {
    "ruff": (),
    "mypy": (),
}


def output(*command: str | Path) -> str:
    """What a linter prints; an exit code above 1 means that it could not do its work."""
    got = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert got.returncode in (0, 1), got.stdout + got.stderr
    return got.stdout


def python_tool(name: str) -> Path:
    return bootstrap.extra_venv("lint", bootstrap.Voice(quiet=True)) / "bin" / name


def ruff(*files: str) -> str:
    return output(python_tool("ruff"), "check", "--quiet", "--output-format", "concise", "--config", ROOT / "pyproject.toml", *files)


def mypy(*arguments: str) -> str:
    # It reads the types of the packages from the environment of these tests.
    return output(python_tool("mypy"), "--config-file", ROOT / "pyproject.toml", "--python-executable", sys.executable,
                  "--no-error-summary", "--hide-error-context", *arguments)


CHECKS: dict[str, Callable[[], str]] = {"ruff": lambda: ruff("."), "mypy": mypy}


def faults(tool: str) -> list[str]:
    """One per line of the output, with paths relative to the checkout; src/python/moscope/schema is a link to src/schema."""
    lines = CHECKS[tool]().replace(f"{ROOT}/", "").replace("src/python/moscope/schema/", "src/schema/").splitlines()
    return [line for line in lines if re.match(r"[^ :]+:\d+:", line) and ": note: " not in line]


@pytest.mark.parametrize("tool", CHECKS)
def test_python_is_clean(tool: str) -> None:
    found = faults(tool)
    new = [line for line in found if not line.startswith(NOT_CLEAN[tool])]
    assert not new, "\n".join(new)
    idle = [name for name in NOT_CLEAN[tool] if not any(line.startswith(name) for line in found)]
    assert not idle, f"these are clean and leave the list NOT_CLEAN: {idle}"


@pytest.mark.parametrize("text, code", [
    ("import os\n", "F401"),
    ("x = 1\nif x == None:\n    pass\n", "E711"),
    ("def f(a=[]):\n    return a\n", "B006"),
    ("import sys\nimport os\nprint(os, sys)\n", "I001"),
    (f"x = '{'x' * 140}'\n", "E501"),
])
def test_ruff_finds_a_planted_mistake(tmp_path: Path, text: str, code: str) -> None:
    (tmp_path / "planted.py").write_text(text)
    assert code in ruff(str(tmp_path / "planted.py"))


@pytest.mark.parametrize("text, code", [
    ("def f(x):\n    return x\n", "no-untyped-def"),
    ("def f(x: int) -> str:\n    return x\n", "return-value"),
])
def test_mypy_finds_a_planted_mistake(tmp_path: Path, text: str, code: str) -> None:
    (tmp_path / "planted.py").write_text(text)
    assert f"[{code}]" in mypy("--cache-dir", str(ROOT / "build" / "mypy-planted"), str(tmp_path / "planted.py"))


def test_cxx_has_the_layout_of_clang_format(clang_format: Callable[..., str]) -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("the layout is that of the repository's files: this copy has no git folder")
    found = clang_format(*repository.files(ROOT, "*.cc", "*.hh"))
    assert not found, found


def test_clang_format_finds_a_planted_mistake(tmp_path: Path, clang_format: Callable[..., str]) -> None:
    (tmp_path / "planted.cc").write_text("int  main(){return 0;}\n")
    assert "planted.cc:1:" in clang_format(tmp_path / "planted.cc")
