# SPDX-License-Identifier: BSD-3-Clause
"""Names and their visibility. A `Scope` is a chain of frames for variables (program, machine, function, block). Types and
functions are looked up first in the machine, then in the program. Declarations have serial numbers, so that the compiler can warn
of a use before the declaration, which gem5's one-pass compiler rejects."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import ast


@dataclass
class Symbol:
    """A variable in a frame: what kind of name it is (ast.NAME_KINDS), its declaration, type, and whether it is a handle."""

    kind: str
    decl: ast.Declaration
    type: ast.Type
    is_pointer: bool
    loc: ast.Loc | None = None


class Scope:
    """A frame of variables and its parent."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.symbols: dict[str, Symbol] = {}

    def declare(self, name: str, symbol: Symbol) -> Symbol | None:
        """Adds a variable. Returns an earlier one of that name in the same frame, which then stays; otherwise None."""
        earlier = self.symbols.get(name)
        if earlier is None:
            self.symbols[name] = symbol
        return earlier

    def find(self, name: str) -> Symbol | None:
        scope: Scope | None = self
        while scope is not None:
            symbol = scope.symbols.get(name)
            if symbol is not None:
                return symbol
            scope = scope.parent
        return None

    def names(self) -> Iterator[str]:
        scope: Scope | None = self
        while scope is not None:
            yield from scope.symbols
            scope = scope.parent


class Namespace:
    """Types and functions of the program (`outer` None) or of a machine (`outer` the program's)."""

    def __init__(self, outer: Namespace | None = None) -> None:
        self.outer = outer
        self.types: dict[str, ast.Type] = {}
        self.functions: dict[str, list[ast.Function]] = {}
        self.scope: Scope = Scope(outer.scope if outer else None)

    def find_type(self, name: str) -> ast.Type | None:
        found = self.types.get(name)
        if found is None and self.outer is not None:
            return self.outer.find_type(name)
        return found

    def find_functions(self, name: str) -> list[ast.Function]:
        """Overloads, those of the machine before those of the program."""
        mine = self.functions.get(name, [])
        return mine + self.outer.find_functions(name) if self.outer else mine

    def type_names(self) -> list[str]:
        return list(self.types) + (self.outer.type_names() if self.outer else [])

    def function_names(self) -> list[str]:
        return list(self.functions) + (self.outer.function_names() if self.outer else [])


class Serial:
    """Numbers declarations in the order of the text."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        self._next = 0

    def number(self, decl: object) -> None:
        self._next += 1
        self._of[id(decl)] = self._next

    def of(self, decl: object) -> int:
        """The number, or 0 for an implicit declaration, which precedes all uses."""
        return self._of.get(id(decl), 0)
