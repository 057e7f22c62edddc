# SPDX-License-Identifier: BSD-3-Clause
"""Small pieces of HTML. Text from a run (names, consoles, configurations) passes through `esc` on its way into the page."""

import html
import re
from collections.abc import Iterable

NARROW_SPACE = "\u202f"  # no line breaks at it
UNIT = re.compile(r"(?<=\d) (?=(?:%|µs|ms|ns|GB/s|KiB|MiB|GiB)(?!\w))")


def esc(text: object) -> str:
    return html.escape(str(text), quote=True)


def prose(text: str) -> str:
    """A sentence, with a minus sign in front of negative numbers, and no line break between a number and its unit or after ±."""
    text = re.sub(r"(?<![\w)])-(?=\d)", "\u2212", text)
    return esc(UNIT.sub(NARROW_SPACE, text).replace("± ", f"±{NARROW_SPACE}"))


def percent(share: float | None, digits: int = 0) -> str:
    if share is None:
        return "–"
    if 0 < share < 0.5 * 10 ** (-2 - digits):
        return f"<{NARROW_SPACE}{10.0 ** -digits:g}{NARROW_SPACE}%"
    return f"{100 * share:.{digits}f}{NARROW_SPACE}%"


def number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def code(name: str) -> str:
    """A name of code or data; it may break after the characters at which such names break well."""
    text = esc(name)
    for mark in ("_", ".", "/", "+", ":"):
        text = text.replace(mark, mark + "<wbr>")
    return f"<code>{text}</code>"


def table(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]], numeric: Iterable[int] = ()) -> str:
    """A table whose rows become lists of what they hold where the page is narrow; cells are HTML already."""
    right, names = set(numeric), list(head)

    def cells(tag: str, values: Iterable[str], about: list[str]) -> str:
        return "".join(f'<{tag}{about[i]}{" class=n" if i in right else ""}>{v}</{tag}>' for i, v in enumerate(values))

    said = [f' data-label="{esc(name)}"' if name else "" for name in names]
    body = "".join(f"<tr>{cells('td', row, said)}</tr>" for row in rows)
    first = cells("th", names, [' scope="col"'] * len(names))
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="{esc(caption)}"><table><caption>{esc(caption)}</caption>'
            f"<thead><tr>{first}</tr></thead><tbody>{body}</tbody></table></div>")
