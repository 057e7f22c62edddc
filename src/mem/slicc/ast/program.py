# SPDX-License-Identifier: BSD-3-Clause
"""A whole protocol: its machines and their transitions."""
from __future__ import annotations

import re
from dataclasses import field

from .declarations import Action, Function, InPort, ObjectDecl, OutPort, Param, Resource
from .expressions import Call
from .nodes import RESOLVED, Node
from .statements import StallAndWait
from .types import Described, Event, RequestType, State, Type
from .walk import walk_exprs, walk_statements

_WORD = re.compile(r"[A-Za-z_]\w*")


class Word(Node):
    """A name in a transition's lists, with its own location."""

    name: str


class TransitionDecl(Node):
    """A transition as written: lists of states and events; `next_state` None (stay), a state's name, or "*"."""

    states: list[Word]
    events: list[Word]
    next_state: Word | None
    request_types: list[Word]
    actions: list[Word]


class Transition(Node):
    """One (state, event) pair. `next_state` None means: ask getNextState(address), before the actions."""

    state: State
    event: Event
    next_state: State | None
    actions: list[Action]
    request_types: list[RequestType]
    decl: TransitionDecl
    resources: dict[Resource, int] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        return (self.state.name, self.event.name)

    @property
    def is_stall(self) -> bool:
        return any(action.name == "z_stall" for action in self.actions)

    @property
    def sets_aside(self) -> bool:
        """Whether its actions put the message aside for later, by stall_and_wait or recycle. HTML tables show it as a stall."""
        return any(isinstance(s, StallAndWait) for action in self.actions for s in walk_statements(action.body)) or any(
            isinstance(e, Call) and e.name == "recycle" for action in self.actions for e in walk_exprs(action.body))


class Body(Node):
    """`decls` are the declarations of a machine or of all files of a protocol in order, includes spliced in.
    *resolved*: types, functions."""

    decls: list[Node]
    types: list[Type] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)


class Machine(Described, Body):
    """A controller. All below `params` is *resolved*."""

    params: list[Param]
    objects: list[ObjectDecl] = field(default_factory=list)
    in_ports: list[InPort] = field(default_factory=list)
    out_ports: list[OutPort] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    state_type: Type | None = None
    event_type: Type | None = None
    request_type_type: Type | None = None
    entry_type: Type | None = None
    tbe_type: Type | None = None
    table: dict[tuple[str, str], Transition] = field(default_factory=dict)

    @property
    def states(self) -> list[State]:
        return self.state_type.states if self.state_type else []

    @property
    def events(self) -> list[Event]:
        return self.event_type.value_list if self.event_type else []

    @property
    def request_types(self) -> list[RequestType]:
        return self.request_type_type.value_list if self.request_type_type else []

    def param(self, name: str) -> Param | None:
        return next((param for param in self.params if param.name == name), None)

    def function(self, name: str) -> list[Function]:
        return [function for function in self.functions if function.name == name]

    def initial_state(self) -> State | None:
        """The state of a line that was never accessed: the State type's default= pair, or else the first state."""
        if self.state_type is None or not self.states:
            return None
        default = self.state_type.pairs.get("default", "")
        for state in self.states:
            if default in (state.c_name, state.name):
                return state
        return self.states[0]


class ProtocolDecl(Node):
    """`protocol "NAME";`, since gem5 24.1 with options, which say what its sequencers do."""

    name: str
    options: list[str] | None = None


class Include(Node):
    """`include "FILE";`."""

    path: str


class Program(Body):
    """A whole protocol. All below `files` is *resolved*."""

    name: str
    files: list[str]
    globals: list[ObjectDecl] = field(default_factory=list)
    machines: list[Machine] = field(default_factory=list)
    header_text: str = ""
    foreign: bool = False
    void_type: Type = RESOLVED
    ood_type: Type = RESOLVED

    def own_names(self) -> set[str]:
        """All words in the protocol's own C++ header; they include every name that it defines."""
        return set(_WORD.findall(self.header_text))

    def type(self, name: str) -> Type | None:
        return next((declared for declared in self.types if declared.name == name), None)

    def machine(self, name: str) -> Machine | None:
        return next((machine for machine in self.machines if machine.name == name), None)

    def message_types(self) -> list[Type]:
        return [declared for declared in self.types if declared.is_message]
