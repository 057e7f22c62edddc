# SPDX-License-Identifier: BSD-3-Clause
"""Every guide of docs/extending can be followed: its text alone makes the thing that it promises. And what the follower
refuses."""

import shutil
from collections.abc import Callable
from pathlib import Path

import follow
import pytest

from moscope import paths

FOLDER = paths.root() / "docs" / "extending"
GUIDES = sorted(p for p in FOLDER.glob("*.md") if p.name != "index.md")


def guide_parameters() -> list[object]:
    return [pytest.param(p, id=p.stem, marks=[pytest.mark.long] if follow.is_slow(p.read_text(encoding="utf-8")) else [])
            for p in GUIDES]


@pytest.mark.parametrize("guide", guide_parameters())
def test_the_guide_works_as_written(guide: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "moscope"
    follow.copy_checkout(paths.root(), checkout, paths.variant())
    follow.follow(guide.read_text(encoding="utf-8"), checkout, guide.name)
    shutil.rmtree(checkout)  # a failed guide's stays for a look


@pytest.mark.parametrize("guide", GUIDES, ids=lambda p: p.stem)
def test_the_guides_code_has_its_places_in_the_sources(guide: Path, tmp_path: Path) -> None:
    """Finds guides that no longer fit the sources, also those that only long runs follow."""
    assert write_all(guide, tmp_path), "a guide adds something"


CXX = {".cc", ".hh"}


def test_the_guides_cxx_has_the_layout_of_clang_format(tmp_path: Path, clang_format: Callable[..., str]) -> None:
    changed = [path for guide in GUIDES for path in write_all(guide, tmp_path / guide.stem) if path.suffix in CXX]
    assert changed
    assert not clang_format(*changed)


def write_all(guide: Path, folder: Path) -> list[Path]:
    """Changes the guide's files in a folder that has no others; gives their paths."""
    changed = []
    for block in follow.writing(guide.read_text(encoding="utf-8"), guide.name):
        old, copy = paths.root() / follow.written(block), folder / follow.written(block)
        if block.kind != "file" and not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(old, copy)
        follow.write(block, folder, f"{guide.name}:{block.line}")
        changed.append(copy)
    return changed


HELLO = '<!-- file: a/b.txt -->\n```\none\ntwo\n```\n'
CHECK = "<!-- run -->\n```sh\ncat a/b.txt\n```\n<!-- expect -->\n```\n{}\n```\n"


def test_files_are_written_and_output_is_compared(tmp_path: Path) -> None:
    more = '<!-- insert: a/b.txt after "one" -->\n```\nhalf\n```\n<!-- append: a/b.txt -->\n```\nthree\n```\n'
    follow.follow(HELLO + more + CHECK.format("one\nhalf\ntwo\nthree"), tmp_path)
    other = '<!-- replace: a/b.txt line "half" -->\n```\n1.5\n```\n'
    follow.follow(other + CHECK.format("one\n1.5\ntwo\nthree"), tmp_path)


@pytest.mark.parametrize("guide, problem", [
    (HELLO + CHECK.format("two\none"), "did not print"),
    (HELLO + "<!-- run -->\n```\nfalse\n```\n" + CHECK.format("one"), "exit code 1: expected 0"),
    (HELLO, "checks nothing at its end"),
    ("<!-- expect -->\n```\none\n```\n", "follows no command"),
    ("<!-- file: a -->\n\n```\n```\n", "no fence below"),
    ("<!-- file -->\n```\n```\n", "names no path"),
    ("<!-- run -->\n```\ntrue\n", "does not end"),
    (HELLO + '<!-- insert: a/b.txt after "o" -->\n```\n```\n' + CHECK.format("one"), "2 lines contain"),
    (HELLO + '<!-- replace: a/b.txt "one" -->\n```\n```\n', "replace says no place"),
    ("<!-- append: a/c.txt -->\n```\n```\n" + CHECK.format("one"), "does not exist"),
    ("<!-- file: ../c.txt -->\n```\n```\n" + CHECK.format("one"), "within the checkout"),
])
def test_a_guide_that_cannot_be_followed_is_reported(guide: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(follow.GuideError, match=problem):
        follow.follow(guide, tmp_path)


def test_a_guide_is_slow_when_its_first_lines_say_so() -> None:
    assert follow.is_slow("# Title\n<!-- slow -->\n")
    assert not follow.is_slow("# Title\n\nText\n<!-- slow -->\n")
