# SPDX-License-Identifier: BSD-3-Clause
"""Where a variable is while a function runs: location lists, and expressions that are evaluated with the registers and the stack
of one call of the function (DWARF 5, sections 2.5 and 2.6)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from elftools.dwarf.die import DIE
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.dwarf.locationlists import BaseAddressEntry, LocationParser

from moscope.naming.dwarf.units import Units, number
from moscope.naming.unwind.state import BY_NUMBER

EVERYWHERE = (0, 1 << 64)
WORD = (1 << 64) - 1
OPERATORS: dict[str, Callable[[int, int], int]] = {
    "DW_OP_plus": lambda a, b: a + b, "DW_OP_minus": lambda a, b: a - b, "DW_OP_and": lambda a, b: a & b, "DW_OP_or": lambda a, b: a | b,
    "DW_OP_mul": lambda a, b: a * b, "DW_OP_shl": lambda a, b: a << b if b < 64 else 0, "DW_OP_shr": lambda a, b: a >> b}


def locations(units: Units, die: DIE, attribute: str = "DW_AT_location") -> list[tuple[int, int, list[int]]]:
    """Ranges [first, end) of code, each with the expression that is valid there. An expression that is valid everywhere has a
    range of all addresses."""
    found: Any = die.attributes.get(attribute)
    if found is None:
        return []
    parser = LocationParser(units.dwarf.location_lists())
    if not parser.attribute_has_location(found, die.cu["version"]):
        return []
    listed: Any = parser.parse_from_attribute(found, die.cu["version"], die)
    if not isinstance(listed, list):
        return [(*EVERYWHERE, listed.loc_expr)]
    base, entries = number(die.cu.get_top_DIE(), "DW_AT_low_pc") or 0, []
    for entry in listed:
        if isinstance(entry, BaseAddressEntry):
            base = entry.base_address
            continue
        start = 0 if getattr(entry, "is_absolute", False) else base
        entries.append((start + entry.begin_offset, start + entry.end_offset, entry.loc_expr))
    return entries


@dataclass(frozen=True)
class Context:
    """The state of one call of a function. `top`: its canonical frame address; `base`: its frame base, if known; `word`: reads a
    word of its stack."""

    registers: Mapping[str, int]
    top: int
    word: Callable[[int], int | None]
    base: int | None = None


class Expressions:
    def __init__(self, units: Units) -> None:
        self._parser = DWARFExprParser(units.dwarf.structs)
        self._parsed: dict[tuple[int, ...], list[Any]] = {}

    def operations(self, expression: list[int]) -> list[Any]:
        key = tuple(expression)
        if key not in self._parsed:
            self._parsed[key] = self._parser.parse_expr(expression)
        return self._parsed[key]

    def value(self, expression: list[int], of: Context) -> int | None:
        """The address or the number that an expression computes; None if the variable is not in memory or the expression cannot
        be evaluated."""
        stack: list[int] = []
        for operation in self.operations(expression):
            if not _do(operation.op_name, operation.args, stack, of):
                return None
        return stack[-1] if stack else None


def _do(name: str, args: list[int], stack: list[int], of: Context) -> bool:
    """Executes an operation; false if it is unknown or has no result."""
    value: int | None = None
    if name == "DW_OP_fbreg":
        value = None if of.base is None else of.base + args[0]
    elif name == "DW_OP_call_frame_cfa":
        value = of.top
    elif name == "DW_OP_bregx" or name.startswith("DW_OP_breg"):
        register, offset = args if name == "DW_OP_bregx" else (int(name.removeprefix("DW_OP_breg")), args[0])
        known = of.registers.get(BY_NUMBER[register]) if register < len(BY_NUMBER) else None
        value = None if known is None else known + offset
    elif name.startswith("DW_OP_lit"):
        value = int(name.removeprefix("DW_OP_lit"))
    elif name.startswith("DW_OP_const") and not name.startswith("DW_OP_const_"):
        value = args[0]
    elif not stack:
        return False
    elif name == "DW_OP_dup":
        value = stack[-1]
    elif name == "DW_OP_deref":
        value = of.word(stack.pop())
    elif name == "DW_OP_plus_uconst":
        value = stack.pop() + args[0]
    elif name in OPERATORS and len(stack) > 1:
        second = stack.pop()
        value = OPERATORS[name](stack.pop(), second)
    if value is None:
        return False
    stack.append(value & WORD)
    return True
