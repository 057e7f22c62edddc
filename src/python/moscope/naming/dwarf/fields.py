# SPDX-License-Identifier: BSD-3-Clause
"""The field of a DWARF type that contains a byte: `[2].packets` (`btf` does the same for the kernel's types)."""

import re
from dataclasses import dataclass
from math import prod

from elftools.dwarf.die import DIE

from moscope.naming.dwarf.units import DEEPEST, Damaged, address, chain, children, number, text

ALIASES = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type", "DW_TAG_atomic_type")
RUST, NUMBERED = 0x1C, re.compile(r"__\d+\Z")  # DW_LANG_Rust; how its compiler names the fields of a tuple
FORTRAN = (0x07, 0x08, 0x0E, 0x22, 0x23, 0x2D)  # DW_LANG_Fortran77, 90, 95, 03, 08 and 18
BY_COLUMN = 1  # DW_ORD_col_major
AGGREGATES = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")
COMMON = "DW_TAG_common_block"  # of Fortran: its members are variables at addresses
POINTERS = ("DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type")
POINTER_SIZE = 8
BUFFER = re.compile(r"__aligned_(mem)?buf(fer)?<")  # bytes of a node of C++'s library that hold an object of the template's type
# Library types that users see as one object; their members are internal to the library.
WHOLE = re.compile(r"_*[aA]tomic\w*(<.*)?$|(recursive_|shared_|timed_)*mutex$|condition_variable\w*$"
                   r"|pthread_(mutex|rwlock|spinlock|cond|barrier)_t$")


@dataclass(frozen=True)
class Member:
    """`name` is empty for base classes and anonymous structures."""

    name: str
    first: int
    end: int
    type: DIE | None


@dataclass(frozen=True)
class Shape:
    """The parts of a type: members, or elements in one or more dimensions, or neither."""

    size: int = 0
    union: bool = False
    members: tuple[Member, ...] = ()
    element: DIE | None = None
    dimensions: tuple["Dimension", ...] = ()
    by_column: bool = False


@dataclass(frozen=True)
class Dimension:
    """One dimension of an array: its lowest index, and its number of elements (0: unknown)."""

    first: int
    count: int


def type_of(die: DIE) -> DIE | None:
    """The type of a variable, a member or an element; None for `void`."""
    owner = next((one for one in chain(die) if "DW_AT_type" in one.attributes), None)
    return owner.get_DIE_from_attribute("DW_AT_type") if owner else None


def template_type(die: DIE) -> DIE | None:
    """The first type among the template's parameters."""
    found = next((one for one in children(die) if one.tag == "DW_TAG_template_type_param"), None)
    return type_of(found) if found is not None else None


def title(die: DIE | None) -> str:
    """A type's name: `pthread_mutex_t`, `worker_stats`, `int *`; empty where it has none."""
    stars = ""
    for _ in range(DEEPEST):
        if die is None:
            return f"void{stars}"
        if name := text(die, "DW_AT_name"):
            return f"{name}{stars}"
        if die.tag in POINTERS:
            stars = " *" if not stars else f"{stars}*"
        elif die.tag not in ALIASES:
            return ""
        die = type_of(die)
    return ""


