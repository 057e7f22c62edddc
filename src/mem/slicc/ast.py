# SPDX-License-Identifier: BSD-3-Clause
"""The syntax tree of SLICC, and what the later layers may rely on.

One tree serves all layers. `parse.py` builds it, `resolve.py` fills in every attribute marked *resolved*, `check.py` and
`hits.py` only read it, and so do the emitters. The language is that of gem5 24 (its parser is the reference for syntax, its
symbol classes for meaning); there are no units here, latencies are cycles of the controller that runs the statement.

What holds after `resolve.resolve(program)` returned without an error
---------------------------------------------------------------------
* `Program.types`, `.functions`, `.globals` and `.machines` list what was declared, in order of declaration, the prelude first.
  Things declared within a machine are in that machine's lists instead, never in both.
* Every `TypeRef.type`, `Expr.type` and `Expr.is_pointer` is set. `Expr.type` is a `Type` object, one object per declared type: compare
  with `is`. The type of `OOD` is `Program.ood_type`; a call without result has `Program.void_type`.
* `is_pointer` says that the value is a nullable handle and that a member access goes through it: values of a type with
  `Type.is_handle` (the machine's TBE, everything with interface AbstractCacheEntry, AbstractCacheEntry itself),
  formals and locals declared `T * x`, `new T`, `static_cast(T, "pointer", x)`, calls of functions with `return_by_pointer="yes"`, `OOD`.
  A machine parameter or object is never `is_pointer`: whether it was declared with a star is `decl.pointer`.
* `Name.decl` is the declaration object and `Name.kind` one of NAME_KINDS; `EnumRef.value`, `Member.field`, `Call.function`,
  `MethodCall.method`, `ClassCall.method` are set. Overloads have been chosen: exact match first, then derived for
  interface, then among int, Cycles, Tick, uint32_t, uint64_t, NodeID, and bool for a number. Arguments were type-checked;
  no conversion nodes are inserted, an emitter compares the types itself.
* `x[y, ..]` is a `MethodCall` of `lookup` with `subscript=True`.
* `T x := e;` and `T x;` are `LocalVar` statements. `else if` chains are the `branches` of one `If`.
* Calls that are statements of their own in meaning are nodes of their own: `Trigger`, `StallPort`, `ErrorStmt`, `Assert`,
  `DebugPrint`, `Comment`, `SetEntry`, `SetTbe`. They do not occur as `Call`.
* `Machine.transitions` has exactly one `Transition` per (state, event) pair, lists expanded in order. `next_state` is a
  `State`, or None for `*` (ask getNextState(address) before the actions run). A transition without a next state names its
  own state. `Transition.is_stall`: one of its actions is called z_stall; nothing runs, the event stays at the head of its port.
* `Machine.in_ports` is in order of declaration, which is the order of polling; `rank` names the port for wake-ups only.
* `Action.resources` and `Transition.resources` map an `OutPort`, `TBE table object` or any other named place to the slots needed: one per enqueue
  or check_allocate in the text of the action, both arms of an `if` counted, summed over the actions. A transition
  starts only when all are there; otherwise it is a resource stall.
* Within the body of a structure's method, the structure's own fields are `Name`s of kind "field".

Declarations that have no body are external: the runtime, or the class behind an external type, provides them.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator, Optional, Union

NAME_KINDS = (
    "param",        # decl: Param of the machine
    "object",       # decl: ObjectDecl of the machine (TBE tables, timers, counters, ...)
    "global",       # decl: ObjectDecl of the program: version, machineID, clusterID, recycle_latency
    "local",        # decl: LocalVar
    "formal",       # decl: Formal
    "field",        # decl: Field, only in methods of structures
    "in_port",      # decl: InPort
    "out_port",     # decl: OutPort
    "in_msg",       # decl: Builtin; within peek
    "out_msg",      # decl: Builtin; within enqueue and defer_enqueueing
    "address",      # decl: Builtin; within actions
    "cache_entry",  # decl: Builtin; within actions of machines with an Entry type
    "tbe",          # decl: Builtin; within actions of machines with a TBE type
)


@dataclass(frozen=True)
class Loc:
    """A place in a source file; line and column count from one."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(eq=False, kw_only=True)
class Node:
    """What every node has. `depth` is the height of an expression tree, kept to bound recursion."""

    loc: Loc


Pairs = dict[str, str]
"""`key=value` and `key="value"` pairs of a declaration; a lone string is the key "short"."""


