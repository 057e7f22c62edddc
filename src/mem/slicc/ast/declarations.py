# SPDX-License-Identifier: BSD-3-Clause
"""What a program and its machines declare."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional, Union

from .expressions import Call, Expr, Name
from .nodes import Node, Pairs
from .statements import StallAndWait, Stmt
from .types import Event, RequestType, State, Type, TypeRef
from .walk import walk_exprs, walk_statements


@dataclass(eq=False, kw_only=True)
class Formal(Node):
    """A formal parameter. `qualifier` is "", "PTR", "REF" or "CONST_REF"; "" means by value or const reference.
    `name` is None in prototypes that give types only."""

    name: Optional[str]
    type_ref: TypeRef
    qualifier: str = ""
    default: Union[str, int, bool, None] = None

    @property
    def type(self) -> Type:
        return self.type_ref.type

    @property
    def is_pointer(self) -> bool:
        return self.qualifier == "PTR" or self.type.is_handle


@dataclass(eq=False, kw_only=True)
class Function(Node):
    """A function of the program or a machine, or a method of a type; external when `body` is None.
    *resolved*: owner (the Type of a method), machine."""

    name: str
    return_ref: TypeRef
    formals: list[Formal]
    pairs: Pairs
    body: Optional[list["Stmt"]]
    owner: Optional[Type] = None
    machine: Optional["Machine"] = None
    synthetic: bool = False

    @property
    def return_type(self) -> Type:
        return self.return_ref.type

    @property
    def is_external(self) -> bool:
        return self.body is None

    @property
    def returns_pointer(self) -> bool:
        return "return_by_pointer" in self.pairs or self.return_type.is_handle

    @property
    def returns_reference(self) -> bool:
        return "return_by_ref" in self.pairs

    def signature(self) -> str:
        return f"{self.name}({', '.join(formal.type_ref.name for formal in self.formals)})"

    def __repr__(self) -> str:
        return f"<Function {self.name}/{len(self.formals)}>"


@dataclass(eq=False, kw_only=True)
class Param(Node):
    """A parameter of a machine, settable from the machine description; message buffers are parameters too.
    `default` is an expression (always a Literal after resolution) or None."""

    name: str
    type_ref: TypeRef
    pointer: bool
    pairs: Pairs
    default: Optional["Expr"] = None
    machine: "Machine" = None  # type: ignore[assignment]

    @property
    def type(self) -> Type:
        return self.type_ref.type

    @property
    def is_buffer(self) -> bool:
        return "buffer" in self.type.pairs or self.type.name == "MessageBuffer"

    @property
    def network(self) -> Optional[str]:
        """"To" (the machine sends), "From" (it receives) or None (not connected to the network)."""
        return self.pairs.get("network")

    @property
    def virtual_network(self) -> Optional[int]:
        text = self.pairs.get("virtual_network")
        return int(text) if text is not None and text.isdigit() else None

    @property
    def vnet_type(self) -> Optional[str]:
        return self.pairs.get("vnet_type")

    @property
    def is_ordered(self) -> bool:
        """Whether messages between two controllers keep their order. A machine that says nothing of it for any buffer was
        written for a network that keeps it (gem5 sets the order outside the protocol), so silence means ordered there."""
        declared = any("ordered" in param.pairs for param in self.machine.params)
        return self.pairs.get("ordered", "false" if declared else "true").lower() in ("true", "yes")


@dataclass(eq=False, kw_only=True)
class ObjectDecl(Node):
    """An object: a member variable of a machine, or a global of the prelude. `template` and `constructor` are raw
    pairs, e.g. "<L1Cache_TBE>" and "m_number_of_TBEs". *resolved*: machine, element (the type that `template` names when it is one of ours)."""

    name: str
    type_ref: TypeRef
    pointer: bool
    pairs: Pairs
    init: Optional["Expr"] = None
    machine: Optional["Machine"] = None
    element: Optional[Type] = None
    default_text: Optional[str] = None
    default_value: Optional["Expr"] = None

    @property
    def type(self) -> Type:
        return self.type_ref.type

    @property
    def template(self) -> Optional[str]:
        return self.pairs.get("template")

    @property
    def constructor(self) -> Optional[str]:
        return self.pairs.get("constructor")


@dataclass(eq=False, kw_only=True)
class Builtin(Node):
    """An implicit variable: in_msg, out_msg, address, cache_entry, tbe."""

    name: str
    type: Type
    is_pointer: bool = False


@dataclass(eq=False, kw_only=True)
class InPort(Node):
    """`buffer` names a Param or ObjectDecl (a message buffer or a timer table). Ports are polled in order of declaration,
    `index` is the position; `rank` (0 if not given) identifies the port when stalled messages are woken. *resolved*: rank, index."""

    name: str
    message_ref: TypeRef
    buffer: "Name"
    pairs: Pairs
    body: list["Stmt"]
    rank: int = 0
    index: int = -1

    @property
    def message(self) -> Type:
        return self.message_ref.type


@dataclass(eq=False, kw_only=True)
class OutPort(Node):
    """A port that messages leave through."""

    name: str
    message_ref: TypeRef
    buffer: "Name"
    pairs: Pairs

    @property
    def message(self) -> Type:
        return self.message_ref.type


@dataclass(eq=False, kw_only=True)
class Action(Node):
    """A named list of statements. *resolved*: resources; `used` when some transition runs it."""

    name: str
    pairs: Pairs
    body: list["Stmt"]
    resources: dict[object, int] = field(default_factory=dict)
    used: bool = False

    @property
    def short(self) -> str:
        return self.pairs.get("short", self.name)

    @property
    def desc(self) -> str:
        return self.pairs.get("desc", "")

    def __repr__(self) -> str:
        return f"<Action {self.name}>"


@dataclass(eq=False, kw_only=True)
class Word(Node):
    """A name in a transition's lists, with its own location."""

    name: str


