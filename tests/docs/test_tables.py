# SPDX-License-Identifier: BSD-3-Clause
"""Every table of the Markdown pages is whole: a row that a blank line has cut off is shown as text."""

import re
from pathlib import Path

import markdown_pages
import pytest

from moscope import paths

ROOT = paths.root()
SEPARATOR = re.compile(r"\|( *:?-+:? *\|)+")
ZERO_ERROR = re.compile(r"± 0(?![.\d])")
CELL_END = re.compile(r"(?<!\\)\|")


def faults(path: Path) -> list[str]:
    lines = markdown_pages.page(path).without(markdown_pages.FENCE).splitlines()
    found = []
    width = 0  # of the table at hand; 0: none
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            width = 0
            continue
        cells = len(CELL_END.findall(line)) - 1
        following = lines[number] if number < len(lines) else ""
        if width == 0 and not SEPARATOR.fullmatch(following.strip()):
            found.append(f"{path}:{number}: a row without a table: expected a header and a line of dashes before it")
        elif width and cells != width:
            found.append(f"{path}:{number}: {cells} cells: expected {width}, as the header has")
        width = width or cells
    return found


@pytest.mark.parametrize("path", markdown_pages.pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_each_table_of_the_page_is_whole(path: Path) -> None:
    found = faults(path)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", markdown_pages.pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_table_of_the_page_has_an_error_of_zero(path: Path) -> None:
    rows = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert not [row for row in rows if ZERO_ERROR.search(row)], "counting alone has an error: expected at least 0.41 operation"


@pytest.mark.parametrize("text, wrong", [
    ("| a | b |\n|---|---|\n| c | d \\| e |\n\n| f |\n|---|\n", 0),
    ("| a | b |\n|---|---|\n| c | d |\n\n| e | f |\n", 1),
    ("| a | b |\n|---|---|\n| c |\n", 1),
    ("```\n| a |\n```\n", 0),
])
def test_the_check_finds_rows_that_are_cut_off(tmp_path: Path, text: str, wrong: int) -> None:
    (tmp_path / "page.md").write_text(text)
    assert len(faults(tmp_path / "page.md")) == wrong
