# SPDX-License-Identifier: BSD-3-Clause
"""Which functions of a controller are inlined. All that an in_port triggers may become part of one function, the controller's
wake-up. If that function grows too large, g++ allocates its registers in a fast and poor way: where basic blocks times registers
exceed 2^26 (`lra_simple_p` in GCC's ira.cc), the controller's own address is read from the stack for nearly every access."""
from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from .. import ast

#: Estimated host instructions that a wake-up may have; in protocols from outside, where many statements are checked and so have more
#: basic blocks. g++ 12 reaches its limit at 29 000 to 35 000 real instructions, and at 19 000 to 27 000 with the checks.
_ROOM, _ROOM_WITH_CHECKS = 30_000, 22_000
#: Actions that at most this many transitions call are inlined into them.
_MOST_USES = 6
#: Estimated host instructions of a transition's own code, of a call of an action, of a statement and of a call in it. They were fitted
#: to the code of MOESI_HTAssist and of a larger protocol: for 83 event functions, the differences add up to 11 % of the code.
_TRANSITION, _ACTION, _STATEMENT, _CALL = 40, 60, 15, 10
_FREE = (ast.Comment, ast.DebugPrint, ast.Return, ast.Peek)
#: Calls within this many others are followed; deeper ones are seldom inlined.
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


def _size_of_functions(machine: ast.Machine, *names: str) -> int:
    return sum(_size(f.body) for f in machine.functions if f.name in names and f.body is not None)


class Inlining:
    """The choice for one machine. `transitions`: those that have code of their own. `triggers`: how many triggers each event has; None
    if events are dispatched at run time. `foreign`: the protocol is from outside the project."""

    def __init__(self, machine: ast.Machine, transitions: Collection[ast.Transition], triggers: Counter[str] | None, foreign: bool) -> None:
        self.uses = Counter(action.name for t in transitions for action in t.actions)
        self.inlined: frozenset[str] | None = None
        if triggers is not None:
            room = _ROOM_WITH_CHECKS if foreign else _ROOM
            self.inlined = frozenset(self._smallest_events(machine, transitions, triggers, room))

    def event_attribute(self, event: ast.Event) -> str:
        """The C++ attribute of an event's function; empty where the compiler may choose."""
        return "" if self.inlined is None else "[[gnu::always_inline]] " if event.name in self.inlined else "[[gnu::noinline]] "

    def inlines(self, action: ast.Action) -> bool:
        return self.uses[action.name] <= _MOST_USES

    def _smallest_events(self, machine: ast.Machine, transitions: Iterable[ast.Transition], triggers: Counter[str],
                         room: int) -> Iterator[str]:
        """The events with the smallest functions, as many as there is room for."""
        per_transition = _TRANSITION + _size_of_functions(machine, "setState", "setAccessPermission")
        sizes = dict.fromkeys((event.name for event in machine.events), _TRANSITION + _size_of_functions(machine, "getState"))
        for t in transitions:
            sizes[t.event.name] += per_transition + sum(_size(a.body) if self.inlines(a) else _ACTION for a in t.actions)
        room -= sum(_size(port.body) for port in machine.in_ports)
        for size, name in sorted((size * triggers[name], name) for name, size in sizes.items()):
            room -= size
            if room < 0:
                return
            yield name
