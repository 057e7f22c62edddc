# SPDX-License-Identifier: BSD-3-Clause
"""One version number: what each file and command says of it."""

import re
import subprocess
import sys
from pathlib import Path

from moscope import cli
from moscope._version import VERSION


def test_the_launcher_prints_the_version_without_a_build(root: Path) -> None:
    got = subprocess.run([sys.executable, root / "moscope", "--version"], capture_output=True, text=True, check=True)
    assert (got.stdout, got.stderr) == (f"moscope {VERSION}\n", "")


def test_the_front_end_prints_the_same_version(capfd) -> None:
    assert cli.main(["--version"]) == 0
    assert capfd.readouterr().out == f"moscope {VERSION}\n"


def test_the_version_is_a_semantic_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


def test_the_citation_has_the_version(root: Path) -> None:
    assert re.findall(r"^version: (.*)$", (root / "CITATION.cff").read_text(), re.MULTILINE) == [VERSION]


def test_the_changelog_begins_with_the_version(root: Path) -> None:
    assert re.findall(r"^## \[(.*?)\]", (root / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == VERSION


def test_no_other_file_of_the_package_repeats_the_version(root: Path) -> None:
    repeats = [p for p in (root / "src/python").rglob("*.py") if p.name != "_version.py" and f'"{VERSION}"' in p.read_text()]
    assert not repeats
