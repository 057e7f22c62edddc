# SPDX-License-Identifier: BSD-3-Clause
"""What the link check reads of a Markdown page: links, headings with their anchors, paths in code font."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from moscope import paths

ROOT = paths.root()
FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`+([^`\n]+)`+")
LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
# A path of the repository in code font: no pattern, no place for a name (NAME, <name>, {name}).
PATH = re.compile(r"(?:src|docs|tests|configs|kernels|workloads|analysis|examples)/[a-z0-9_/.+-]*[a-z0-9_+/-]", re.IGNORECASE)
TO_FILL_IN = re.compile(r"(^|[/_-])[A-Z]{3,}($|[/._-])")


@dataclass(frozen=True)
class Page:
    path: Path
    text: str

    def without(self, *patterns: re.Pattern[str]) -> str:
        """The text with these blanked out, each character but line ends, so that positions stay."""
        text = self.text
        for pattern in patterns:
            text = pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        return text

    def line_of(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    def links(self) -> list[tuple[int, str]]:
        """Line and target of each link that is neither in code nor to another site."""
        found = LINK.finditer(self.without(FENCE, CODE)) if "](" in self.text else iter(())
        return [(self.line_of(m.start()), m[1]) for m in found if "://" not in m[1] and not m[1].startswith("mailto:")]

    def anchors(self) -> set[str]:
        """As GitHub and myst-parser make them: a second heading of the same text gets -1."""
        seen: Counter[str] = Counter()
        anchors = set()
        for heading in HEADING.findall(self.without(FENCE)):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
            slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
            anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
        return anchors

    def repository_paths(self) -> list[tuple[int, str]]:
        """Line and path of each file or folder of the repository that is named in code font."""
        found = [(self.line_of(m.start()), m[1]) for m in CODE.finditer(self.without(FENCE))]
        return [(line, text) for line, text in found if PATH.fullmatch(text) and not TO_FILL_IN.search(text)]


def page(path: Path) -> Page:
    return Page(path, path.read_text(encoding="utf-8"))


def pages() -> list[Path]:
    """Every Markdown file that people read: of the top folder, docs/ and examples/, and beside the code."""
    skip = {"build", "moscope-out", ".git"}
    return sorted(p for p in ROOT.rglob("*.md") if not skip & set(p.relative_to(ROOT).parts))


def broken_links(one: Page) -> list[str]:
    faults = []
    for line, target in one.links():
        name, _, anchor = target.partition("#")
        goal = one.path.parent / name if name else one.path
        if not goal.exists():
            faults.append(f"{one.path}:{line}: {target}: no such file: expected a path relative to the page")
        elif anchor and goal.suffix == ".md" and anchor not in page(goal).anchors():
            faults.append(f"{one.path}:{line}: {target}: no such heading: expected one of {', '.join(sorted(page(goal).anchors()))}")
    return faults


def names_today(path: Path) -> bool:
    """Not the changelog, which names what was, nor a guide, which names the files that its reader will add."""
    return path.name != "CHANGELOG.md" and path.parent.name != "extending"


def missing_paths(one: Page) -> list[str]:
    return [f"{one.path}:{line}: {path}: no such file: expected a path in the repository"
            for line, path in one.repository_paths() if not (ROOT / path).exists()]
