# SPDX-License-Identifier: BSD-3-Clause
"""A table of symbols, searched by name and by address."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

# Symbols that mark places, not objects. If another symbol has the same address, the other one is the name.
PLACE = re.compile(r"^(_?_?(start|end|stop|begin)_|_[se]?(text|data|init|bss|brk|etext|edata|end)$|__pfx_|__cfi_|\.L|\$)"
                   r"|_(start|end|begin)$|__UNIQUE_ID|^__SC|^__ksym|^__kstr")
FARTHEST = 64 << 20  # bytes; an address farther behind a symbol without a size does not belong to it


@dataclass(frozen=True)
class Symbol:
    """If the table has no sizes, `size` is the distance to the next symbol."""

    name: str
    address: int
    size: int
    kind: str

    @property
    def is_code(self) -> bool:
        return self.kind in "tTwW"


@dataclass(frozen=True)
class Place:
    """An address as symbol and offset."""

    symbol: Symbol
    offset: int

    def __str__(self) -> str:
        return f"{self.symbol.name}+{self.offset:#x}" if self.offset else self.symbol.name


def _rank(kind: str, name: str) -> tuple[bool, int, bool, int, str]:
    """The order of several names for one address; the smallest is used: objects before marks of places, plain before decorated
    names, global first."""
    return bool(PLACE.search(name)), len(name) - len(name.lstrip("_")), not kind.isupper(), len(name), name


class SymbolTable:
    def __init__(self, rows: Iterable[tuple[int, int, str, str]]) -> None:
        """Rows of address, size (0: not known), kind letter, name."""
        kept = sorted(rows, key=lambda r: r[0])
        self._by_name: dict[str, tuple[int, int, str]] = {}
        best: dict[int, tuple[int, int, str, str]] = {}
        self._others: dict[int, list[tuple[str, str]]] = {}  # kind letters and names, by address
        for row in kept:
            address, size, kind, name = row
            if address in best:
                self._others.setdefault(address, [best[address][2:]]).append((kind, name))
            self._by_name.setdefault(name, (address, size, kind))
            held = best.get(address)
            if held is None or (_rank(kind, name), -size) < (_rank(held[2], held[3]), -held[1]):
                best[address] = row if held is None or size else (address, held[1], kind, name)
        self._rows = list(best.values())
        self._addresses = [r[0] for r in self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def address(self, name: str) -> int | None:
        found = self._by_name.get(name)
        return found[0] if found else None

    def at(self, address: int) -> Place | None:
        """The symbol that contains `address`. None before the first symbol, behind the end of a symbol with a size, and far behind one
        without a size."""
        i = bisect_right(self._addresses, address) - 1
        if i < 0:
            return None
        start, size, kind, name = self._rows[i]
        extent = size or (self._addresses[i + 1] - start if i + 1 < len(self._rows) else FARTHEST)
        if address - start >= (size or min(extent, FARTHEST)):
            return None
        return Place(Symbol(name, start, extent, kind), address - start)

    def alike(self, symbol: Symbol) -> list[str]:
        """All names of a symbol's address that are as plain as its own, the best first; none if it has one name only."""
        of = sorted(self._others.get(symbol.address, []), key=lambda one: _rank(*one))
        return list(dict.fromkeys(name for kind, name in of if _rank(kind, name)[:2] == _rank(symbol.kind, symbol.name)[:2]))

    def none_in(self, first: int, end: int) -> bool:
        """Whether at() finds nothing in [first, end)."""
        return self.at(first) is None and bisect_left(self._addresses, first) == bisect_left(self._addresses, end)

    def starting_in(self, first: int, end: int) -> list[Symbol]:
        """The symbols that begin in [first, end)."""
        i, j = bisect_left(self._addresses, first), bisect_left(self._addresses, end)
        return [Symbol(n, a, s or (self._addresses[k + 1] - a if k + 1 < len(self._rows) else 0), kind)
                for k, (a, s, kind, n) in enumerate(self._rows[i:j], i)]
