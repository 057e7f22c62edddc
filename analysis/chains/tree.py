# SPDX-License-Identifier: BSD-3-Clause
"""Chains as a tree of calls."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from analysis.chains.table import Chain


@dataclass
class Call:
    """A function, reached by the calls above it. `waiting` includes that of the functions it called. `line`: this is no function, but the
    line that the function above it waits for."""

    function: str
    line: bool = False
    waiting: int = 0
    own: int = 0
    called: dict[tuple[str, bool], "Call"] = field(default_factory=dict)

    def ordered(self) -> list["Call"]:
        """The functions it called, by name: a picture that is drawn again looks the same."""
        return [self.called[name] for name in sorted(self.called)]

    def depth(self) -> int:
        return 1 + max((one.depth() for one in self.called.values()), default=0)


def tree(found: Iterable[Chain], with_lines: bool = False) -> Call:
    """The root stands for all; below it are processes, then functions. `with_lines`: the names of lines are leaves."""
    root = Call("all")
    for chain in found:
        root.waiting += chain.waiting
        at = root
        parts = [(part, False) for part in (chain.process or "?", *chain.frames)]
        for part in parts + ([(f"[{chain.name}]", True)] if with_lines else []):
            at = at.called.setdefault(part, Call(*part))
            at.waiting += chain.waiting
        at.own += chain.waiting
    return root


def placed(root: Call, least: float) -> Iterator[tuple[Call, int, float, float]]:
    """(call, depth, start, width), the two in parts of the whole; calls narrower than `least` are left out with what they called."""
    def below(call: Call, depth: int, start: float) -> Iterator[tuple[Call, int, float, float]]:
        width = call.waiting / root.waiting
        if width < least:
            return
        yield call, depth, start, width
        for one in call.ordered():
            yield from below(one, depth + 1, start)
            start += one.waiting / root.waiting

    if root.waiting:
        yield from below(root, 0, 0.0)
