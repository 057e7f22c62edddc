# SPDX-License-Identifier: BSD-3-Clause
"""Which functions of a controller are inlined. All that an in_port triggers may become part of one function, the controller's
wake-up. If that function grows too large, g++ allocates its registers in a fast and poor way: where basic blocks times registers
exceed 2^26 (`lra_simple_p` in GCC's ira.cc), the controller's own address is read from the stack for nearly every access."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .. import ast

#: Estimated host instructions that a wake-up may have; in protocols from outside, where many statements are checked and so have more
#: basic blocks. g++ 12 reaches its limit at 29 000 to 35 000 real instructions, and at 19 000 to 27 000 with the checks.
_ROOM, _ROOM_WITH_CHECKS = 30_000, 22_000
#: Actions that at most this many transitions call are inlined into them.
_MOST_USES = 6
#: Estimated host instructions of a transition's own code, of a call of an action, of a statement and of a call in it. They were fitted
#: to the code of MOESI_HTAssist and of a larger protocol; 83 event functions differ from the estimate by 12 % on average.
_TRANSITION, _ACTION, _STATEMENT, _CALL = 40, 60, 15, 10
_FREE = (ast.Comment, ast.DebugPrint, ast.Return, ast.Peek)
#: Functions that are called by functions that are called by functions are seldom inlined.
_MAX_DEPTH = 3


def _size(block: list[ast.Stmt], depth: int = 0) -> int:
    """Estimated host instructions of a block with the functions that it calls."""
    total = sum(_STATEMENT for statement in ast.walk_statements(block) if not isinstance(statement, _FREE))
    for expr in ast.walk_exprs(block):
        match expr:
            case ast.Call(function=called) | ast.MethodCall(method=called) | ast.ClassCall(method=called):
                if called is None or called.body is None:
                    total += _CALL
                elif depth < _MAX_DEPTH:
                    total += _size(called.body, depth + 1)
    return total


class Inlining:
    """`transitions`: those of the machine that have code of their own. `triggers`: how many triggers each event has; None if events
    are dispatched at run time."""

    def __init__(self, machine: ast.Machine, transitions: Iterable[ast.Transition], triggers: Counter[str] | None, foreign: bool) -> None:
        self.transitions = list(transitions)
        self.uses = Counter(action.name for t in self.transitions for action in t.actions)
        self.around = _TRANSITION + sum(_size(f.body) for f in machine.functions
                                        if f.name in ("setState", "setAccessPermission") and f.body is not None)
        self.first = _TRANSITION + sum(_size(f.body) for f in machine.functions if f.name == "getState" and f.body is not None)
        self.room = _ROOM_WITH_CHECKS if foreign else _ROOM
        self.events = frozenset(self._events(machine, triggers)) if triggers is not None else frozenset[str]()

    def inlines(self, action: ast.Action) -> bool:
        return self.uses[action.name] <= _MOST_USES

    def _events(self, machine: ast.Machine, triggers: Counter[str]) -> Iterable[str]:
        """The events whose functions are inlined: the smallest, as many as there is room for."""
        sizes = {event.name: self.first for event in machine.events}
        for t in self.transitions:
            sizes[t.event.name] += self.around + sum(_size(a.body) if self.inlines(a) else _ACTION for a in t.actions)
        left = self.room - sum(_size(port.body) for port in machine.in_ports)
        for size, name in sorted((size * triggers[name], name) for name, size in sizes.items()):
            left -= size
            if left < 0:
                return
            yield name
