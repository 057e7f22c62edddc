# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx's configuration of the documentation site, which `./moscope docs` builds.

The pages stay plain Markdown that is readable without the site: no page holds a table of contents of its own. The
navigation is made here, and a page that no group below names is put into the last one.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "src" / "python"))

from moscope._version import VERSION  # noqa: E402

project = "moscope"
author = "The moscope authors"
version = release = VERSION
extensions = ["myst_parser"]
exclude_patterns = ["README.md"]
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
highlight_language = "none"
html_theme = "furo"
html_title = f"moscope {VERSION}"
html_show_sourcelink = html_copy_source = False

GROUPS = {
    "Start": ["glossary", "tutorials/*"],
    "Use": ["booting", "workloads", "kernels", "machines", "run-directory", "analysis", "naming", "gem5"],
    "Protocols": ["protocol-msi", "scripts", "lesson", "protocol-moesi-htassist", "slicc"],
    "The model": ["architecture", "processor", "overlap", "platform", "network", "dram", "calibration", "statistics", "warts"],
    "Extend": ["extending/*"],
    "More": ["**"],
}
# [text](../path): a file of the repository outside docs/, which the site does not hold.
OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#]*)(#[^)]*)?\)")


def navigation() -> str:
    """One hidden table of contents per group; each page is in the first group that names it."""
    pages = {p.relative_to(HERE).with_suffix("").as_posix(): p for p in sorted(HERE.rglob("*.md"))}
    left = [name for name in pages if name not in ("index", "README")]
    text = ""
    for title, patterns in GROUPS.items():
        found = [name for pattern in patterns for name in left if pattern == "**" or Path(name).match(pattern) and
                 name.count("/") == pattern.count("/")]
        left = [name for name in left if name not in found]
        if found:
            text += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(found) + "\n```\n"
    return text


def outside_links_as_paths(page: Path, text: str) -> str:
    """A link to a file that is not a page of the site becomes its text and its path in the repository."""

    def replace(found: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / found[2]))
        if target.is_relative_to(HERE):
            return found[0]
        path = target.relative_to(HERE.parent).as_posix()
        return f"`{path}`" if found[1].strip("`") in (path, target.name) else f"{found[1]} (`{path}`)"

    return OUTSIDE.sub(replace, text)


def setup(app: Any) -> None:
    def read(app: Any, name: str, source: list[str]) -> None:
        source[0] = outside_links_as_paths(HERE / f"{name}.md", source[0])
        if name == "index":
            source[0] += navigation()

    app.connect("source-read", read)
