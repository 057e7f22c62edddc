# SPDX-License-Identifier: BSD-3-Clause
"""Bounds for a core that runs ahead of simulated time (mem/port.hh, lookahead): the least latency with which a machine sends
into a buffer, as C++ (computed for sums of numbers and parameters; any other latency counts as 0), and whether the messages of a
buffer act on lines that can be hit, or only on lines for which the controller waits.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator

from .. import ast
from ..hits import analyse_hits, possible_events

NOTHING_KNOWN = "0"
#: The latency of a buffer into which the machine never sends: longer than any path.
NEVER = "1 << 30"


def shortest_latency(machine: ast.Machine, buffer: ast.Param, expr: Callable[[ast.Expr], str]) -> str:
    """A C++ expression for the least latency, in cycles, of the messages that the machine enqueues into the buffer."""
    found = {_latency(s.latency, expr) for s in _enqueues(machine) if _leads_to(s.port, buffer)}
    if not found:
        return NEVER
    return f"std::min<std::int64_t>({{{', '.join(sorted(found))}}})"


def _enqueues(machine: ast.Machine) -> Iterator[ast.Enqueue]:
    bodies = [f.body for f in machine.functions if f.body is not None]
    bodies += [a.body for a in machine.actions]
    bodies += [p.body for p in machine.in_ports]
    for body in bodies:
        for statement in ast.walk_statements(body):
            if isinstance(statement, ast.Enqueue):
                yield statement


def _leads_to(port: ast.Name, buffer: ast.Param) -> bool:
    return isinstance(port.decl, ast.OutPort) and port.decl.buffer.decl is buffer


def _latency(latency: ast.Expr | None, expr: Callable[[ast.Expr], str]) -> str:
    if latency is None:
        return "1"
    return f"static_cast<std::int64_t>({expr(latency)})" if _plain(latency) else NOTHING_KNOWN


def _plain(e: ast.Expr) -> bool:
    match e:
        case ast.Literal(value=value):
            return isinstance(value, int)
        case ast.Name(decl=decl):
            return isinstance(decl, ast.Param)
        case ast.Binary(op="+", left=left, right=right):
            return _plain(left) and _plain(right)
    return False


def is_unsolicited(machine: ast.Machine, buffer: ast.Param) -> bool:
    """Whether a message of the buffer may act on its line in a state in which hits are served. A replacement is not one: it acts
    on another line, and the message that causes it was requested."""
    hit_states = {hit.state.name for hit in analyse_hits(machine).hits}
    for port in machine.in_ports:
        if not (isinstance(port.buffer, ast.Name) and port.buffer.decl is buffer):
            continue
        for statement in ast.walk_statements(port.body):
            if isinstance(statement, ast.Trigger) and _own_line(statement.address):
                for event in possible_events(statement.event, machine):
                    if any((state, event) in machine.table for state in hit_states):
                        return True
    return False


def _own_line(address: ast.Expr) -> bool:
    return isinstance(address, ast.Member) and isinstance(address.object, ast.Name) and address.object.name == "in_msg"
