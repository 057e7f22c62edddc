# SPDX-License-Identifier: BSD-3-Clause
"""Links of the Markdown pages lead somewhere: files, headings, and paths of the repository in code font."""

from pathlib import Path

import markdown_pages
import pytest

from moscope import paths

ROOT = paths.root()


@pytest.mark.parametrize("path", markdown_pages.pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_of_the_page_leads_somewhere(path: Path) -> None:
    faults = markdown_pages.broken_links(markdown_pages.page(path))
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("path", [*filter(markdown_pages.names_today, markdown_pages.pages())], ids=lambda p: str(p.relative_to(ROOT)))
def test_every_path_that_the_page_names_exists(path: Path) -> None:
    faults = markdown_pages.missing_paths(markdown_pages.page(path))
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("text, faults", [
    ("# A\n[a](page.md) [b](#a) [c](https://example.org/x)", 0),
    ("[a](nowhere.md)", 1),
    ("# A b\n## A b\n[a](#a-b) [b](#a-b-1)", 0),
    ("# A\n[a](#b)", 1),
    ("`[a](nowhere.md)`\n```\n[a](nowhere.md)\n```", 0),
    ("# The `x` of [y](page.md): z\n[a](page.md#the-x-of-y-z)", 0),
])
def test_the_check_finds_broken_links_and_nothing_else(tmp_path: Path, text: str, faults: int) -> None:
    (tmp_path / "page.md").write_text(text)
    assert len(markdown_pages.broken_links(markdown_pages.page(tmp_path / "page.md"))) == faults


@pytest.mark.parametrize("text, faults", [
    ("`src/sim`, `src/mem/port.hh`, `docs/`, `configs/NAME.py`, `src/*/x.py`", 0),
    ("`src/no/such/file.hh`", 1),
    ("```\nsrc/no/such/file.hh\n```", 0),
])
def test_the_check_finds_paths_that_do_not_exist(tmp_path: Path, text: str, faults: int) -> None:
    (tmp_path / "page.md").write_text(text)
    assert len(markdown_pages.missing_paths(markdown_pages.page(tmp_path / "page.md"))) == faults


def test_the_front_page_links_to_every_page() -> None:
    docs = ROOT / "docs"
    linked = {target.partition("#")[0] for _, target in markdown_pages.page(docs / "index.md").links()}
    assert {p.name for p in docs.glob("*.md")} - {"index.md", "README.md"} <= linked


def test_the_glossary_has_each_term_once() -> None:
    rows = [line for line in (ROOT / "docs/glossary.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    terms = [term.strip() for row in rows for term in row.split("|")[1].split(",") if row.split("|")[1].strip() != "term"]
    assert len(terms) > 50 and len(terms) == len(set(terms))
