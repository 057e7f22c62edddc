# SPDX-License-Identifier: BSD-3-Clause
"""The events that each trigger can have. With them, the emitter needs no dispatch over all events, and a function that handles an
event has only the callers that the protocol's text shows."""
from __future__ import annotations

from collections import Counter

from . import ast

_MAX_DEPTH = 8


def certain_events(expr: ast.Expr | None, depth: int = 0) -> list[ast.EnumValue] | None:
    """All values that an event's expression can give, in order of appearance; None if the text does not show them. The text shows
    them if the expression is the name of an event, or a call of a function that returns only such expressions."""
    match expr:
        case ast.EnumRef(value=value):
            return [value]
        case ast.Call(function=ast.Function(body=list() as body)) if depth < _MAX_DEPTH:
            found: list[ast.EnumValue] = []
            for statement in ast.walk_statements(body):
                if isinstance(statement, ast.Return):
                    values = certain_events(statement.value, depth + 1)
                    if values is None:
                        return None
                    found += [v for v in values if v not in found]
            return found or None
    return None


def triggers(machine: ast.Machine) -> Counter[str] | None:
    """How many triggers can have each event, by name; None if some trigger can have any event."""
    count: Counter[str] = Counter()
    for port in machine.in_ports:
        for statement in ast.walk_statements(port.body):
            if isinstance(statement, ast.Trigger):
                values = certain_events(statement.event)
                if values is None:
                    return None
                count.update(v.name for v in values)
    return count
