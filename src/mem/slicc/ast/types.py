# SPDX-License-Identifier: BSD-3-Clause
"""Types, and what they are made of."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Optional, Union

from .nodes import Node, Pairs

if TYPE_CHECKING:
    from .declarations import Function, Machine, ObjectDecl
    from .expressions import Expr


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
