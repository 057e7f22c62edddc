# SPDX-License-Identifier: BSD-3-Clause
"""Properties of a machine's whole text that the emitter needs: in_ports that start transitions without a message, or act without a
transition, stalls that end with time, questions about buffers, and requests to DRAM as they were made before 2020."""
from __future__ import annotations

from collections.abc import Iterator

from .. import ast
from ..hits import function_looks_only, looks_only, statement_looks_only

_PLAIN = (ast.Trigger, ast.StallPort, ast.CheckProbe, ast.CheckNextCycle)
"""Statements of in_ports that cannot end a stall, apart from the expressions in them."""
_LOOKS_HERE = frozenset({
    "CacheMemory.cacheProbe", "DirectoryMemory.allocate", "TimerTable.nextAddress", "TBETable.getNullEntry", "CacheMemory.getNullEntry",
    "Sequencer.llscCheckMonitor",
    *(f"PersistentTable.{name}" for name in ("isLocked", "findSmallest", "typeOfSmallest", "okToIssueStarving")),
    *(f"TriggerQueue.{name}" for name in ("front", "back", "empty")),
    *(f"{storage}.{name}" for storage in ("TBEStorage", "MN_TBEStorage") for name in ("size", "capacity", "reserved", "slotsAvailable"))})
"""Methods that in_ports call only to look something up. (A directory makes the entry of a line at its first look-up.)"""
_SEQUENCERS = frozenset({"Sequencer", "HTMSequencer", "DMASequencer"})
_CLOCKS = frozenset({"clockEdge", "curCycle", "curTick"})


def needs_no_message(machine: ast.Machine) -> bool:
    """Whether some in_port may act although its queue has no message that is due."""
    return any(not _only_with_message(statement, port) for port in machine.in_ports for statement in port.body)


def _only_with_message(statement: ast.Stmt, port: ast.InPort) -> bool:
    match statement:
        case ast.If(branches=branches, otherwise=None):
            return all(_asks_for_message(condition, port) for condition, _ in branches)
        case ast.LocalVar() | ast.DebugPrint() | ast.Comment():
            return True
    return False


def _asks_for_message(condition: ast.Expr, port: ast.InPort) -> bool:
    match condition:
        case ast.MethodCall(name="isReady", object=ast.Name(decl=decl)):
            return decl is port
        case ast.Binary(op="&&", left=left, right=right):
            return _asks_for_message(left, port) or _asks_for_message(right, port)
    return False


def acts_itself(block: list[ast.Stmt], seen: frozenset[int] = frozenset()) -> bool:
    """Whether the code of an in_port, or a function that it calls, sends a message or calls back to a sequencer. The work is then for
    the message that the in_port peeks at."""
    if any(isinstance(statement, ast.Enqueue) for statement in ast.walk_statements(block)):
        return True
    for expr in ast.walk_exprs(block):
        if isinstance(expr, ast.MethodCall) and expr.object.type.name in _SEQUENCERS:
            return True
        if isinstance(expr, ast.Call) and expr.name.startswith("queueMemory"):
            return True
        called = expr.function if isinstance(expr, ast.Call) else expr.method if isinstance(expr, ast.MethodCall) else None
        if called is not None and called.body is not None and id(called) not in seen and acts_itself(called.body, seen | {id(called)}):
            return True
    return False


def stalls_end_unseen(machine: ast.Machine) -> bool:
    """Whether a stall may end although the controller makes no transition: with time, or by what the code of an in_port does."""
    return _stalls_end_with_time(machine) or any(has_effects(port) for port in machine.in_ports)


def has_effects(port: ast.InPort) -> bool:
    """Whether an in_port does more than look things up and start transitions. Its handler of resource stalls does not count,
    because all ports are polled again after it in any case."""
    if port.prot_stall_handler is not None and not function_looks_only(port.prot_stall_handler, also=_LOOKS_HERE):
        return True
    for statement in ast.walk_statements(port.body):
        if isinstance(statement, _PLAIN):
            if not all(looks_only(expr, also=_LOOKS_HERE) for expr in ast.child_exprs(statement)):
                return True
        elif not statement_looks_only(statement, also=_LOOKS_HERE):
            return True
    return False


def _stalls_end_with_time(machine: ast.Machine) -> bool:
    """Whether the in_ports, the functions that choose a transition, or the functions that these call, read the clock or the
    length of a queue to the network. A later poll may then give another result although no transition was made."""
    bodies = [port.body for port in machine.in_ports]
    bodies += [f.body for name in ("getState", "getNextState") for f in machine.function(name) if f.body is not None]
    seen: set[int] = set()
    while bodies:
        for expr in _evaluated(bodies.pop()):
            if _is_clock(expr) or to_network(expr) is not None:
                return True
            called = expr.function if isinstance(expr, ast.Call) else expr.method if isinstance(expr, ast.MethodCall) else None
            if called is not None and called.body is not None and id(called) not in seen:
                seen.add(id(called))
                bodies.append(called.body)
    return False


def _is_clock(expr: ast.Expr) -> bool:
    """Whether an expression gives the current time, or is a variable that holds the time of this poll."""
    if isinstance(expr, ast.Name) and isinstance(expr.decl, ast.LocalVar) and expr.decl.init is not None:
        expr = expr.decl.init
    return isinstance(expr, ast.Call) and expr.name in _CLOCKS


def _evaluated(block: list[ast.Stmt]) -> Iterator[ast.Expr]:
    """The expressions of a block. Left out is the current time where it initialises a variable or is an argument of a method, as
    in isReady and dequeue."""
    given: set[int] = set()
    for statement in ast.walk_statements(block):
        if isinstance(statement, ast.DebugPrint):
            continue
        if isinstance(statement, ast.LocalVar):
            given.add(id(statement.init))
        for top in ast.child_exprs(statement):
            for expr in ast.walk_expr(top):  # outer before inner
                if isinstance(expr, ast.MethodCall):
                    given.update(map(id, expr.args))
                plain = isinstance(expr, ast.Name) or isinstance(expr, ast.Call) and not expr.args
                if id(expr) not in given or not (plain and _is_clock(expr)):
                    yield expr


def to_network(expr: ast.Expr) -> ast.Param | None:
    """The buffer to the network whose length the expression asks for, or None."""
    match expr:
        case ast.MethodCall(name="getSize" | "areNSlotsAvailable", object=ast.Name(decl=ast.Param() as param)) if param.network == "To":
            return param
    return None


def counted_buffers(machine: ast.Machine) -> list[ast.Param]:
    """The buffers to the network whose length the machine asks for."""
    bodies = [f.body for f in machine.functions if f.body is not None] + [p.body for p in machine.in_ports]
    bodies += [a.body for a in machine.actions]
    asked = {id(to_network(expr)) for body in bodies for expr in _evaluated(body)}
    return [param for param in machine.params if id(param) in asked]


def queues_memory(machine: ast.Machine) -> bool:
    """Whether the machine sends requests to DRAM in the way of gem5's protocols from before 2020."""
    bodies = [f.body for f in machine.functions if f.body is not None] + [a.body for a in machine.actions]
    return any(isinstance(e, ast.Call) and e.name.startswith("queueMemory") for body in bodies for e in ast.walk_exprs(body))
