# SPDX-License-Identifier: BSD-3-Clause
"""Transition tables as text and Markdown: a row per state and a column per event. READING says what a cell has. tables_html.py
writes the HTML form."""
from __future__ import annotations

import textwrap
from collections.abc import Callable

from . import ast, tables_html

READING = ("Rows are states, columns are events. A cell has the short names of its actions in their order and, after an arrow, the next "
           "state if the state changes. `→*`: the protocol computes the next state. `stall`: the message waits. `·`: nothing happens. "
           "An empty cell: the event is a protocol error in this state.")


def cell(transition: ast.Transition | None) -> str:
    """The content of a cell."""
    if transition is None:
        return ""
    if transition.is_stall:
        return "stall"
    words = [action.short for action in transition.actions]
    if transition.next_state is not transition.state:
        words.append("→" + (transition.next_state.name if transition.next_state is not None else "*"))
    return " ".join(words) or "·"


def used_actions(machine: ast.Machine) -> list[ast.Action]:
    """The actions that some transition runs, in order of declaration."""
    return [action for action in machine.actions if action.used]


def summary(machine: ast.Machine) -> str:
    """One line of counts."""
    return f"{len(machine.states)} states, {len(machine.events)} events, {len(machine.transitions)} transitions declared"


# ----------------------------------------------------------------------------------------------------------------- text


def to_text(program: ast.Program, width: int = 120) -> str:
    """Tables for a terminal of `width` columns; events that do not fit go into further tables below."""
    parts = [f"protocol {program.name}", *textwrap.wrap(READING, width)]
    for machine in program.machines:
        parts.append(f"\n{machine.name}: {machine.short}\n{summary(machine)}")
        parts.extend(_grids(machine, width))
        parts.append(_legend(machine, width))
    return "\n".join(parts) + "\n"


def _grids(machine: ast.Machine, width: int) -> list[str]:
    cells = {key: cell(transition) for key, transition in machine.table.items()}
    first = max((len(state.name) for state in machine.states), default=5)
    grids: list[str] = []
    columns: list[tuple[str, int]] = []
    used = first + 1
    for event in machine.events:
        longest = max([len(event.name)] + [min(len(cells.get((state.name, event.name), "")), 24) for state in machine.states])
        if columns and used + longest + 3 > width:
            grids.append(_grid(machine, cells, first, columns))
            columns, used = [], first + 1
        columns.append((event.name, longest))
        used += longest + 3
    if columns:
        grids.append(_grid(machine, cells, first, columns))
    return grids


def _grid(machine: ast.Machine, cells: dict[tuple[str, str], str], first: int, columns: list[tuple[str, int]]) -> str:
    def line(head: str, texts: list[str]) -> str:
        return " │ ".join([head.ljust(first)] + [text.ljust(size) for text, (_, size) in zip(texts, columns, strict=True)]).rstrip()

    rule = "─┼─".join(["─" * first] + ["─" * size for _, size in columns])
    lines = ["", line("", [name for name, _ in columns]), rule]
    for state in machine.states:
        wrapped = [textwrap.wrap(cells.get((state.name, name), ""), max(size, 1)) or [""] for name, size in columns]
        for row in range(max(len(texts) for texts in wrapped)):
            lines.append(line(state.name if row == 0 else "", [texts[row] if row < len(texts) else "" for texts in wrapped]))
    return "\n".join(lines)


def _legend(machine: ast.Machine, width: int) -> str:
    def listing(title: str, rows: list[tuple[str, str]]) -> str:
        size = max((len(name) for name, _ in rows), default=0)
        lines = [f"\n{title}"]
        for name, desc in rows:
            lines += textwrap.wrap(f"{name.ljust(size)}  {desc}", width, initial_indent="  ", subsequent_indent=" " * (size + 4),
                                   drop_whitespace=True, replace_whitespace=False) or [f"  {name}"]
        return "\n".join(lines)

    return "\n".join([
        listing("states", [(state.name, f"{state.permission}: {state.desc}") for state in machine.states]),
        listing("events", [(event.name, event.desc) for event in machine.events]),
        listing("actions", [(action.short, f"{action.name}: {action.desc}") for action in used_actions(machine)]),
    ])


# ------------------------------------------------------------------------------------------------------------- Markdown


def to_markdown(program: ast.Program) -> str:
    """A table per machine, followed by its states, events and actions with their descriptions."""
    lines = [f"# Protocol {program.name}", "", *textwrap.wrap(READING, 100)]
    for machine in program.machines:
        lines += ["", f"## {machine.name}: {_escape(machine.short)}", "", summary(machine) + ".", ""]
        lines.append("| | " + " | ".join(_escape(event.name) for event in machine.events) + " |")
        lines.append("|---" * (len(machine.events) + 1) + "|")
        for state in machine.states:
            row = [_escape(cell(machine.table.get((state.name, event.name)))) for event in machine.events]
            lines.append(f"| **{_escape(state.name)}** | " + " | ".join(row) + " |")
        for title, rows in (
            ("State", [(state.name, f"{state.permission}: {state.desc}") for state in machine.states]),
            ("Event", [(event.name, event.desc) for event in machine.events]),
            ("Action", [(action.short, f"{action.name}: {action.desc}") for action in used_actions(machine)]),
        ):
            lines += ["", f"| {title} | |", "|---|---|"]
            lines += [f"| {_escape(name)} | {_escape(desc)} |" for name, desc in rows]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return "".join("\\" + c if c in "\\|*_<>" else c for c in text)


FORMATS: dict[str, Callable[[ast.Program], str]] = {"text": to_text, "markdown": to_markdown, "html": tables_html.to_html}