# ---------------------------------------------------------------------------------------------------------------- types


@dataclass(eq=False, kw_only=True)
class TypeRef(Node):
    """A type's name as written, `a::b` included. *resolved*: type."""

    name: str
    type: "Type" = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class EnumValue(Node):
    """One value of an enumeration; `index` is its position. For the Event and RequestType enumerations it is the event
    or request type itself. *resolved*: owner."""

    name: str
    pairs: Pairs
    index: int = -1
    owner: "Type" = None  # type: ignore[assignment]

    @property
    def desc(self) -> str:
        return self.pairs.get("desc", "")

    @property
    def c_name(self) -> str:
        """The name of the value in C++ text such as `default="L1Cache_State_I"`."""
        return f"{self.owner.c_name}_{self.name}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


@dataclass(eq=False, kw_only=True)
class State(EnumValue):
    """A state of a machine; `permission` is the name of an AccessPermission value."""

    permission: str

    __repr__ = EnumValue.__repr__


Event = EnumValue
RequestType = EnumValue


@dataclass(eq=False, kw_only=True)
class Field(Node):
    """A data member of a structure. `init` only occurs in `global` structures. *resolved*: owner, default_value.

    `default_text` is the C++ text of the `default=` pair of the field, or else of its type, or None: the field is then
    value-initialised. `default_value` is that text as a resolved expression (an EnumRef, a Literal, OOD for nullptr), or None when the
    text is not such a constant.
    """

    name: str
    type_ref: TypeRef
    pointer: bool
    pairs: Pairs
    init: Optional["Expr"] = None
    owner: "Type" = None  # type: ignore[assignment]
    default_text: Optional[str] = None
    default_value: Optional["Expr"] = None

    @property
    def type(self) -> "Type":
        return self.type_ref.type

    @property
    def desc(self) -> str:
        return self.pairs.get("desc", "")


@dataclass(eq=False, kw_only=True)
class Type(Node):
    """A declared type: `kind` is "external", "struct", "enum", "state" or "builtin" (void and OOD's).

    A structure with `external="yes"` is of kind "struct" with `is_external`: only its interface is declared.
    *resolved*: machine (None for types of the program), interface, the dictionaries; methods are lists of overloads. `members` are Fields
    and Functions in order of declaration (ObjectDecls stand for fields before resolution).
    """

    name: str
    kind: str
    pairs: Pairs
    members: list[Union[Field, "Function", "ObjectDecl"]] = field(default_factory=list)
    values: dict[str, EnumValue] = field(default_factory=dict)
    value_list: list[EnumValue] = field(default_factory=list)
    fields: dict[str, Field] = field(default_factory=dict)
    methods: dict[str, list["Function"]] = field(default_factory=dict)
    machine: Optional["Machine"] = None
    interface: Optional["Type"] = None
    in_prelude: bool = False

    @property
    def is_enum(self) -> bool:
        return self.kind in ("enum", "state")

    @property
    def is_external(self) -> bool:
        return "external" in self.pairs

    @property
    def is_primitive(self) -> bool:
        return "primitive" in self.pairs

    @property
    def is_message(self) -> bool:
        return self.pairs.get("interface") == "Message"

    @property
    def is_entry(self) -> bool:
        """A cache or directory entry: has the interface AbstractCacheEntry."""
        return self.pairs.get("interface") == "AbstractCacheEntry"

    @property
    def is_handle(self) -> bool:
        """Values of this type are nullable pointers to entries or TBEs."""
        return self.is_entry or self.name in ("TBE", "AbstractCacheEntry")

    @property
    def is_in_port_buffer(self) -> bool:
        return "inport" in self.pairs

    @property
    def is_out_port_buffer(self) -> bool:
        return "outport" in self.pairs

    @property
    def c_name(self) -> str:
        """The name under which gem5's C++ snippets (template=, default=) know the type."""
        if self.machine is None:
            return self.name
        if self.is_external or self.is_primitive:
            return self.pairs.get("external_name", self.name)
        return f"{self.machine.name}_{self.name}"

    @property
    def states(self) -> list[State]:
        return [value for value in self.value_list if isinstance(value, State)]

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Type {self.c_name}>"


# --------------------------------------------------------------------------------------------------------- declarations


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


# ---------------------------------------------------------------------------------------------------------- expressions


@dataclass(eq=False, kw_only=True)
class Expr(Node):
    type: Type = None  # type: ignore[assignment]
    is_pointer: bool = False
    depth: int = 1


