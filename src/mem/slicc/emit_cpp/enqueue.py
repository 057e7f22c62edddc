# SPDX-License-Identifier: BSD-3-Clause
"""The sending of a message: `enqueue(port, Type, latency) { out_msg.Field := value; .. }`.

The values of the block's first assignments are computed before the message is made. Nothing is then read between the construction
of the message and the assignments, so the C++ compiler omits the initial values of the fields.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import ast
from ..hits import looks_only
from .writer import c_field, c_type

if TYPE_CHECKING:
    from .code import Code

#: Types of fields that are copied directly, without a local variable.
_LARGE = ("DataBlock", "NetDest", "Set", "WriteMask")


def enqueue(to: Code, s: ast.Enqueue) -> None:
    """Writes the sending of a message, within a block of C++."""
    out, base = to.out, c_type(s.message_ref.type)
    latency = to.expr(s.latency) if s.latency is not None else "1"
    sole, machine = sole_destination(s) or (None, [])
    first = [] if to.located or to.checked else looked_up_first(s.body, sole)
    assignments: list[str] = []
    for statement in first:
        if statement is sole:
            out(f"const NodeIndex only_ = index_of({to.args(machine)});")
        elif isinstance(statement, ast.Assign) and isinstance(statement.target, ast.Member):
            field, value = c_field(statement.target.field), to.expr(statement.value)
            if not isinstance(statement.value, (ast.Literal, ast.EnumRef)) and statement.target.type.name not in _LARGE:
                out(f"const auto {field}_value_ = {value};")
                value = f"{field}_value_"
            assignments.append(f"{to.expr(statement.target)} = {value};")
        else:
            to.block([statement])
    out(f"{base} &out_msg = *new_message<{base}>();")
    # Copies from memory come last: the compiler must assume that their source is the message itself.
    for text in sorted(assignments, key=lambda text: not text.endswith("_value_;")):
        out(text)
    for statement in s.body[len(first):]:
        if statement is sole:
            only = f"existing({to.args(machine)})" if to.located else f"index_of({to.args(machine)})"
            to.locate(statement)
            out(f"const auto only_ = {only};")
        else:
            to.block([statement])
    to.locate(s)
    out("complete_message(out_msg);")
    if sole is not None:
        out(f"send_only_to({to.buffer(s.port)}, &out_msg, only_, {latency});")
    else:
        out(f"{'send_inside' if to.located and is_inside(s) else 'send'}({to.buffer(s.port)}, &out_msg, {latency});")


def is_inside(s: ast.Enqueue) -> bool:
    """Whether a message goes into a buffer of the machine that has no part of the network behind it."""
    buffer = s.port.decl.buffer.decl if isinstance(s.port.decl, ast.Port) else None
    return isinstance(buffer, ast.Param) and buffer.is_buffer and buffer.network is None


def looked_up_first(body: list[ast.Stmt], sole: ast.Stmt | None) -> list[ast.Stmt]:
    """The statements at the block's beginning that assign to a field of the message, add its sole destination or assert something, and
    have no other effect; no field is assigned to twice."""
    found: list[ast.Stmt] = []
    fields: set[str] = set()
    for statement in body:
        match statement:
            case ast.Assign(target=ast.Member(object=ast.Name(name="out_msg")) as target, value=value):
                if target.name in fields or not looks_only(value) or mentions_out_msg(value):
                    break
                fields.add(target.name)
            case ast.ExprStmt(expr=ast.MethodCall(args=[machine])) if statement is sole:
                if not looks_only(machine) or mentions_out_msg(machine):
                    break
            case ast.Assert(condition=condition) if looks_only(condition) and not mentions_out_msg(condition):
                pass
            case ast.Comment() | ast.DebugPrint():
                pass
            case _:
                break
        found.append(statement)
    return found


def mentions_out_msg(expr: ast.Expr) -> bool:
    return any(isinstance(e, ast.Name) and e.name == "out_msg" for e in ast.walk_expr(expr))


def sole_destination(s: ast.Enqueue) -> tuple[ast.Stmt, list[ast.Expr]] | None:
    """The statement `out_msg.Destination.add(MACHINE)` of a message that certainly goes to this machine alone, and its arguments: the
    statement is not within an `if`, and nothing else in the block names the destination or the message as a whole."""
    exprs = list(ast.walk_exprs(s.body))
    mentions = [e for e in exprs if isinstance(e, ast.Member) and e.name == "Destination"]
    fields = sum(isinstance(e, ast.Member) and isinstance(e.object, ast.Name) and e.object.name == "out_msg" for e in exprs)
    if fields != sum(isinstance(e, ast.Name) and e.name == "out_msg" for e in exprs):
        return None
    for statement in s.body:
        match statement:
            case ast.ExprStmt(expr=ast.MethodCall(name="add", object=ast.Member(object=ast.Name(name="out_msg")) as set_, args=[machine])):
                if mentions == [set_] and machine.type is not None and machine.type.name == "MachineID":
                    return statement, [machine]
    return None
