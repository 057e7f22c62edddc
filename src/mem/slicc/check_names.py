# SPDX-License-Identifier: BSD-3-Clause
"""Errors about names that C++ reserves: generated code takes the names of a protocol's fields, parameters, variables, functions and
actions as they are. States, events and other values of enumerations may be such words, as the code puts their type before them. A
machine's parameters and variables must not have the names of other members of its controller (runtime_names.py), either."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from . import ast
from .errors import Diagnostics
from .runtime_names import MEMBERS

RESERVED = frozenset("""
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await co_return co_yield
    compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit
    export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template
    this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    NULL assert errno moscope std
""".split())

MOST_VALUES = 255


class _Named(Protocol):
    name: str
    loc: ast.Loc


def _of_block(block: list[ast.Stmt]) -> Iterator[tuple[str, _Named]]:
    for statement in ast.walk_statements(block):
        if isinstance(statement, ast.LocalVar):
            yield "variable", statement


def _of_functions(functions: list[ast.Function]) -> Iterator[tuple[str, _Named]]:
    for function in functions:
        if function.body is not None:
            yield "function", function
            yield from (("parameter", formal) for formal in function.formals if formal.name)  # type: ignore[misc]
            yield from _of_block(function.body)


def _enumerations(program: ast.Program, diagnostics: Diagnostics) -> None:
    """Reports values that share their C++ name, TYPE_VALUE, with another value, and enumerations with more values than a byte can
    distinguish."""
    names: dict[str, ast.EnumValue] = {}
    for type_ in [*program.types, *(type_ for machine in program.machines for type_ in machine.types)]:
        if not type_.is_enum:
            continue
        if len(type_.value_list) > MOST_VALUES:
            diagnostics.error(type_.loc, f"enumeration '{type_.name}': {len(type_.value_list)} values: expected at most {MOST_VALUES}")
        for value in type_.value_list:
            other = names.setdefault(value.c_name, value)
            if value.name == "NUM":
                diagnostics.error(value.loc, f"value 'NUM' of {type_}: the name of the number of values: expected another name")
            elif other is not value:
                diagnostics.error(value.loc, f"value '{value.name}' of {type_}: {value.c_name} in C++, as value '{other.name}' of "
                                  f"{other.owner}: expected another name")


def _of_types(types: list[ast.Type]) -> Iterator[tuple[str, _Named]]:
    for type_ in types:
        if type_.in_prelude:
            continue
        yield "type", type_
        yield from (("field", field) for field in type_.fields.values())
        for overloads in type_.methods.values():
            yield from _of_functions(overloads)


def _named(program: ast.Program) -> Iterator[tuple[str, _Named]]:
    yield from _of_types(program.types)
    yield from _of_functions(program.functions)
    for machine in program.machines:
        yield from _of_types(machine.types)
        yield from (("parameter", param) for param in machine.params)
        yield from (("object", decl) for decl in machine.objects)
        yield from _of_functions(machine.functions)
        for port in machine.in_ports:
            yield from _of_block(port.body)
        for action in machine.actions:
            yield "action", action
            yield from _of_block(action.body)


def check_names(program: ast.Program, diagnostics: Diagnostics) -> None:
    _enumerations(program, diagnostics)
    for what, declared in _named(program):
        if isinstance(declared, (ast.Param, ast.ObjectDecl)) and declared.name in MEMBERS:
            diagnostics.error(declared.loc, f"{what} '{declared.name}': a member of moscope's controllers: expected another name")
        if declared.name in RESERVED:
            diagnostics.error(declared.loc, f"{what} '{declared.name}': a reserved word of C++: expected another name")