@dataclass(eq=False, kw_only=True)
class Literal(Expr):
    """`value` is an int, float, bool or str; a string's escapes are as written, for C++ to interpret."""

    value: Union[int, float, bool, str]


@dataclass(eq=False, kw_only=True)
class Name(Expr):
    name: str
    kind: str = ""
    decl: object = None


@dataclass(eq=False, kw_only=True)
class EnumRef(Expr):
    type_ref: TypeRef
    value_name: str
    value: EnumValue = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class Member(Expr):
    object: Expr
    name: str
    field: Field = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class Call(Expr):
    """A call of a function of the machine (function.machine set), of the program, or external (function.is_external)."""

    name: str
    args: list[Expr]
    function: Function = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class MethodCall(Expr):
    """`object.name(args)`, or `object[args]` as lookup. `method.owner` is the type that declares it, perhaps the interface."""

    object: Expr
    name: str
    args: list[Expr]
    subscript: bool = False
    method: Function = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class ClassCall(Expr):
    """`Type::name(args)`."""

    type_ref: TypeRef
    name: str
    args: list[Expr]
    method: Function = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class Binary(Expr):
    op: str
    left: Expr
    right: Expr


@dataclass(eq=False, kw_only=True)
class Unary(Expr):
    """`op` is one of ! - ++ --."""

    op: str
    operand: Expr


@dataclass(eq=False, kw_only=True)
class IsValid(Expr):
    """`is_valid(x)`, or `is_invalid(x)` when `negated`."""

    operand: Expr
    negated: bool


@dataclass(eq=False, kw_only=True)
class StaticCast(Expr):
    """`mode` is "ref", "pointer" or "value"."""

    type_ref: TypeRef
    mode: str
    operand: Expr


@dataclass(eq=False, kw_only=True)
class New(Expr):
    type_ref: TypeRef


@dataclass(eq=False, kw_only=True)
class Ood(Expr):
    """The null handle."""


# ----------------------------------------------------------------------------------------------------------- statements


@dataclass(eq=False, kw_only=True)
class Stmt(Node):
    pass


@dataclass(eq=False, kw_only=True)
class ExprStmt(Stmt):
    expr: Expr


@dataclass(eq=False, kw_only=True)
class Assign(Stmt):
    target: Expr
    value: Expr


@dataclass(eq=False, kw_only=True)
class LocalVar(Stmt):
    """`T x;` or `T x := init;`. Visible to the end of the enclosing block. It is its own declaration object."""

    name: str
    type_ref: TypeRef
    init: Optional[Expr] = None

    @property
    def type(self) -> Type:
        return self.type_ref.type

    @property
    def is_pointer(self) -> bool:
        return self.type.is_handle


@dataclass(eq=False, kw_only=True)
class If(Stmt):
    """`branches` are (condition, block) in order; `otherwise` is the final else's block or None."""

    branches: list[tuple[Expr, list[Stmt]]]
    otherwise: Optional[list[Stmt]]


@dataclass(eq=False, kw_only=True)
class Peek(Stmt):
    """Gives the head of the port's queue as `in_msg`. pairs: block_on, wake_up name an Addr field of the message."""

    port: Name
    message_ref: TypeRef
    pairs: Pairs
    body: list[Stmt]
    in_msg: Builtin = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class Enqueue(Stmt):
    """Builds `out_msg` and sends it `latency` cycles (default 1) later. `bypass` is the strict-FIFO bypass flag."""

    port: Name
    message_ref: TypeRef
    latency: Optional[Expr]
    bypass: Optional[Expr]
    body: list[Stmt]
    out_msg: Builtin = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class DeferEnqueue(Stmt):
    port: Name
    message_ref: TypeRef
    body: list[Stmt]
    out_msg: Builtin = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class StallAndWait(Stmt):
    port: Name
    address: Name


@dataclass(eq=False, kw_only=True)
class WakeupPort(Stmt):
    port: Name
    address: Name


@dataclass(eq=False, kw_only=True)
class CheckAllocate(Stmt):
    table: Name


@dataclass(eq=False, kw_only=True)
class CheckNextCycle(Stmt):
    pass


@dataclass(eq=False, kw_only=True)
class CheckStopSlots(Stmt):
    port: Name
    first: str
    second: str


@dataclass(eq=False, kw_only=True)
class CheckProbe(Stmt):
    """check_on_cache_probe: when `address` is blocked by this very port, delay the head and leave the port."""

    port: Name
    address: Name


