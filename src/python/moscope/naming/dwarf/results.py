# SPDX-License-Identifier: BSD-3-Clause
"""The type of the memory that a call has returned. It is the type to which the variable points that the compiler assigns the result
to (RAX: System V ABI for x86-64, section 3.2.3). The instructions after the call show where the result goes; the debug information
(DWARF 5, section 2.6) says which variable is there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from elftools.dwarf.die import DIE

from moscope.naming.dwarf.fields import AGGREGATES, ALIASES, POINTERS, Types, template_type, type_of
from moscope.naming.dwarf.locations import locations
from moscope.naming.dwarf.scopes import INLINED, SCOPES, VARIABLES, scopes
from moscope.naming.dwarf.units import DEEPEST, FUNCTION, Units, chain, children, text

FBREG, REG0 = 0x91, 0x50
IN_DWARF = (0, 2, 1, 3, 7, 6, 4, 5, *range(8, 16))  # registers in the order of instructions, with their numbers in DWARF
FRAME = 16  # the frame base is 16 bytes above what RBP points to
NEAR, LONGEST = 64, 15  # bytes
RAX, RSP, RBP = 0, 4, 5
ON_RSP = 0x24  # the byte after MOD R/M for an address relative to RSP (or R12) without an index
CHANGES_RAX = re.compile(rb"[\xb8\xe8]|[\x31\x33]\xc0|[\x8b\x8d][\x00-\x07\x40-\x47\x80-\x87\xc0-\xc7]", re.DOTALL)  # MOV, CALL, XOR, LEA
CALL = re.compile(rb"\xe8..([\x00-\x7f]\x00|[\x80-\xff]\xff)", re.DOTALL)  # of a function within 8 MiB
# Functions of C++'s library that allocate memory for the type that is their, or their class's, first template parameter.
MAKES = re.compile(r"make_unique(_for_overwrite)?<")
ALLOCATES, TRAITS, ALLOCATOR = "allocate", "allocator_traits<", re.compile(r"(__new_|new_)?allocator<")


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
    unknown. A wrong match is harmless: it names no variable that points to memory of that size. Stores relative to RSP are
    frequent, so they are followed only up to the first bytes that may be an instruction that changes RAX. Behind a call, RAX has
    another result."""
    call = code[:NEAR].find(b"\xe8")  # another call changes RAX
    yield Kept(pc, until=pc + (call if call >= 0 else NEAR))
    held, at = {RAX}, 0
    while (found := _move(code, pc, at, held)) is not None:
        at = found.after - pc
        yield found
        if found.address is None and found.offset is None:
            held.add(found.register)
    changes, calls = CHANGES_RAX.search(code, at), CALL.search(code, at)
    for n in range(at, NEAR):
        found = _move(code, pc, n, held - {RAX} if calls and n >= calls.end() else held)
        if found is not None and (found.address is not None or found.offset is not None and (
                found.register == RBP or found.register == RSP and (changes is None or n < changes.start()))):
            yield found


def _move(code: bytes, pc: int, at: int, held: set[int]) -> Kept | None:
    """Decodes MOV r/m64, r64 if its source is a register that holds the result."""
    now = code[at:at + LONGEST]
    if len(now) < LONGEST or now[0] & 0xfa != 0x48 or now[1] != 0x89 or (now[2] >> 3 & 7) + 2 * (now[0] & 4) not in held:
        return None
    mode, low = now[2] >> 6, now[2] & 7
    at_stack = low == RSP and mode != 3
    if at_stack and now[3] != ON_RSP:
        return None  # address with an index
    size = 4 if mode == 2 or mode == 0 and low == 5 else mode % 3
    first = 4 if at_stack else 3
    shift = int.from_bytes(now[first:first + size], "little", signed=True)
    after = pc + at + first + size
    if mode == 0 and low == 5:
        return Kept(after, address=after + shift)
    return Kept(after, register=low + 8 * (now[0] & 1), offset=None if mode == 3 else shift)


class Results:
    def __init__(self, units: Units, types: Types) -> None:
        self._units, self._types = units, types

    def type(self, code: bytes, pc: int, frame: int | None) -> DIE | None:
        """The type to which the result of a call that returns to `pc` points; None if it is unknown, or one byte in size.
        `frame`: the distance of the canonical frame address from RSP at `pc`; None if the function's frame is found by RBP."""
        if self._units.unit_of(pc) is None:
            return None
        around = list(scopes(self._units, pc))
        for where in kept(code, pc):
            found = self._target(self._variable(around, where, frame))
            if found is not None:
                return found
        return None

    def made(self, pc: int, depth: int) -> DIE | None:
        """The type of the memory that one of the innermost `depth` functions at an instruction allocates: T of make_unique<T>, or of
        the outermost `allocate` of an allocator<T>. Inlined functions count as functions."""
        if self._units.unit_of(pc) is None:
            return None
        functions = [one for one in scopes(self._units, pc) if one.tag in (INLINED, FUNCTION)]
        found: DIE | None = None
        for function in functions[::-1][:depth]:
            outer = self._allocates(function)
            if outer is None and found is not None:
                break
            found = outer or found
        return type_of(found) if found is not None and found.tag == "DW_TAG_array_type" else found

    def _allocates(self, function: DIE) -> DIE | None:
        """The type for which a function allocates memory. The innermost `allocate` may belong to another type, if the compiler or the
        linker has merged functions with the same code. `allocate` of allocator_traits<> has the allocator as its first parameter."""
        *_, declared = chain(function)
        name, owner = text(declared, "DW_AT_name"), declared.get_parent()
        if MAKES.match(name):
            return template_type(declared)
        if name != ALLOCATES or owner is None:
            return None
        if text(owner, "DW_AT_name").startswith(TRAITS):
            owner = next((type_of(one) for one in children(declared) if one.tag == "DW_TAG_formal_parameter"), None)
            for _ in range(DEEPEST):
                if owner is None or owner.tag not in (*POINTERS, *ALIASES):
                    break
                owner = type_of(owner)
        if owner is None or not ALLOCATOR.match(text(owner, "DW_AT_name")):
            return None
        base = next((type_of(one) for one in children(owner) if one.tag == "DW_TAG_inheritance"), None)
        return template_type(owner) or (template_type(base) if base is not None else None)  # GCC gives that of std::allocator to its base

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

    def _variable(self, around: list[DIE], where: Kept, frame: int | None) -> DIE | None:
        """The type of the variable that the result is kept in."""
        if where.address is not None:
            path = self._units.variable(where.address)
            return type_of(path[-1]) if path else None
        if where.register == RBP and where.offset is not None and frame is None:
            return self._in(around, where, [FBREG, where.offset - FRAME])
        if where.register == RSP and where.offset is not None:
            return None if frame is None else self._in(around, where, [FBREG, where.offset - frame])
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


