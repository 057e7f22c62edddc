# SPDX-License-Identifier: BSD-3-Clause
"""Variables on the stack: those of one call of a function, with their addresses, from DWARF debug information."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from elftools.dwarf.die import DIE

from moscope.naming.dwarf.fields import ALIASES, Types, lowest, type_of
from moscope.naming.dwarf.locations import Context, Expressions, locations
from moscope.naming.dwarf.scopes import INLINED, VARIABLES, function_name, scopes
from moscope.naming.dwarf.units import DEEPEST, FUNCTION, Units, chain, children, number, text
from moscope.naming.unwind.activations import Activation
from moscope.naming.unwind.state import BY_NUMBER

RBP = "rbp"
LARGEST = 64 << 20


@dataclass(frozen=True)
class Local:
    """Bytes [start, end) of `name` in a call of `function`."""

    start: int
    end: int
    function: str
    name: str
    type: DIE


class Locals:
    def __init__(self, units: Units, types: Types) -> None:
        self._units, self._types = units, types
        self._expressions = Expressions(units)
        self._scopes: dict[int, list[DIE]] = {}

    def of(self, one: Activation) -> list[Local]:
        """The variables that are in memory at the current instruction of a call, outermost block first."""
        if one.link not in self._scopes:
            self._scopes[one.link] = list(scopes(self._units, one.link))
        around = self._scopes[one.link]
        return list(self._all(one, around)) if around else []

    def _all(self, one: Activation, around: list[DIE]) -> Iterator[Local]:
        plain = Context(one.frame.registers, one.top, one.stack.word)
        context = replace(plain, base=self._base(around[0], one, plain))
        function = ""
        for scope in around:
            if scope.tag in (FUNCTION, INLINED):
                function = function_name(scope)
            for die in children(scope):
                if die.tag in VARIABLES and (found := self._local(die, function, one.link, context)):
                    yield found

    def _base(self, function: DIE, one: Activation, plain: Context) -> int | None:
        """The frame base of a function. If it is a register, the register holds it only after the function has set it up."""
        expression = self._at(function, one.link, "DW_AT_frame_base")
        operations = self._expressions.operations(expression) if expression else []
        name = operations[0].op_name if len(operations) == 1 else ""
        if not name.startswith("DW_OP_reg"):
            return self._expressions.value(expression, plain) if expression else None
        register = BY_NUMBER[int(name.removeprefix("DW_OP_reg")):][:1]
        tables = one.program.unwinding
        if register == (RBP,) and not (tables and tables.by_rbp(one.link)):
            return None
        return plain.registers.get(*register) if register else None

    def _at(self, die: DIE, pc: int, attribute: str = "DW_AT_location") -> list[int] | None:
        return next((expression for first, end, expression in locations(self._units, die, attribute) if first <= pc < end), None)

    def _local(self, die: DIE, function: str, pc: int, context: Context) -> Local | None:
        kind, name = type_of(die), next(filter(None, (text(one, "DW_AT_name") for one in chain(die))), "")
        expression = self._at(die, pc) if kind is not None and name else None
        start = self._expressions.value(expression, context) if expression else None
        size = self._size(kind, pc, context) if start is not None and kind is not None else None
        return Local(start, start + size, function, name, kind) if start is not None and size and kind is not None else None

    def _size(self, kind: DIE, pc: int, context: Context) -> int | None:
        """The size of a type, including arrays whose length is known only in the call."""
        if size := self._types.shape(kind).size:
            return size
        for _ in range(DEEPEST):
            if kind.tag not in ALIASES or (inside := type_of(kind)) is None:
                break
            kind = inside
        element = self._types.shape(type_of(kind)).size if kind.tag == "DW_TAG_array_type" else 0
        for bound in children(kind) if element else ():
            if bound.tag == "DW_TAG_subrange_type":
                count = self._count(bound, pc, context)
                if count is None or not 0 < count <= LARGEST:
                    return None
                element *= count
        return element if 0 < element <= LARGEST else None

    def _count(self, bound: DIE, pc: int, context: Context) -> int | None:
        first = lowest(bound)
        for attribute, more in (("DW_AT_count", 0), ("DW_AT_upper_bound", None if first is None else 1 - first)):
            found = bound.attributes.get(attribute)
            if found is None:
                continue
            if more is None:
                return None
            if found.form.startswith("DW_FORM_ref"):
                return None if (last := self._held(bound.get_DIE_from_attribute(attribute), pc, context)) is None else last + more
            expression = self._at(bound, pc, attribute) if found.form in ("DW_FORM_exprloc", "DW_FORM_block1") else None
            last = self._expressions.value(expression, context) if expression else number(bound, attribute)
            return None if last is None else last + more
        return None

    def _held(self, variable: DIE, pc: int, context: Context) -> int | None:
        """The value of a variable of one word."""
        expression = self._at(variable, pc)
        at = self._expressions.value(expression, context) if expression else None
        return None if at is None else context.word(at)
