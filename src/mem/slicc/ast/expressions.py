# SPDX-License-Identifier: BSD-3-Clause
"""Expressions."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from .nodes import Node
from .types import EnumValue, Field, Type, TypeRef

if TYPE_CHECKING:
    from .declarations import Function


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
