# SPDX-License-Identifier: BSD-3-Clause
"""Transition tables as one self-contained HTML page, without scripts and external files. State and event names stay visible while
the page scrolls; hovering over a cell shows the full names of its actions."""
from __future__ import annotations

from html import escape

from . import ast

_STYLE = """
:root { color-scheme: light dark; --line: #c9ced6; --head: #eef1f5; --ink: #1b2129; --soft: #5b6673; --page: #fff; --stall: #fbf3d9;
        --move: #e4f0fb; --hole: #f6f7f9; --next: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --line: #3a424d; --head: #232a33; --ink: #e5e9ee; --soft: #9aa5b1; --page: #14181d;
        --stall: #3a3418; --move: #17293b; --hole: #101418; --next: #7db8f2; } }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .2rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; }
p { color: var(--soft); margin: .2rem 0 .7rem; max-width: 100ch; } nav a { margin-right: 1rem; color: var(--next); }
.wide { overflow: auto; width: fit-content; max-width: 100%; max-height: 88vh; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: separate; border-spacing: 0; font-size: 12.5px; }
th, td { border-right: 1px solid var(--line); border-bottom: 1px solid var(--line); padding: .25rem .45rem; text-align: left;
         vertical-align: top; }
.grid thead th { position: sticky; top: 0; z-index: 2; background: var(--head); vertical-align: bottom; font-weight: 600; }
.grid thead th span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; }
.grid tbody th { position: sticky; left: 0; z-index: 1; background: var(--head); white-space: nowrap; }
.grid thead th:first-child { left: 0; z-index: 3; }
.grid td { min-width: 3.2em; max-width: 14em; font-family: ui-monospace, monospace; }
.grid tbody tr:hover td, .grid tbody tr:hover th { box-shadow: inset 0 1px var(--soft), inset 0 -1px var(--soft); }
td.hole { background: var(--hole); } td.stall { background: var(--stall); color: var(--soft); } td.move { background: var(--move); }
td b { color: var(--next); display: block; white-space: nowrap; } i.over { font-style: normal; text-decoration: overline; }
th small { font-weight: 400; color: var(--soft); display: block; }
.legend { border-top: 1px solid var(--line); } .legend td, .legend th { border-right: none; } .legend code { font-size: 12.5px; }
.key { display: inline-block; padding: 0 .4rem; border: 1px solid var(--line); border-radius: 3px; }
"""


def to_html(program: ast.Program) -> str:
    """The page for all machines of a protocol."""
    name = escape(program.name)
    parts = [
        "<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}: transition tables</title><style>{_STYLE}</style></head><body>",
        f"<h1>Protocol {name}</h1>",
        "<p>Rows are states, columns are events. A cell holds the short names of the actions in order and, where the state changes, "
        'the next state: <span class="key" style="background:var(--move)">change of state</span> '
        '<span class="key" style="background:var(--stall)">stall</span> '
        '<span class="key" style="background:var(--hole)">no transition: a protocol error if it happens</span></p>',
        "<nav>" + "".join(f'<a href="#{escape(m.name)}">{escape(m.name)}</a>' for m in program.machines) + "</nav>",
    ]
    for machine in program.machines:
        parts.append(_machine(machine))
    parts.append("</body></html>")
    return "\n".join(parts) + "\n"


def _machine(machine: ast.Machine) -> str:
    head = "".join(f'<th title="{escape(event.desc)}"><span>{escape(event.name)}</span></th>' for event in machine.events)
    rows = []
    for state in machine.states:
        cells = "".join(_cell(machine.table.get((state.name, event.name)), state, event) for event in machine.events)
        rows.append(f'<tr><th title="{escape(state.desc)}">{escape(state.name)}<small>{escape(state.permission)}</small></th>{cells}</tr>')
    actions = [action for action in machine.actions if action.used]
    return "\n".join([
        f'<h2 id="{escape(machine.name)}">{escape(machine.name)}</h2>',
        f"<p>{escape(machine.short)}. {len(machine.states)} states, {len(machine.events)} events, "
        f"{len(machine.transitions)} transitions declared.</p>",
        f'<div class="wide"><table class="grid"><thead><tr><th></th>{head}</tr></thead>',
        "<tbody>", *rows, "</tbody></table></div>",
        _listing("States", [(escape(state.name), f"<code>{escape(state.permission)}</code>", escape(state.desc))
                            for state in machine.states]),
        _listing("Events", [(escape(event.name), "", escape(event.desc)) for event in machine.events]),
        _listing("Actions", [(_short(action.short), f"<code>{escape(action.name)}</code>", escape(action.desc)) for action in actions]),
    ])


def _cell(transition: ast.Transition | None, state: ast.State, event: ast.Event) -> str:
    if transition is None:
        return '<td class="hole"></td>'
    where = f"{state.name}, {event.name}"
    if transition.is_stall:
        return f'<td class="stall" title="{escape(where)}: stall">stall</td>'
    target = transition.next_state.name if transition.next_state is not None else "*"
    moves = transition.next_state is not state
    title = f"{where} → {target}: " + "; ".join(action.name for action in transition.actions)
    body = " ".join(_short(action.short) for action in transition.actions) + (f"<b>→ {escape(target)}</b>" if moves else "")
    kind = " class=stall" if transition.sets_aside else " class=move" if moves else ""
    return f'<td{kind} title="{escape(title)}">{body or "·"}</td>'


def _short(text: str) -> str:
    """A short name; a backslash puts a line over the letter that follows."""
    out = ""
    index = 0
    while index < len(text):
        if text[index] == "\\" and index + 1 < len(text):
            out += f'<i class="over">{escape(text[index + 1])}</i>'
            index += 2
        else:
            out += escape(text[index])
            index += 1
    return out


def _listing(title: str, rows: list[tuple[str, str, str]]) -> str:
    body = "".join(f"<tr><th>{name}</th><td>{middle}</td><td>{desc}</td></tr>" for name, middle, desc in rows)
    return f'<h3>{title}</h3><table class="legend">{body}</table>'
