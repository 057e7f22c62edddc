# SPDX-License-Identifier: BSD-3-Clause
"""Fields of messages, entries and TBEs, and objects of machines, whose values no rule depends on. A model forgets the fields and
does not set the objects, so that states do not differ in them alone.

A field is read where its value decides something or goes into a field that is read. A message's fields are read at its receiver.
What an action reads of `out_msg` while it builds the message counts for the place where that value comes from, not for the message
in flight.
"""
from __future__ import annotations

from collections.abc import Iterator

from .. import ast
from ..emit_cpp.places import CHECKED_OPERATORS
from ..emit_cpp.writer import c_field

MUTATORS = frozenset({"add", "remove", "clear", "addNetDest", "removeNetDest", "broadcast", "setNetDest", "setSize", "addSet",
                      "removeSet", "copyPartial", "atomicPartial"})
#: How many arguments of the sequencer's callbacks a model uses: the line and its data.
CALLBACK_ARGS = 2

Reads = list[tuple["ast.Variable | None", "ast.Variable", bool]]
"""For each read: the variable that the value goes into (None if it decides something), the one that is read, and whether it is
read from `out_msg`."""


class Unread:
    """`at_receiver(field)`: of a message under way. `kept(field)`: of an entry or a TBE."""

    def __init__(self, program: ast.Program) -> None:
        reads: Reads = []
        for body in _bodies(program):
            for statement in ast.walk_statements(body):
                _statement(statement, reads)
        self.received: set[int] = set()
        self.read: set[int] = set()
        for changed in iter(lambda: self._grow(reads), False):
            assert changed

    def _grow(self, reads: Reads) -> bool:
        before = len(self.received) + len(self.read)
        for into, field, building in reads:
            if into is None or id(into) in self.read or into.name == "Destination":
                self.read.add(id(field))
                if not building:
                    self.received.add(id(field))
        return len(self.received) + len(self.read) > before

    def of(self, type_: ast.Type, message: bool) -> list[str]:
        """The C++ names of those fields of a structure that may be forgotten."""
        known = self.received if message else self.read
        return [c_field(f) for f in type_.fields.values() if id(f) not in known and f.type.name != "Addr" and f.name != "Type"]

    def keeps(self, variable: ast.Variable) -> bool:
        """Whether some rule depends on a field or an object. A statement that counts it up or down does not."""
        return id(variable) in self.read

    def decides(self, target: ast.Expr) -> bool:
        """Whether an assignment to `target` changes a part of the state that some rule depends on."""
        if isinstance(target, ast.Member):
            return self.keeps(target.field)
        if isinstance(target, ast.Name) and isinstance(target.decl, ast.ObjectDecl):
            return self.keeps(target.decl)
        return isinstance(target, ast.Name) and target.kind == "field"


def _bodies(program: ast.Program) -> Iterator[list[ast.Stmt]]:
    types = [*program.types, *(t for m in program.machines for t in m.types)]
    functions = [*program.functions, *(f for m in program.machines for f in m.functions),
                 *(f for t in types for f in t.members if isinstance(f, ast.Function))]
    yield from (f.body for f in functions if f.body is not None and not f.name.startswith("functional"))
    for machine in program.machines:
        yield from (a.body for a in machine.actions)
        yield from (p.body for p in machine.in_ports)


def _statement(s: ast.Stmt, reads: Reads) -> None:
    if isinstance(s, ast.Assign) and isinstance(s.target, ast.Member):
        into = None if s.target.field.owner.is_external else s.target.field
        _expression(s.value, into, reads)
        _expression(s.target.object, None, reads)
    elif isinstance(s, ast.Assign) and isinstance(s.target, ast.Name) and isinstance(s.target.decl, ast.ObjectDecl):
        _expression(s.value, None if _does_more(s.value) else s.target.decl, reads)
    elif isinstance(s, ast.ExprStmt) and isinstance(s.expr, ast.MethodCall) and isinstance(s.expr.object, ast.Member) \
            and s.expr.name in MUTATORS:
        for arg in s.expr.args:
            _expression(arg, s.expr.object.field, reads)
        _expression(s.expr.object.object, None, reads)
    elif not isinstance(s, ast.DebugPrint) and not (isinstance(s, ast.ExprStmt) and counted(s.expr)):
        for e in ast.child_exprs(s):
            _expression(e, None, reads)


def _does_more(e: ast.Expr) -> bool:
    """Whether the variables of an expression affect more than its value: it contains a call, or an operator that can fail."""
    calls = (ast.Call, ast.MethodCall, ast.ClassCall)
    return any(isinstance(inner, calls) or isinstance(inner, ast.Binary) and inner.op in CHECKED_OPERATORS for inner in ast.walk_expr(e))


def counted(e: ast.Expr) -> ast.ObjectDecl | None:
    """The object of a machine that a statement such as `++strange;` counts up or down; None for other statements."""
    name = e.operand if isinstance(e, ast.Unary) and e.op in ("++", "--") else None
    return name.decl if isinstance(name, ast.Name) and isinstance(name.decl, ast.ObjectDecl) else None


def _expression(e: ast.Expr, into: ast.Variable | None, reads: Reads) -> None:
    if isinstance(e, ast.Name) and isinstance(e.decl, (ast.Field, ast.ObjectDecl)):  # a field: in a method of its structure
        reads.append((into, e.decl, False))
    if isinstance(e, ast.Member):
        reads.append((into, e.field, isinstance(e.object, ast.Name) and e.object.name == "out_msg"))
    below = list(ast.child_exprs(e))
    if isinstance(e, ast.MethodCall) and e.object.type.name == "Sequencer" and e.name.endswith("Callback"):
        below = [e.object, *e.args[:CALLBACK_ARGS]]
    for child in below:
        _expression(child, into, reads)


class _Nothing(Unread):
    """All fields are kept."""

    def __init__(self) -> None:
        pass

    def of(self, type_: ast.Type, message: bool) -> list[str]:
        return []

    def keeps(self, variable: ast.Variable) -> bool:
        return True

    def decides(self, target: ast.Expr) -> bool:
        return isinstance(target, ast.Member) or (isinstance(target, ast.Name) and target.kind in ("field", "object"))


NOTHING = _Nothing()
