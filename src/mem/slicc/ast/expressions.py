# SPDX-License-Identifier: BSD-3-Clause
"""Expressions."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .nodes import RESOLVED, Node
from .types import EnumValue, Field, Type, TypeRef

if TYPE_CHECKING:
    from .declarations import Declaration, Function


class Expr(Node):
    """`depth` is the height of the expression's tree, kept to bound recursion. *resolved*: type, is_pointer."""

    type: Type = RESOLVED
    is_pointer: bool = False
    depth: int = 1


class Literal(Expr):
    """`value` is an int, float, bool or str; a string's escapes are as written, for C++ to interpret."""

    value: int | float | bool | str


class Name(Expr):
    """A variable, parameter or port by its name. *resolved*: kind (one of NAME_KINDS) and decl."""

    name: str
    kind: str = ""
    decl: Declaration | None = None


class EnumRef(Expr):
    """`Type:value`. *resolved*: value."""

    type_ref: TypeRef
    value_name: str
    value: EnumValue = RESOLVED


class Member(Expr):
    """`object.name`. *resolved*: field."""

    object: Expr
    name: str
    field: Field = RESOLVED


class _WithArgs(Expr):
    """A call by a name alone or by the name of a type."""

    name: str
    args: list[Expr]


class Call(_WithArgs):
    """A call of a function of the machine (function.machine set), of the program, or external (function.is_external)."""

    function: Function = RESOLVED


class MethodCall(Expr):
    """`object.name(args)`, or `object[args]` as lookup. `method.owner` is the type that declares it, perhaps the interface."""

    object: Expr
    name: str
    args: list[Expr]
    subscript: bool = False
    method: Function = RESOLVED


class ClassCall(_WithArgs):
    """`Type::name(args)`."""

    type_ref: TypeRef
    method: Function = RESOLVED


class Binary(Expr):
    """`left op right`."""

    left: Expr
    op: str
    right: Expr


class Unary(Expr):
    """`op` is one of ! - ++ --."""

    op: str
    operand: Expr


class IsValid(Expr):
    """`is_valid(x)`, or `is_invalid(x)` when `negated`."""

    operand: Expr
    negated: bool


class StaticCast(Expr):
    """`mode` is "ref", "pointer" or "value"."""

    type_ref: TypeRef
    mode: str = "ref"
    operand: Expr


class New(Expr):
    """`new Type`."""

    type_ref: TypeRef


class Ood(Expr):
    """The null handle."""