@dataclass(eq=False, kw_only=True)
class Return(Stmt):
    value: Expr


@dataclass(eq=False, kw_only=True)
class Trigger(Stmt):
    """trigger(event, address[, entry][, tbe]) in an in_port; `entry` and `tbe` are there when the machine has the type."""

    event: Expr
    address: Expr
    entry: Optional[Expr]
    tbe: Optional[Expr]
    in_port: InPort


@dataclass(eq=False, kw_only=True)
class StallPort(Stmt):
    """stallPort(): look at the ports again in the next cycle."""


@dataclass(eq=False, kw_only=True)
class ErrorStmt(Stmt):
    """error(message): a protocol error, never returns."""

    message: Expr


@dataclass(eq=False, kw_only=True)
class Assert(Stmt):
    condition: Expr


@dataclass(eq=False, kw_only=True)
class DebugPrint(Stmt):
    """DPRINTF(flag, format, args..) or, with `flag` None, DPRINTFN."""

    flag: Optional[str]
    format: str
    args: list[Expr]


@dataclass(eq=False, kw_only=True)
class Comment(Stmt):
    """APPEND_TRANSITION_COMMENT(value)."""

    value: Expr


@dataclass(eq=False, kw_only=True)
class SetEntry(Stmt):
    """set_cache_entry(value); unset_cache_entry() has `value` None."""

    value: Optional[Expr]


@dataclass(eq=False, kw_only=True)
class SetTbe(Stmt):
    """set_tbe(value); unset_tbe() has `value` None."""

    value: Optional[Expr]


# -------------------------------------------------------------------------------------------------------------- walking


def child_exprs(node: Node) -> Iterator[Expr]:
    """The expressions directly below an expression or statement, in order of evaluation; not those of nested blocks."""
    match node:
        case Member(object=base):
            yield base
        case Call(args=args) | ClassCall(args=args) | DebugPrint(args=args):
            yield from args
        case MethodCall(object=base, args=args):
            yield base
            yield from args
        case Binary(left=left, right=right):
            yield left
            yield right
        case Unary(operand=operand) | IsValid(operand=operand) | StaticCast(operand=operand):
            yield operand
        case ExprStmt(expr=expr):
            yield expr
        case Assign(target=target, value=value):
            yield target
            yield value
        case LocalVar(init=init):
            if init is not None:
                yield init
        case If(branches=branches):
            for condition, _ in branches:
                yield condition
        case Enqueue(latency=latency, bypass=bypass, port=port):
            yield port
            if latency is not None:
                yield latency
            if bypass is not None:
                yield bypass
        case Peek(port=port) | DeferEnqueue(port=port) | CheckStopSlots(port=port):
            yield port
        case StallAndWait(port=port, address=address) | WakeupPort(port=port, address=address) | CheckProbe(
            port=port, address=address
        ):
            yield port
            yield address
        case CheckAllocate(table=table):
            yield table
        case Return(value=value) | Comment(value=value):
            yield value
        case SetEntry(value=value) | SetTbe(value=value):
            if value is not None:
                yield value
        case Trigger(event=event, address=address, entry=entry, tbe=tbe):
            yield event
            yield address
            if entry is not None:
                yield entry
            if tbe is not None:
                yield tbe
        case ErrorStmt(message=message):
            yield message
        case Assert(condition=condition):
            yield condition


def child_blocks(statement: Stmt) -> Iterator[list[Stmt]]:
    """The blocks nested directly in a statement."""
    match statement:
        case If(branches=branches, otherwise=otherwise):
            for _, block in branches:
                yield block
            if otherwise is not None:
                yield otherwise
        case Peek(body=body) | Enqueue(body=body) | DeferEnqueue(body=body):
            yield body


def walk_statements(block: list[Stmt]) -> Iterator[Stmt]:
    """Every statement of a block, nested ones after the statement that holds them."""
    for statement in block:
        yield statement
        for inner in child_blocks(statement):
            yield from walk_statements(inner)


def walk_exprs(block: list[Stmt]) -> Iterator[Expr]:
    """Every expression of a block, outer before inner."""
    for statement in walk_statements(block):
        for expr in child_exprs(statement):
            yield from walk_expr(expr)


def walk_expr(expr: Expr) -> Iterator[Expr]:
    """An expression and all below it."""
    yield expr
    for child in child_exprs(expr):
        yield from walk_expr(child)
