# SPDX-License-Identifier: BSD-3-Clause
"""Look-ups that assertions in a row repeat. Protocols assert in setState() that at most one of their arrays has the line, pair by pair.

A look-up has no effect, and nothing changes between such assertions. So one that the assertions are certain to make is made once,
before the first of them. One that depends on the result of another stays where it is, because it may be in vain.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .. import ast
from ..ast.walk import child_exprs
from ..hits import looks_only

Key = tuple[str, ...]


def key(e: ast.Expr) -> Key | None:
    """What a look-up of a cache array has in common with its repetitions; None of another expression."""
    match e:
        case ast.MethodCall(name="isTagPresent" | "lookup" as name, object=ast.Name(name=array, decl=ast.Param() | ast.ObjectDecl()), args=[
                ast.Name(name=line, kind=kind)]) if e.object.type.name == "CacheMemory" and "added" not in e.method.pairs:
            return array, name, kind, line
    return None


def assertions(statements: list[ast.Stmt], begin: int) -> list[ast.Assert]:
    """The assertions in a row that begin with statement number `begin`. One that changes something, or guards those behind it
    against a null handle, ends the row."""
    found: list[ast.Assert] = []
    for s in statements[begin:]:
        if isinstance(s, ast.Assert):
            found.append(s)
            if not all(looks_only(e) and not isinstance(e, ast.IsValid) for e in ast.walk_expr(s.condition)):
                break
        elif not isinstance(s, (ast.DebugPrint, ast.Comment)):
            break
    return found


def repeated(row: list[ast.Assert]) -> dict[Key, ast.Expr]:
    """The look-ups that the assertions repeat and are certain to make, in order of appearance."""
    counts = Counter(key(e) for s in row for e in ast.walk_expr(s.condition))
    certain = {key(e): e for s in row for e in _certain(s.condition)}
    return {k: e for k, e in certain.items() if k is not None and counts[k] > 1}


def _certain(e: ast.Expr) -> Iterator[ast.Expr]:
    """The parts of an expression that its evaluation certainly reaches."""
    yield e
    below = [e.left] if isinstance(e, ast.Binary) and e.op in ("&&", "||") else child_exprs(e)
    for child in below:
        yield from _certain(child)
