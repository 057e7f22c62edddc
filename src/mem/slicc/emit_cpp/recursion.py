# SPDX-License-Identifier: BSD-3-Clause
"""Functions that may call themselves, directly or not: in a protocol from outside, their depth is bounded."""
from __future__ import annotations

from .. import ast


def _callees(function: ast.Function) -> list[ast.Function]:
    found: list[ast.Function] = []
    for expr in ast.walk_exprs(function.body or []):
        if isinstance(expr, ast.Call) and expr.function is not None:
            found.append(expr.function)
        elif isinstance(expr, (ast.MethodCall, ast.ClassCall)) and expr.method is not None:
            found.append(expr.method)
    return [callee for callee in found if callee.body is not None]


def is_recursive(function: ast.Function) -> bool:
    seen: set[int] = set()
    open_ends = _callees(function)
    while open_ends:
        callee = open_ends.pop()
        if callee is function:
            return True
        if id(callee) not in seen:
            seen.add(id(callee))
            open_ends += _callees(callee)
    return False
