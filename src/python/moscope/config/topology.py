# SPDX-License-Identifier: BSD-3-Clause
"""Topologies: which chips are joined by links.

A topology is a list of edges, given in the machine file or made by a registered generator. Each generator is a file in
`topologies/` that registers itself by name; it is called with the number of chips. Hop counts are those of the graph
(shortest paths); `routing.py` turns the graph into tables.
"""

from __future__ import annotations

import ast
import pkgutil
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from moscope import contributed
from moscope.schema.errors import ConfigError, suggest
from moscope.schema.units import Frequency, Width

EXAMPLE = '"0-1 0-2 1-3 2-3", or a list of pairs such as [(0, 1), (0, 2)]'
MAX_CHIPS = 64


@dataclass(frozen=True)
class Edge:
    """A link between chips a and b; width and clock if they differ from the machine's `links`."""

    a: int
    b: int
    width: Width | None = None
    clock: Frequency | None = None

    def __post_init__(self) -> None:
        for end in (self.a, self.b):
            if isinstance(end, bool) or not isinstance(end, int):
                raise ConfigError(f"topology: {end!r} is not a chip number", "a pair of chip numbers, such as (0, 1)")
        if self.width is not None:
            object.__setattr__(self, "width", Width(self.width))
        if self.clock is not None:
            object.__setattr__(self, "clock", Frequency(self.clock))

    def __str__(self) -> str:
        return f"{self.a}-{self.b}"


@dataclass(frozen=True)
class Topology:
    """A name and, once the number of chips is known, the edges. Built with `parse`."""

    name: str
    edges: tuple[Edge, ...] | None = None
    source: str = ""

    @staticmethod
    def parse(value: Any, source: str = "") -> Topology:
        """A topology from a registered name, a text of edges, or a list of pairs and `Edge`s."""
        if isinstance(value, Topology):
            return value
        if isinstance(value, str):
            text = value.strip()
            if re.fullmatch(r"\d{1,6}\s*-\s*\d{1,6}([\s,]+\d{1,6}\s*-\s*\d{1,6})*", text):
                pairs = re.findall(r"(\d+)\s*-\s*(\d+)", text)
                return Topology("custom", tuple(Edge(int(a), int(b)) for a, b in pairs), source)
            if text == "":
                return Topology("custom", (), source)
            if text[0] in "[(":
                return Topology("custom", tuple(_edge(e) for e in _listed(text)), source)
            return Topology(text, None, source)
        if isinstance(value, Iterable):
            return Topology("custom", tuple(_edge(e) for e in value), source)
        raise ConfigError(f"topology: {value!r:.40} is neither a name nor a list of edges", f"a name, or {EXAMPLE}")

    def resolved(self, chips: int) -> Topology:
        """The same topology with its edges, checked for this number of chips."""
        edges = self.edges if self.edges is not None else make(self.name, chips)
        check_edges(edges, chips)
        return Topology(self.name, tuple(edges), self.source)

    def __str__(self) -> str:
        return self.name if self.edges is None else " ".join(map(str, self.edges))


