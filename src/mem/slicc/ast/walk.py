# SPDX-License-Identifier: BSD-3-Clause
"""Walking over what lies below a node."""
from __future__ import annotations

from collections.abc import Iterator

from .expressions import Expr, Literal
from .nodes import Node
from .statements import Assert, DeferEnqueue, Enqueue, ErrorStmt, If, Peek, Return, Stmt


def _leaves(value: object) -> Iterator[object]:
    """A value, or what the lists and tuples in it hold."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def child_exprs(node: Node) -> Iterator[Expr]:
    """The expressions directly below an expression or statement, in order of evaluation; not those of nested blocks.
    They are the expressions in the node's fields, which are declared in that order."""
    for name in node.__dataclass_fields__:
        for value in _leaves(getattr(node, name)):
            if isinstance(value, Expr):
                yield value


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


def never_ends(block: list[Stmt]) -> bool:
    """Whether control never reaches the end of the block."""
    if not block:
        return False
    match block[-1]:
        case Return() | ErrorStmt():
            return True
        case Assert(condition=Literal(value=False)):
            return True
        case If(branches=branches, otherwise=otherwise):
            return otherwise is not None and never_ends(otherwise) and all(never_ends(body) for _, body in branches)
        case Peek(body=body):
            return never_ends(body)
    return any(never_ends([statement]) for statement in block[:-1])


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
