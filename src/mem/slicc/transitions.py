# SPDX-License-Identifier: BSD-3-Clause
"""Transitions: the lists of states and events of a declaration become one ast.Transition per (state, event) pair."""
from __future__ import annotations

from typing import TypeVar

from . import ast
from .errors import Diagnostics, expected
from .scopes import Serial

Value = TypeVar("Value", bound=ast.Node)


class TransitionResolver:
    """Fills a machine's `transitions` and `table`, and marks the actions that are used."""

    def __init__(self, machine: ast.Machine, serial: Serial, diagnostics: Diagnostics) -> None:
        self.machine = machine
        self.serial = serial
        self.diagnostics = diagnostics
        self.states = {state.name: state for state in machine.states}
        self.events = {event.name: event for event in machine.events}
        self.requests = {request.name: request for request in machine.request_types}
        self.actions = {action.name: action for action in machine.actions}

    def run(self) -> None:
        for decl in self.machine.decls:
            if isinstance(decl, ast.TransitionDecl):
                self._transition(decl)

    def _find(self, words: list[ast.Word], known: dict[str, Value], what: str) -> list[Value]:
        """The values that the words name, in order. Unknown names are reported."""
        for word in words:
            if word.name not in known:
                self.diagnostics.error(word.loc, f"{what.split(' ', 1)[1]} '{word.name}': unknown"
                                       + expected(word.name, known, f"{what} of machine '{self.machine.name}'"))
        return [known[word.name] for word in words if word.name in known]

    def _transition(self, decl: ast.TransitionDecl) -> None:
        states = self._find(decl.states, self.states, "a state")
        events = self._find(decl.events, self.events, "an event")
        actions = self._find(decl.actions, self.actions, "an action")
        requests = self._find(decl.request_types, self.requests, "a request type")
        self._mark_used(decl)
        wildcard = decl.next_state is not None and decl.next_state.name == "*"
        target: ast.State | None = None
        if decl.next_state is not None and wildcard:
            if not any(len(function.formals) == 1 for function in self.machine.function("getNextState")):
                self.diagnostics.error(decl.next_state.loc,
                                       "next state '*': nothing computes it: expected a function getNextState(Addr)")
        elif decl.next_state is not None:
            found = self._find([decl.next_state], self.states, "a state")
            if not found:
                return
            target = found[0]
        resources: dict[ast.Resource, int] = {}
        for action in actions:
            for place, count in action.resources.items():
                resources[place] = resources.get(place, 0) + count
        for state in states:
            for event in events:
                self._enter(ast.Transition(loc=decl.loc, state=state, event=event, next_state=None if wildcard else target or state,
                                           actions=actions, request_types=requests, decl=decl, resources=dict(resources)))

    def _mark_used(self, decl: ast.TransitionDecl) -> None:
        position = self.serial.of(decl)
        for word in decl.actions:
            if word.name in self.actions:
                self.actions[word.name].used = True
                if self.serial.of(self.actions[word.name]) > position:
                    self.diagnostics.warning(word.loc, f"action '{word.name}': used before its declaration: expected the "
                                             "declaration above, as gem5 requires", "order")

    def _enter(self, transition: ast.Transition) -> None:
        earlier = self.machine.table.get(transition.key)
        if earlier is not None:
            self.diagnostics.error(transition.loc, f"transition for state {transition.state.name} and event {transition.event.name}: "
                                   f"already declared in line {earlier.loc.line}: expected one per pair")
            return
        self.machine.table[transition.key] = transition
        self.machine.transitions.append(transition)
