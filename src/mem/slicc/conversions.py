# SPDX-License-Identifier: BSD-3-Clause
"""Type rules: which type converts to which, and what operators give. gem5 compares types by name, with a few exceptions. Here
numbers mix as in the generated C++, and a mixture is reported as not portable."""
from __future__ import annotations

from . import ast

NUMBERS = {"int", "uint32_t", "uint64_t", "Cycles", "Tick", "Addr", "NodeID", "bool"}
NARROW = {"int", "uint32_t", "NodeID"}
"""Numbers that have fewer bits than an Addr."""
COMPARISONS = {"==", "!=", "<", ">", "<=", ">="}
ONE_TYPE = {"Cycles": "Tick", "NodeID": "int", "Addr": "uint64_t", "Scalar": "uint64_t", "HTMSequencer": "Sequencer",
            "WireBuffer": "MessageBuffer"}
"""Pairs of SLICC types that are the same type in the generated C++: functions cannot be overloaded on them alone."""
_ARITHMETIC = {
    ("int", "int"): "int",
    ("Cycles", "Cycles"): "Cycles",
    ("Tick", "Tick"): "Tick",
    ("Addr", "Addr"): "Addr",
    ("Cycles", "int"): "Cycles",
    ("int", "Cycles"): "Cycles",
    ("Scalar", "int"): "Scalar",
    ("int", "bool"): "int",
    ("bool", "int"): "int",
    ("Addr", "int"): "Addr",
    ("int", "Addr"): "Addr",
}
_SHIFT = {("int", "int"): "int", ("Cycles", "int"): "Cycles"}

EXACT, INTERFACE, NUMERIC = 0, 1, 4
"""Costs of a conversion; see `cost`."""


def cost(actual: ast.Type, expected: ast.Type, actual_is_ood: bool = False) -> int | None:
    """The cost of a value of one type where another is expected; None when the types do not convert."""
    if actual is expected or "unknown" in (actual.kind, expected.kind):
        return EXACT
    if actual_is_ood:
        return INTERFACE if expected.is_handle or expected.name in ("PacketPtr", "RequestPtr") else None
    if actual.interface is expected:
        return INTERFACE
    if actual.name in NUMBERS and expected.name in NUMBERS and not loses_bits(actual, expected):
        return NUMERIC
    return None


def loses_bits(actual: ast.Type, expected: ast.Type) -> bool:
    """Whether a value is an address that the expected type cannot hold. gem5 rejects it, too."""
    return actual.name == "Addr" and expected.name in NARROW


def binary(op: str, left: ast.Type, right: ast.Type) -> tuple[str | None, bool]:
    """The name of the type that an operator gives, or None if it does not apply; and whether gem5 accepts it too."""
    pair = (left.name, right.name)
    numbers = left.name in NUMBERS and right.name in NUMBERS
    if op in ("&&", "||"):
        return ("bool", True) if pair == ("bool", "bool") else (None, True)
    if op in COMPARISONS:
        if left is right:
            return ("bool", True) if left.kind != "struct" or (op in ("==", "!=") and _is_equality_defined(left)) else (None, True)
        if pair in (("Addr", "int"), ("int", "Addr")):
            return "bool", True
        return ("bool", False) if numbers or _related(left, right) else (None, True)
    known = (_SHIFT if op in ("<<", ">>") else _ARITHMETIC).get(pair)
    if known is not None:
        return known, True
    if numbers:
        return (left.name if left.name not in ("int", "bool") else right.name if right.name != "bool" else "int"), False
    return None, True


def _is_equality_defined(type_: ast.Type) -> bool:
    """Handles are compared as pointers, and types of the engine have an operator; C++ has none for a protocol's own structures."""
    return type_.is_handle or type_.is_external


def operands(op: str, left: ast.Type, right: ast.Type) -> str:
    """The operands that an operator takes, in words."""
    if op in ("&&", "||"):
        return "bool and bool"
    if op in COMPARISONS and left is right:
        return "their fields"
    return "two values of one type" if op in COMPARISONS else "numbers"


def _related(left: ast.Type, right: ast.Type) -> bool:
    return left.is_handle and right.is_handle and (left.interface is right or right.interface is left)


def unary(op: str, operand: ast.Type) -> tuple[str | None, bool]:
    """As `binary`, for the prefix operators."""
    if op == "!":
        return ("bool", True) if operand.name == "bool" else (None, True)
    if op == "-":
        return (operand.name, operand.name == "int") if operand.name in NUMBERS - {"bool"} else (None, True)
    if operand.name == "Scalar":
        return "Scalar", op == "++"
    return (operand.name, False) if operand.name in NUMBERS - {"bool", "Addr"} else (None, True)