def _listed(text: str) -> list[Any]:
    """The edges of a list that an option gives as text."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ConfigError(f"topology: {text!r:.60} is not a list of edges", EXAMPLE) from None
    if not isinstance(found, (list, tuple)):
        raise ConfigError(f"topology: {text!r:.60} is not a list of edges", EXAMPLE)
    # `(0, 1), (0, 2)` is a list without its brackets; `(0, 1)` is a single edge.
    return [found] if len(found) == 2 and all(isinstance(end, int) for end in found) else list(found)


def _edge(item: Any) -> Edge:
    if isinstance(item, Edge):
        return item
    if isinstance(item, str) and (match := re.fullmatch(r"\s*(\d{1,6})\s*-\s*(\d{1,6})\s*", item)):
        return Edge(int(match[1]), int(match[2]))
    if isinstance(item, Sequence) and not isinstance(item, str) and len(item) == 2:
        return Edge(item[0], item[1])
    raise ConfigError(f"topology: {item!r:.40} is not an edge", '(0, 1), "0-1", or Edge(0, 1, width=Width("x8"))')


# --- the registry ---------------------------------------------------------------------------------

Generator = Callable[[int], Iterable[Any]]
_OWN = f"{__package__}."
_registry: dict[str, tuple[Generator, int | None]] = {}


def topology(name: str, *, chips: int | None = None) -> Callable[[Generator], Generator]:
    """Registers a generator of edges; `chips` restricts it to one number of chips."""

    def register(generator: Generator) -> Generator:
        if not generator.__module__.startswith(_OWN):  # moscope's own topologies are registered first, so that their names are known
            _load()
        if name in _registry and _registry[name][0].__module__.startswith(_OWN):
            raise ConfigError(f"topology: {name!r:.60} is one of moscope's", "another name")
        _registry[name] = (generator, chips)
        return generator

    return register


def _load() -> None:
    from . import topologies

    for module in pkgutil.iter_modules(topologies.__path__):
        contributed.imported(f"{topologies.__name__}.{module.name}", "a registered topology (docs/extending/topology.md)")


def names() -> list[str]:
    _load()
    return sorted(_registry)


def _entry(name: str) -> tuple[Generator, int | None]:
    _load()
    if name not in _registry:
        raise ConfigError(f"topology: {name!r:.60} is not known", f"{suggest(name, _registry)}, or edges such as {EXAMPLE}")
    return _registry[name]


def registered_in(name: str) -> str:
    """The module that registered a topology."""
    return _entry(name)[0].__module__


def make(name: str, chips: int) -> tuple[Edge, ...]:
    generator, fixed = _entry(name)
    if fixed is not None and fixed != chips:
        others = [n for n, (_, f) in _registry.items() if f in (None, chips)]
        raise ConfigError(
            f"topology: {name} joins {fixed} chips, and the machine has {chips}",
            f"chips={fixed}, or one of {', '.join(sorted(others))}",
        )
    try:
        return tuple(_edge(e) for e in generator(chips))
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001  whatever a generator may raise
        where = f" ({contributed.place_of_call(generator, error)})" if isinstance(generator, FunctionType) else ""
        raise ConfigError(f"topology: {name}{where}: {type(error).__name__}: {error}", f"edges for {chips} chips") from None


# --- the graph ------------------------------------------------------------------------------------


def check_edges(edges: Sequence[Edge], chips: int) -> None:
    if chips > MAX_CHIPS:
        raise ConfigError(f"chips: {chips} chips", f"at most {MAX_CHIPS}")
    seen: set[tuple[int, int]] = set()
    for edge in edges:
        for end in (edge.a, edge.b):
            if not 0 <= end < chips:
                raise ConfigError(f"topology: edge {edge} names chip {end}", f"numbers from 0 to {chips - 1}")
        if edge.a == edge.b:
            raise ConfigError(f"topology: edge {edge} joins chip {edge.a} to itself", "two different chips")
        key = (min(edge.a, edge.b), max(edge.a, edge.b))
        if key in seen:
            raise ConfigError(f"topology: edge {edge} is given twice", "one edge per pair of chips, with a larger width")
        seen.add(key)
    lost = [d for d, hops in enumerate(distances(edges, chips)[0]) if hops < 0]
    if lost:
        shown = ", ".join(map(str, lost))
        what = f"chip {shown} has" if len(lost) == 1 else f"chips {shown} have"
        raise ConfigError(f"topology: {what} no path to chip 0", "more edges, until every chip can be reached from every other")


def neighbours(edges: Sequence[Edge], chips: int) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in range(chips)]
    for edge in edges:
        near[edge.a].append(edge.b)
        near[edge.b].append(edge.a)
    return [sorted(n) for n in near]


def distances(edges: Sequence[Edge], chips: int) -> list[list[int]]:
    """Shortest hop counts between all chips; -1 if there is no path."""
    near = neighbours(edges, chips)
    rows = []
    for start in range(chips):
        row = [-1] * chips
        row[start] = 0
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for there in near[here]:
                if row[there] < 0:
                    row[there] = row[here] + 1
                    queue.append(there)
        rows.append(row)
    return rows
