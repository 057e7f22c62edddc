# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the reference pages, from the descriptions: `python3 -m moscope.schema.pages` rewrites the marked blocks in docs/.
A test fails where a page does not have what its description says."""

from __future__ import annotations

from pathlib import Path

from moscope import paths
from moscope.schema import catalogue
from moscope.schema.emit import markdown


def pages() -> list[Path]:
    return [page for page in sorted((paths.root() / "docs").rglob("*.md")) if markdown.BLOCK.search(page.read_text(encoding="utf-8"))]


def rewritten(page: Path) -> str:
    return markdown.replace_marked(page.read_text(encoding="utf-8"), catalogue.table)


if __name__ == "__main__":
    for changed in pages():
        changed.write_text(rewritten(changed), encoding="utf-8")