@dataclass(eq=False, kw_only=True)
class TransitionDecl(Node):
    """A transition as written: lists of states and events; `next_state` None (stay), a state's name, or "*"."""

    states: list[Word]
    events: list[Word]
    next_state: Optional[Word]
    request_types: list[Word]
    actions: list[Word]


@dataclass(eq=False, kw_only=True)
class Transition(Node):
    """One (state, event) pair. `next_state` None means: ask getNextState(address), before the actions."""

    state: State
    event: Event
    next_state: Optional[State]
    actions: list[Action]
    request_types: list[RequestType]
    decl: TransitionDecl
    resources: dict[object, int] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        return (self.state.name, self.event.name)

    @property
    def is_stall(self) -> bool:
        return any(action.name == "z_stall" for action in self.actions)

    @property
    def sets_aside(self) -> bool:
        """Whether its actions put the message back for later, by stall_and_wait or recycle: a stall to whoever reads the table."""
        return any(isinstance(s, StallAndWait) for action in self.actions for s in walk_statements(action.body)) or any(
            isinstance(e, Call) and e.name == "recycle" for action in self.actions for e in walk_exprs(action.body))


@dataclass(eq=False, kw_only=True)
class Machine(Node):
    """A controller. `decls` are the declarations of its body in order; all else below `params` is *resolved*."""

    name: str
    pairs: Pairs
    params: list[Param]
    decls: list[Node]
    types: list[Type] = field(default_factory=list)
    objects: list[ObjectDecl] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    in_ports: list[InPort] = field(default_factory=list)
    out_ports: list[OutPort] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    state_type: Optional[Type] = None
    event_type: Optional[Type] = None
    request_type_type: Optional[Type] = None
    entry_type: Optional[Type] = None
    tbe_type: Optional[Type] = None
    table: dict[tuple[str, str], Transition] = field(default_factory=dict)

    @property
    def short(self) -> str:
        return self.pairs.get("short", self.name)

    @property
    def states(self) -> list[State]:
        return self.state_type.states if self.state_type else []

    @property
    def events(self) -> list[Event]:
        return self.event_type.value_list if self.event_type else []

    @property
    def request_types(self) -> list[RequestType]:
        return self.request_type_type.value_list if self.request_type_type else []

    def param(self, name: str) -> Optional[Param]:
        return next((param for param in self.params if param.name == name), None)

    def function(self, name: str) -> list[Function]:
        return [function for function in self.functions if function.name == name]

    def initial_state(self) -> Optional[State]:
        """The state of a line that nobody has touched: the State type's default= pair, or else the first state."""
        if self.state_type is None or not self.states:
            return None
        default = self.state_type.pairs.get("default", "")
        for state in self.states:
            if default in (state.c_name, state.name):
                return state
        return self.states[0]

    def __repr__(self) -> str:
        return f"<Machine {self.name}>"


@dataclass(eq=False, kw_only=True)
class ProtocolDecl(Node):
    name: str


@dataclass(eq=False, kw_only=True)
class Include(Node):
    path: str


@dataclass(eq=False, kw_only=True)
class Program(Node):
    """A whole protocol. `decls` are the declarations of all files in order, includes spliced in; the rest is *resolved*."""

    name: str
    decls: list[Node]
    files: list[str]
    types: list[Type] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    globals: list[ObjectDecl] = field(default_factory=list)
    machines: list[Machine] = field(default_factory=list)
    void_type: Type = None  # type: ignore[assignment]
    ood_type: Type = None  # type: ignore[assignment]

    def type(self, name: str) -> Optional[Type]:
        return next((declared for declared in self.types if declared.name == name), None)

    def machine(self, name: str) -> Optional[Machine]:
        return next((machine for machine in self.machines if machine.name == name), None)

    def message_types(self) -> list[Type]:
        return [declared for declared in self.types if declared.is_message]
