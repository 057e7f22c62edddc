# SPDX-License-Identifier: BSD-3-Clause
"""Diagnostics of the SLICC compiler: collected, sorted, printed as `file:line:column: error: what: problem: expected ...` with
the source line and a caret. A layer reports all that it finds, and raises `Stop` when it cannot continue."""
from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import NamedTuple

from .ast import Loc

MAX_ERRORS = 50
_WORD = re.compile(r'[A-Za-z_0-9]+|"[^"\n]*"?|.')


class Diagnostic(NamedTuple):
    """One finding. `severity` is "error" or "warning"; `option` names the kind of a warning."""

    severity: str
    loc: Loc
    message: str
    option: str = ""

    def header(self) -> str:
        suffix = f" [{self.option}]" if self.option else ""
        return f"{self.loc}: {self.severity}: {self.message}{suffix}"


class Stop(Exception):
    """Ends the compilation; the reason has been reported."""


class Diagnostics:
    """Collects findings and knows the text of the sources, to quote from."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self._seen: set[tuple[Loc, str]] = set()
        self._lines: dict[str, list[str]] = {}

    def add_source(self, file: str, text: str) -> None:
        self._lines[file] = text.replace("\r\n", "\n").split("\n")

    def error(self, loc: Loc, message: str) -> None:
        """Reports an error; the same message at the same place is reported once. Raises Stop after MAX_ERRORS."""
        self._add(Diagnostic("error", loc, message))
        if self.error_count() >= MAX_ERRORS:
            self.found.append(Diagnostic("error", loc, f"protocol: more than {MAX_ERRORS} errors: the others are not shown"))
            raise Stop

    def warning(self, loc: Loc, message: str, option: str) -> None:
        self._add(Diagnostic("warning", loc, message, option))

    def _add(self, diagnostic: Diagnostic) -> None:
        key = (diagnostic.loc, diagnostic.message)
        if key not in self._seen:
            self._seen.add(key)
            self.found.append(diagnostic)

    def error_count(self) -> int:
        return sum(1 for diagnostic in self.found if diagnostic.severity == "error")

    def errors(self) -> list[Diagnostic]:
        return [diagnostic for diagnostic in self.found if diagnostic.severity == "error"]

    def warnings(self) -> list[Diagnostic]:
        return [diagnostic for diagnostic in self.found if diagnostic.severity == "warning"]

    def stop_on_error(self) -> None:
        if self.error_count():
            raise Stop

    def render(self, diagnostic: Diagnostic) -> str:
        """The finding as text: header, source line, caret."""
        lines = self._lines.get(diagnostic.loc.file, [])
        if not 1 <= diagnostic.loc.line <= len(lines) or not lines[diagnostic.loc.line - 1].strip():
            return diagnostic.header()
        source = "".join(c if c.isprintable() else " " if c == "\t" else "?" for c in lines[diagnostic.loc.line - 1])
        column = max(diagnostic.loc.column, 1)
        first = max(0, column - 100)  # a line of thousands of characters is shown around the caret only
        word = _WORD.match(source, column - 1)
        width = min(len(word.group()), 60) if word else 1
        return f"{diagnostic.header()}\n    {source[first:first + 160]}\n    {' ' * (column - 1 - first)}^{'~' * (width - 1)}"

    def report(self, warnings: bool = True) -> str:
        """All findings as one text, in order of place; sources in the order in which they were read."""
        order = {file: index for index, file in enumerate(self._lines)}
        chosen = [d for d in self.found if warnings or d.severity == "error"]
        chosen.sort(key=lambda d: (order.get(d.loc.file, -1), d.loc.line, d.loc.column))
        return "\n".join(self.render(d) for d in chosen)


def expected(name: str, known: Iterable[str], what: str, limit: int = 8) -> str:
    """The end of a message about a name that is not known: `: expected WHAT, perhaps 'a' or 'b'` with the nearest known names,
    or all known names when none is near and there are at most `limit`."""
    words = list(dict.fromkeys(known))
    scored = [(difflib.SequenceMatcher(None, name.lower(), word.lower()).ratio(), word)
              for word in difflib.get_close_matches(name, sorted(words), n=3, cutoff=0.5)]
    best = max(scored, default=(0.0, ""))[0]
    close = [word for score, word in scored if score >= max(0.6, best - 0.1)] or (
        [word for word in words if len(name) > 1 and word.lower().startswith(name.lower())][:3])
    if close:
        return f": expected {what}, perhaps {' or '.join(repr(word) for word in close)}"
    return f": expected {what}: {', '.join(words)}" if 0 < len(words) <= limit else f": expected {what}"


def arguments(count: int) -> str:
    """A number of arguments in words."""
    return f"{count} argument{'' if count == 1 else 's'}"


def describe(names: Iterable[str], limit: int = 8) -> str:
    """A list of names for a message, cut at `limit`."""
    words = list(names)
    text = ", ".join(words[:limit])
    return text + (", ..." if len(words) > limit else "")


def at_start(file: str) -> Loc:
    """The place for findings about a file as a whole."""
    return Loc(file, 1, 1)
