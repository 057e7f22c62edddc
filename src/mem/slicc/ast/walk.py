# SPDX-License-Identifier: BSD-3-Clause
"""Walking over what lies below a node."""
from __future__ import annotations

from collections.abc import Iterator

from .expressions import Expr
from .nodes import Node
from .statements import DeferEnqueue, Enqueue, If, Peek, Stmt


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
