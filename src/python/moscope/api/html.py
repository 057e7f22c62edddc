# SPDX-License-Identifier: BSD-3-Clause
"""How notebooks show a result: small tables."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def heading(text: str) -> str:
    return f"<p><b>{escape(text)}</b></p>"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Numbers are aligned to the right."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"{heading(title)}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    number = isinstance(value, (int, float))
    text = "" if value is None else f"{value:,.1f}" if isinstance(value, float) else str(value)
    return f'<td style="text-align: {"right" if number else "left"}">{escape(text)}</td>'
