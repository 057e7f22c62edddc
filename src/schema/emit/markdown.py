# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions as tables of the reference pages. A page holds a table between two marks that name it; `replace_marked`
puts the table there, and a test compares (tests/schema/test_pages.py)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

from moscope.schema.describe import Counters, Enumeration, Record, Table
from moscope.schema.parameters import Group, abouts, limits

BLOCK = re.compile(r"(<!-- schema: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def enumeration(e: Enumeration) -> str:
    return table(["value", "meaning"], [[f"`{name}`", sentence] for name, sentence in e.sentences.items()])


def record(r: Record) -> str:
    rows = [[f"`{f.name}`", f"{f.type}[{f.each.name}]" if f.each else f.type, f.unit,
             f.sentence + "".join(f"; `{flag}`: {about}" for flag, about in f.flags.items())] for f in r.fields]
    return table(["field", "type", "unit", "meaning"], rows)


def columns(t: Table) -> str:
    return table(["column", "unit", "meaning"], [[f"`{c.name}`", c.unit, c.sentence] for c in t.columns])


def counters(c: Counters) -> str:
    return table(["counter", "unit", "meaning"],
                 [[f"`{n.name}`", n.unit, n.sentence + (f": {', '.join(f'`{m}`' for m in n.each.names)}" if n.each else "")]
                  for n in c.in_files])


def parameters(g: Group) -> str:
    rows = []
    for f in dataclasses.fields(g.parameters):
        if about := abouts(g.parameters).get(f.name):
            default = "" if f.default is dataclasses.MISSING else f"{f.default}"
            rows.append([f"`{f.name}`", about.sentence, default, limits(about), getattr(f.default, "source", "")])
    head = ["field", "meaning", "default", "limits", "source of the default"]
    used = [i for i in range(len(head)) if any(row[i] for row in rows)]  # of a group without defaults, no column for them
    return table([head[i] for i in used], [[row[i] for i in used] for row in rows])


def replace_marked(page: str, table_of: Callable[[str], str]) -> str:
    """The page with each marked block as `table_of(name)` makes it."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{table_of(found[2])}\n{found[3]}", page)
