# SPDX-License-Identifier: BSD-3-Clause
"""Walking over what lies below a node."""
from __future__ import annotations

from typing import Iterator

from .expressions import Binary, Call, ClassCall, Expr, IsValid, Member, MethodCall, StaticCast, Unary
from .nodes import Node
from .statements import (
    Assert,
    Assign,
    CheckAllocate,
    CheckProbe,
    CheckStopSlots,
    Comment,
    DebugPrint,
    DeferEnqueue,
    Enqueue,
    ErrorStmt,
    ExprStmt,
    If,
    LocalVar,
    Peek,
    Return,
    SetEntry,
    SetTbe,
    StallAndWait,
    Stmt,
    Trigger,
    WakeupPort,
)


def child_exprs(node: Node) -> Iterator[Expr]:
    """The expressions directly below an expression or statement, in order of evaluation; not those of nested blocks."""
    match node:
        case Member(object=base):
            yield base
        case Call(args=args) | ClassCall(args=args) | DebugPrint(args=args):
            yield from args
        case MethodCall(object=base, args=args):
            yield base
            yield from args
        case Binary(left=left, right=right):
            yield left
            yield right
        case Unary(operand=operand) | IsValid(operand=operand) | StaticCast(operand=operand):
            yield operand
        case ExprStmt(expr=expr):
            yield expr
        case Assign(target=target, value=value):
            yield target
            yield value
        case LocalVar(init=init):
            if init is not None:
                yield init
        case If(branches=branches):
            for condition, _ in branches:
                yield condition
        case Enqueue(latency=latency, bypass=bypass, port=port):
            yield port
            if latency is not None:
                yield latency
            if bypass is not None:
                yield bypass
        case Peek(port=port) | DeferEnqueue(port=port) | CheckStopSlots(port=port):
            yield port
        case StallAndWait(port=port, address=address) | WakeupPort(port=port, address=address) | CheckProbe(
            port=port, address=address
        ):
            yield port
            yield address
        case CheckAllocate(table=table):
            yield table
        case Return(value=value) | Comment(value=value):
            yield value
        case SetEntry(value=value) | SetTbe(value=value):
            if value is not None:
                yield value
        case Trigger(event=event, address=address, entry=entry, tbe=tbe):
            yield event
            yield address
            if entry is not None:
                yield entry
            if tbe is not None:
                yield tbe
        case ErrorStmt(message=message):
            yield message
        case Assert(condition=condition):
            yield condition


def child_blocks(statement: Stmt) -> Iterator[list[Stmt]]:
    """The blocks nested directly in a statement."""
    match statement:
        case If(branches=branches, otherwise=otherwise):
            for _, block in branches:
                yield block
            if otherwise is not None:
                yield otherwise
        case Peek(body=body) | Enqueue(body=body) | DeferEnqueue(body=body):
            yield body


def walk_statements(block: list[Stmt]) -> Iterator[Stmt]:
    """Every statement of a block, nested ones after the statement that holds them."""
    for statement in block:
        yield statement
        for inner in child_blocks(statement):
            yield from walk_statements(inner)


def walk_exprs(block: list[Stmt]) -> Iterator[Expr]:
    """Every expression of a block, outer before inner."""
    for statement in walk_statements(block):
        for expr in child_exprs(statement):
            yield from walk_expr(expr)


def walk_expr(expr: Expr) -> Iterator[Expr]:
    """An expression and all below it."""
    yield expr
    for child in child_exprs(expr):
        yield from walk_expr(child)
