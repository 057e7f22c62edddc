# SPDX-License-Identifier: BSD-3-Clause
"""Types, their values and fields, and what everything that has a type shares."""
from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from .nodes import RESOLVED, Node, Pairs

if TYPE_CHECKING:
    from .declarations import Function, ObjectDecl
    from .expressions import Expr
    from .program import Machine


class TypeRef(Node):
    """A type's name as written, `a::b` included. *resolved*: type."""

    name: str
    type: Type = RESOLVED


class Typed(Node):
    """A declaration that names its type."""

    type_ref: TypeRef

    @property
    def type(self) -> Type:
        return self.type_ref.type


class Described(Node):
    """A declaration with a name and `key=value` pairs, one of which may be its description."""

    name: str
    pairs: Pairs

    @property
    def desc(self) -> str:
        return self.pairs.get("desc", "")

    @property
    def short(self) -> str:
        """The short name, which the transition tables show; the name where none is given."""
        return self.pairs.get("short", self.name)


class Variable(Described, Typed):
    """What a field of a structure and an object of a machine or the program have in common. *resolved*: the defaults.

    `default_text` is the C++ text of the `default=` pair of the variable, or else of its type, or None. If it is None, a
    variable of an enumeration begins with none of the values, and any other is value-initialised. `default_value` is that text
    as a resolved expression (an EnumRef, a Literal, OOD for nullptr), or None when the text is not such a constant.
    """

    pointer: bool
    init: Expr | None = None
    default_text: str | None = None
    default_value: Expr | None = None


class Field(Variable):
    """A data member of a structure. *resolved*: owner; `names_type` if a type has the name of the field."""

    owner: Type = RESOLVED
    names_type: bool = False


class EnumValue(Described):
    """One value of an enumeration; `index` is its position. In the enumerations Event and RequestType it is the event or the
    request type itself. *resolved*: owner."""

    index: int = -1
    owner: Type = RESOLVED

    @property
    def c_name(self) -> str:
        """The name of the value in C++ text such as `default="L1Cache_State_I"`."""
        return f"{self.owner.c_name}_{self.name}"


class State(EnumValue):
    """A state of a machine; `permission` is the name of an AccessPermission value."""

    permission: str


Event: TypeAlias = EnumValue
RequestType: TypeAlias = EnumValue


class Type(Node):
    """A declared type: `kind` is "external", "struct", "enum", "state" or "builtin" (void and OOD's).

    A structure with `external="yes"` is of kind "struct" with `is_external`: only its interface is declared. `members` are
    Fields and Functions in order of declaration (ObjectDecls stand for fields before resolution).
    *resolved*: machine (None for types of the program), interface, the dictionaries; methods are lists of overloads.
    """

    name: str
    kind: str
    pairs: Pairs
    members: list[Field | Function | ObjectDecl] = field(default_factory=list)
    values: dict[str, EnumValue] = field(default_factory=dict)
    value_list: list[EnumValue] = field(default_factory=list)
    fields: dict[str, Field] = field(default_factory=dict)
    methods: dict[str, list[Function]] = field(default_factory=dict)
    machine: Machine | None = None
    interface: Type | None = None
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
