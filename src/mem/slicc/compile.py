# SPDX-License-Identifier: BSD-3-Clause
"""The layers in order, for callers in Python: `compile_protocol(path)` gives the checked program and the findings."""
from __future__ import annotations

import sys
from collections.abc import Iterable

from . import ast, roles
from .check import check
from .errors import Diagnostics, Stop
from .parse import parse_protocol
from .resolve import resolve

RECURSION = 10_000
"""Enough for the deepest tree that the parser accepts."""


def compile_protocol(path: str, strict: Iterable[str] = ()) -> tuple[ast.Program | None, Diagnostics]:
    """Parses, resolves and checks a protocol. `strict` has option names (check.py). Returns the program, or None if
    there were errors, and all findings."""
    diagnostics = Diagnostics()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        program = parse_protocol(path, diagnostics)
        resolve(program, diagnostics)
        roles.apply(roles.read(path, program), program)
        check(program, diagnostics, strict)
    except Stop:
        return None, diagnostics
    finally:
        sys.setrecursionlimit(limit)
    return program, diagnostics
