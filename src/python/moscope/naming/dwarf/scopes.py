# SPDX-License-Identifier: BSD-3-Clause
"""The function and the blocks that an instruction belongs to, in DWARF debug information."""

from bisect import bisect_right
from collections.abc import Iterator

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE

from moscope.naming import demangle
from moscope.naming.dwarf.units import DEEPEST, FUNCTION, Units, chain, children, text

SCOPES = ("DW_TAG_namespace", "DW_TAG_module", "DW_TAG_structure_type", "DW_TAG_class_type")
INLINED = "DW_TAG_inlined_subroutine"
BLOCKS = (INLINED, "DW_TAG_lexical_block")
VARIABLES = ("DW_TAG_variable", "DW_TAG_formal_parameter")
LINKAGE = ("DW_AT_linkage_name", "DW_AT_MIPS_linkage_name")


def function_name(die: DIE) -> str:
    """Of a function or an inlined copy of one."""
    for attribute in (*LINKAGE, "DW_AT_name"):
        for one in chain(die):
            if found := text(one, attribute):
                return demangle.function(found)
    return "?"


def covers(units: Units, die: DIE, pc: int) -> bool:
    return any(first <= pc < end for first, end in units.ranges(die))


def scopes(units: Units, pc: int) -> Iterator[DIE]:
    """The function of an instruction and the blocks in it that the instruction belongs to, outermost first."""
    unit = units.unit_of(pc)
    inside = _function(units, unit, pc) if unit else None
    for _ in range(DEEPEST):
        if inside is None:
            return
        yield inside
        inside = next((one for one in children(inside) if one.tag in BLOCKS and covers(units, one, pc)), None)


def _function(units: Units, unit: CompileUnit, pc: int) -> DIE | None:
    known = units.functions.get(unit.cu_offset)
    if known is None:
        found = ((first, end, die) for die in functions(unit.get_top_DIE(), 0) for first, end in units.ranges(die))
        known = units.functions[unit.cu_offset] = sorted(found, key=lambda one: one[0])
    at = bisect_right(known, pc, key=lambda one: one[0]) - 1
    return known[at][2] if at >= 0 and pc < known[at][1] else None


def functions(scope: DIE, depth: int) -> Iterator[DIE]:
    for child in children(scope):
        if child.tag == FUNCTION:
            yield child
        elif child.tag in SCOPES and depth < DEEPEST:
            yield from functions(child, depth + 1)
