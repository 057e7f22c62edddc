# SPDX-License-Identifier: BSD-3-Clause
"""The type of the memory that a call has returned. It is the type to which the variable points that the compiler assigns the result
to (RAX: System V ABI for x86-64, section 3.2.3). The instructions after the call show where the result goes; the debug information
(DWARF 5, section 2.6) says which variable is there."""

from collections.abc import Iterator
from dataclasses import dataclass

from elftools.dwarf.die import DIE

from moscope.naming.dwarf.fields import AGGREGATES, ALIASES, POINTERS, Types, type_of
from moscope.naming.dwarf.locations import locations
from moscope.naming.dwarf.scopes import SCOPES, VARIABLES, scopes
from moscope.naming.dwarf.units import DEEPEST, Units, children, text

FBREG, REG0 = 0x91, 0x50
IN_DWARF = (0, 2, 1, 3, 7, 6, 4, 5, *range(8, 16))  # registers in the order of instructions, with their numbers in DWARF
FRAME = 16  # the frame base is 16 bytes above what RBP points to
NEAR, LONGEST = 64, 15  # bytes
RAX, RSP, RBP = 0, 4, 5


@dataclass(frozen=True)
class Kept:
    """Where the result goes: to the `address` of a variable, or to `offset` from the address in `register`, or else into
    `register`. `after`: the address of the next instruction."""

    after: int
    address: int | None = None
    register: int = RAX
    offset: int | None = None
    until: int = 0  # it stays there up to this address; 0: not known


def kept(code: bytes, pc: int) -> Iterator[Kept]:
    """Where the code at `pc` puts RAX: first the places to which the first instructions move it, then later stores to variables
    from a register that holds it. The later stores are found at any byte, because the lengths of the instructions between are
    unknown. A wrong match is harmless: it names no variable that points to memory of that size."""
    call = code[:NEAR].find(b"\xe8")  # another call changes RAX
    yield Kept(pc, until=pc + (call if call >= 0 else NEAR))
    held, at = {RAX}, 0
    while (found := _move(code, pc, at, held)) is not None:
        at = found.after - pc
        yield found
        if found.address is None and found.offset is None:
            held.add(found.register)
    for n in range(at, NEAR):
        found = _move(code, pc, n, held)
        if found is not None and (found.address is not None or found.register == RBP and found.offset is not None):
            yield found


def _move(code: bytes, pc: int, at: int, held: set[int]) -> Kept | None:
    """Decodes MOV r/m64, r64 if its source is a register that holds the result."""
    now = code[at:at + LONGEST]
    if len(now) < LONGEST or now[0] & 0xfa != 0x48 or now[1] != 0x89 or (now[2] >> 3 & 7) + 2 * (now[0] & 4) not in held:
        return None
    mode, low = now[2] >> 6, now[2] & 7
    if low == RSP and mode != 3:
        return None  # address with an index, or relative to the stack pointer
    size = 4 if mode == 2 or mode == 0 and low == 5 else mode % 3
    shift = int.from_bytes(now[3:3 + size], "little", signed=True)
    after = pc + at + 3 + size
    if mode == 0 and low == 5:
        return Kept(after, address=after + shift)
    return Kept(after, register=low + 8 * (now[0] & 1), offset=None if mode == 3 else shift)


class Results:
    def __init__(self, units: Units, types: Types) -> None:
        self._units, self._types = units, types

    def type(self, code: bytes, pc: int) -> DIE | None:
        """The type to which the result of a call that returns to `pc` points; None if it is unknown, or one byte in size."""
        if self._units.unit_of(pc) is None:
            return None
        around = list(scopes(self._units, pc))
        for where in kept(code, pc):
            found = self._target(self._variable(around, where))
            if found is not None:
                return found
        return None

    def named(self, name: str, pc: int) -> DIE | None:
        """The type with this name in the unit of an instruction."""
        unit = self._units.unit_of(pc)
        return self._find(unit.get_top_DIE(), name.split("::"), 0) if unit else None

    def _find(self, scope: DIE, parts: list[str], depth: int) -> DIE | None:
        for child in children(scope):
            if text(child, "DW_AT_name") == parts[0]:
                if len(parts) == 1 and child.tag in (*AGGREGATES, *ALIASES, "DW_TAG_base_type") and self._types.shape(child).size:
                    return child
                if len(parts) > 1 and child.tag in SCOPES and depth < DEEPEST and (found := self._find(child, parts[1:], depth + 1)):
                    return found
        return None

    def _variable(self, around: list[DIE], where: Kept) -> DIE | None:
        """The type of the variable that the result is kept in."""
        if where.address is not None:
            path = self._units.variable(where.address)
            return type_of(path[-1]) if path else None
        if where.register == RBP and where.offset is not None:
            return self._in(around, where, [FBREG, where.offset - FRAME])
        found = self._in(around, where, [REG0 + IN_DWARF[where.register]])
        if found is None or where.offset is None:
            return found
        return self._types.field_type(self._pointee(found), where.offset)  # a field of the object to which the register points

    def _in(self, around: list[DIE], where: Kept, location: list[int]) -> DIE | None:
        """The type of the variable at a location; of several, the one that is there first."""
        found = [(start, -depth, one) for depth, scope in enumerate(around) for one in children(scope) if one.tag in VARIABLES
                 for start, there in self._locations(one, where.after, where.until) if there == location]
        return type_of(min(found, key=lambda one: one[:2])[2]) if found else None

    def _locations(self, variable: DIE, pc: int, until: int) -> list[tuple[int, list[int]]]:
        """The addresses from which on a variable has a location, among those that are valid at `pc` or up to `until`:
        [DW_OP_fbreg, offset] or [DW_OP_regN]."""
        return [(max(start, pc), _plain(expression)) for start, end, expression in locations(self._units, variable)
                if start <= max(pc, until) and pc < end]

    def _pointee(self, die: DIE | None) -> DIE | None:
        for one in chain_of_types(die):
            if one.tag in POINTERS:
                return type_of(one)
        return None

    def _target(self, die: DIE | None) -> DIE | None:
        found = self._pointee(die)
        return found if found is not None and self._types.shape(found).size > 1 else None


def chain_of_types(die: DIE | None) -> Iterator[DIE]:
    """A type, then the types for which it is another name."""
    for _ in range(DEEPEST):
        if die is None:
            return
        yield die
        if die.tag not in ALIASES:
            return
        die = type_of(die)


def _plain(expression: list[int]) -> list[int]:
    """[DW_OP_fbreg, offset] with the offset decoded; other expressions are unchanged."""
    if not expression or expression[0] != FBREG:
        return expression
    value = shift = 0
    for byte in expression[1:]:
        value |= (byte & 0x7f) << shift
        shift += 7
        if not byte & 0x80:
            return [FBREG, value - (1 << shift) if byte & 0x40 else value]
    return expression


