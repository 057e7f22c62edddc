# SPDX-License-Identifier: BSD-3-Clause
"""Declarations of a program and its machines, other than types."""
from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from .expressions import Expr, Name
from .nodes import RESOLVED, Node, Pairs
from .statements import LocalVar, Stmt
from .types import Described, Field, Type, Typed, TypeRef, Variable

if TYPE_CHECKING:
    from .program import Machine


class Formal(Typed):
    """A formal parameter. `qualifier` is "", "PTR", "REF" or "CONST_REF"; "" means by value or const reference.
    `name` is None in prototypes that give types only."""

    name: str | None
    qualifier: str = ""
    default: str | int | float | bool | None = None

    @property
    def is_pointer(self) -> bool:
        return self.qualifier == "PTR" or self.type.is_handle


class Function(Node):
    """A function of the program or a machine, or a method of a type; external when `body` is None.
    *resolved*: owner (the Type of a method), machine; `hides_others` if a machine defines it, and the program or the runtime has
    other functions of its name."""

    name: str
    return_ref: TypeRef
    formals: list[Formal]
    pairs: Pairs
    body: list[Stmt] | None = None
    owner: Type | None = None
    machine: Machine | None = None
    synthetic: bool = False
    hides_others: bool = False

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


class Param(Described, Typed):
    """A parameter of a machine, settable from the machine description; message buffers are parameters too.
    `default` is an expression (always a Literal after resolution) or None."""

    pointer: bool
    default: Expr | None = None
    machine: Machine = RESOLVED

    @property
    def is_buffer(self) -> bool:
        return "buffer" in self.type.pairs or self.type.name in ("MessageBuffer", "WireBuffer")

    @property
    def network(self) -> str | None:
        """"To" (the machine sends), "From" (it receives) or None (not connected to the network)."""
        return self.pairs.get("network")

    @property
    def virtual_network(self) -> int | None:
        text = self.pairs.get("virtual_network")
        return int(text[:40]) if text is not None and text.isdecimal() else None  # Python reads only some thousand digits

    @property
    def vnet_type(self) -> str | None:
        return self.pairs.get("vnet_type")

    @property
    def is_ordered(self) -> bool:
        """Whether messages between two controllers keep their order. gem5 sets the order outside the protocol. A machine that
        says nothing about order for any of its buffers was written for an ordered network, so its buffers count as ordered."""
        declared = any("ordered" in param.pairs for param in self.machine.params)
        return self.pairs.get("ordered", "false" if declared else "true").lower() in ("true", "yes")


class ObjectDecl(Variable):
    """An object: a member variable of a machine, or a global of the prelude. `template` and `constructor` are raw
    pairs, e.g. "<L1Cache_TBE>" and "m_number_of_TBEs".
    *resolved*: machine, element (the type that `template` names when the machine declares it)."""

    machine: Machine | None = None
    element: Type | None = None

    @property
    def template(self) -> str | None:
        return self.pairs.get("template")

    @property
    def constructor(self) -> str | None:
        return self.pairs.get("constructor")


class Builtin(Node):
    """An implicit variable: in_msg, out_msg, address, cache_entry, tbe."""

    name: str
    type: Type
    is_pointer: bool = False


class Port(Node):
    """One end of a queue. `buffer` names a Param or ObjectDecl: a message buffer or a timer table."""

    name: str
    message_ref: TypeRef
    buffer: Name
    pairs: Pairs

    @property
    def message(self) -> Type:
        return self.message_ref.type


class InPort(Port):
    """A port that messages arrive through. Ports are polled in order of declaration, `index` is the position; `rank` (0 if not
    given) identifies the port when stalled messages are woken. *resolved*: rank, index, and the two stall handlers: functions
    that say, after a resource stall or a stall of the protocol, whether to poll all ports again at once."""

    body: list[Stmt]
    rank: int = 0
    index: int = -1
    rsc_stall_handler: Function | None = None
    prot_stall_handler: Function | None = None


class OutPort(Port):
    """A port that messages leave through."""


Resource: TypeAlias = OutPort | Param | ObjectDecl
"""Something of which an action needs free slots: an out_port, or a table or buffer by its name."""


Declaration: TypeAlias = Param | ObjectDecl | LocalVar | Formal | Field | InPort | OutPort | Builtin
"""What a name in an expression can stand for."""


class Action(Described):
    """A named list of statements. *resolved*: resources; `used` when some transition runs it."""

    body: list[Stmt]
    resources: dict[Resource, int] = field(default_factory=dict)
    used: bool = False
