# SPDX-License-Identifier: BSD-3-Clause
"""Warnings about comparisons of the bytes of lines, which the timing library does not have (docs/slicc.md, "Two libraries")."""
from __future__ import annotations

from . import ast
from .check_ends import Warn, blocks


def check_data(program: ast.Program, warn: Warn) -> None:
    """Warns of comparisons, except in an `assert`, which the checking library evaluates with the bytes, and in debug output,
    which decides nothing."""
    for block in blocks(program):
        for statement in ast.walk_statements(block):
            if isinstance(statement, (ast.Assert, ast.DebugPrint)):
                continue
            for expr in ast.child_exprs(statement):
                for inner in ast.walk_expr(expr):
                    if _compares_data(inner):
                        warn(inner.loc, "data blocks compared: always equal in detailed mode, whatever their bytes: expected a decision "
                             "by states or flags", "compared-data")


def _compares_data(expr: ast.Expr) -> bool:
    if isinstance(expr, ast.MethodCall):
        return expr.name == "equal" and expr.object.type.name == "DataBlock"
    return isinstance(expr, ast.Binary) and expr.op in ("==", "!=") and expr.left.type.name == "DataBlock"
