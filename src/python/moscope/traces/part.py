# SPDX-License-Identifier: BSD-3-Clause
"""Some steps of a trace: their accesses, and the messages and transitions between their beginning and the next step's."""

import re
from typing import Any

from moscope.errors import UserError
from moscope.traces.text import step_windows, steps

Document = dict[str, Any]


def wanted(text: str | None, count: int) -> range | None:
    """`2-3` or `2` as positions; None for all. Steps count from 1."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last <= count:
        raise UserError(f"--steps: {text!r}: expected a step or FIRST-LAST, from 1 to {count}")
    return range(first - 1, last)


def of(document: Document, part: range | None) -> Document:
    """The document of these steps. Messages keep their numbers."""
    if part is None:
        return document
    windows = step_windows(document)[part.start:part.stop]
    begin, end = windows[0][0], windows[-1][1]
    kept = [a for step in steps(document)[part.start:part.stop] for a in step]
    return {**document, "accesses": kept,
            "messages": [m for m in document["messages"] if begin <= m["sent"] < end],
            "transitions": [t for t in document["transitions"] if begin <= t["at"] < end]}