class Types:
    def __init__(self) -> None:
        self._shapes: dict[tuple[int, int], Shape] = {}

    def path(self, die: DIE | None, offset: int) -> str:
        """The field at an offset of a type: `[2].packets`. Where there is no member, it ends with the distance: `[2]+0x3c`."""
        return self._at(die, offset)[0]

    def type_at(self, die: DIE | None, offset: int) -> str:
        """The type of that field: `long`; of padding, that of the structure."""
        return title(self._at(die, offset)[1])

    def field_type(self, die: DIE | None, offset: int) -> DIE | None:
        return self._at(die, offset)[1]

    def _at(self, die: DIE | None, offset: int) -> tuple[str, DIE | None]:
        """The field at an offset of a type, and its type."""
        found, shape = "", self.shape(die)
        for _ in range(DEEPEST):
            if shape.element is not None:
                element = self.shape(shape.element)
                if not element.size:
                    break
                index, offset = divmod(offset, element.size)
                found += "".join(f"[{i}]" for i in _indices(index, shape))
                die, shape = shape.element, element
                continue
            if not shape.members:
                return found, die  # a scalar has no smaller parts
            member = self._covering(shape, offset)
            if member is None:
                break
            found += f".{member.name}" if member.name else ""
            die, shape, offset = member.type, self.shape(member.type), offset - member.first
        return f"{found}+{offset:#x}" if offset else found, die

    def shape(self, die: DIE | None) -> Shape:
        if die is None:
            return Shape()
        key = id(die.cu), die.offset
        if key not in self._shapes:
            self._shapes[key] = self._read(die)
        return self._shapes[key]

    def _read(self, die: DIE) -> Shape:
        one: DIE | None = die
        for _ in range(DEEPEST):
            if one is None:
                return Shape()
            if one.tag not in ALIASES:
                break
            if WHOLE.match(text(one, "DW_AT_name")):
                return Shape(self.shape(type_of(one)).size)
            one = type_of(one)
        else:
            raise Damaged("a type refers to itself")
        size = number(one, "DW_AT_byte_size") or 0
        if one.tag in AGGREGATES and not WHOLE.match(text(one, "DW_AT_name")):
            return Shape(size, one.tag == "DW_TAG_union_type", tuple(self._members(one, one.tag == "DW_TAG_union_type")))
        if one.tag == COMMON:
            return Shape(members=tuple(self._in_block(one)))
        if one.tag == "DW_TAG_array_type":
            if "DW_AT_data_location" in one.attributes:
                return Shape(size)  # a descriptor, which says where the elements are
            element = type_of(one)
            dimensions = tuple(_dimension(bound) for bound in children(one) if bound.tag == "DW_TAG_subrange_type")
            by_column = number(one, "DW_AT_ordering") == BY_COLUMN or language(one) in FORTRAN
            return Shape(size or self.shape(element).size * prod(each.count for each in dimensions), element=element,
                         dimensions=dimensions, by_column=by_column)
        return Shape(size or (POINTER_SIZE if one.tag in POINTERS else 0))

    def _members(self, die: DIE, union: bool) -> list[Member]:
        found = []
        for child in children(die):
            if child.tag not in ("DW_TAG_member", "DW_TAG_inheritance") or "DW_AT_declaration" in child.attributes:
                continue  # methods, nested types, static members
            bit = _first_bit(child, self.shape(type_of(child)).size)
            first = bit // 8 if bit is not None else number(child, "DW_AT_data_member_location")
            if first is None and "DW_AT_data_member_location" in child.attributes or first is None and not union and (
                    "DW_AT_external" in child.attributes):
                continue  # a virtual base class, which is found at run time, or a static member
            kind, bits = _held(type_of(child)), number(child, "DW_AT_bit_size")
            size = ((bit or 0) % 8 + bits + 7) // 8 if bits else self.shape(kind).size
            name = text(child, "DW_AT_name") if child.tag == "DW_TAG_member" else ""
            if NUMBERED.match(name) and language(child) == RUST:
                name = name.removeprefix("__")
            found.append(Member(name.split(".")[0], first or 0, (first or 0) + size, kind))
        return found

    def _in_block(self, block: DIE) -> list[Member]:
        found = [(at, child) for child in children(block) if (at := address(child)) is not None]
        base = min((at for at, _ in found), default=0)
        return [Member(text(child, "DW_AT_name"), at - base, at - base + self.shape(kind).size, kind)
                for at, child in found for kind in [type_of(child)]]

    def _covering(self, shape: Shape, offset: int) -> Member | None:
        """The member at an offset. In a union, one that has members itself is preferred; an empty base class is the last choice."""
        fits = [m for m in shape.members if m.first <= offset < m.end]
        open_ended = [m for m in shape.members if m.first == m.end <= offset and self.shape(m.type).element is not None]
        if shape.union:
            fits.sort(key=lambda m: not self.shape(m.type).members)
        else:
            fits.sort(key=lambda m: not m.name and not self.shape(m.type).members)
        return next(iter(fits or open_ended[-1:]), None)


def _held(kind: DIE | None) -> DIE | None:
    """A member's type; of a buffer for an object, the type of the object."""
    return (template_type(kind) or kind) if kind is not None and BUFFER.match(text(kind, "DW_AT_name")) else kind


def _first_bit(member: DIE, size: int) -> int | None:
    """The first bit of a bit field, counted from the beginning of its structure; None if the member is no bit field. `size`: bytes of
    its type. DWARF 2 and 3 count from the highest bit of the word that contains the field (DWARF 3, section 5.6.6)."""
    above, at, bits = (number(member, name) for name in ("DW_AT_bit_offset", "DW_AT_data_member_location", "DW_AT_bit_size"))
    if above is None or bits is None:
        return number(member, "DW_AT_data_bit_offset")
    return 8 * ((at or 0) + (number(member, "DW_AT_byte_size") or size)) - above - bits


def language(die: DIE) -> int | None:
    return number(die.cu.get_top_DIE(), "DW_AT_language")


def lowest(bound: DIE) -> int | None:
    """The lowest index of a dimension; None if it is known only at run time."""
    if "DW_AT_lower_bound" in bound.attributes:
        return number(bound, "DW_AT_lower_bound")
    return 1 if language(bound) in FORTRAN else 0


def _dimension(bound: DIE) -> Dimension:
    count, first = number(bound, "DW_AT_count"), lowest(bound)
    if count is None:
        upper = number(bound, "DW_AT_upper_bound")
        count = 0 if upper is None or first is None else upper + 1 - first
    return Dimension(first or 0, max(count, 0))


def _indices(index: int, shape: Shape) -> list[int]:
    """The index of an element in each dimension. Elements are numbered in memory order: the last dimension varies fastest, or, with
    `by_column`, the first one."""
    order, found = shape.dimensions if shape.by_column else shape.dimensions[::-1], []
    for one in order[:-1]:
        index, rest = divmod(index, one.count or index + 1)
        found.append(one.first + rest)
    found += [one.first + index for one in order[-1:]] or [index]
    return found if shape.by_column else found[::-1]
