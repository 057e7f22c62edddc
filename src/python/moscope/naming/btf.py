# SPDX-License-Identifier: BSD-3-Clause
"""Types of a kernel, from its BPF Type Format section (Linux, Documentation/bpf/btf.rst): layouts of structures, the
types of per-CPU variables, values of enumerations.

`field_at` goes from a type and an offset to the name of the member there; `find` from a path of member names to an
offset. Offsets and sizes are in bytes. The members of an unnamed member count as members of the outer type.
"""

import struct
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT = range(1, 12)
FUNC, FUNC_PROTO, VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = range(12, 20)
PASS_THROUGH = {TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG}
POINTER_SIZE = 8

# Types that people know by these names; the names of their members would add nothing.
WHOLE = {"spinlock", "raw_spinlock", "qspinlock", "qrwlock", "rwlock_t", "atomic_t", "atomic64_t", "atomic_long_t",
         "refcount_struct", "kref", "seqcount", "seqcount_spinlock", "list_head", "hlist_node", "hlist_head", "callback_head",
         "rb_node", "hlist_bl_node", "kuid_t", "kgid_t", "cpumask"}


class Unreadable(Exception):
    """Memory is not mapped, the kernel lacks a symbol or type, or a list does not end."""


class NoType(Unreadable):
    """The blob is damaged, or has no type or member of the wanted name."""


class Type(NamedTuple):
    """`size` is the size in bytes for types that have one of their own, otherwise the number of the type to which it refers."""

    kind: int
    name: str
    members: int
    flag: bool
    size: int
    at: int


class Member(NamedTuple):
    name: str
    type: int
    bit: int
    bits: int  # of a bit field; 0 for other members


@dataclass(frozen=True)
class Field:
    """The field at an offset. `rest` is the distance of the offset from the beginning of the field."""

    path: str
    type: int
    rest: int


class Btf:
    def __init__(self, data: bytes) -> None:
        self._types: list[Type] = [Type(0, "void", 0, False, 0, 0)]
        self._by_name: dict[tuple[int, str], int] = {}
        self.variables: dict[str, int] = {}
        if not data:
            return
        try:
            magic, _, _, header, type_at, type_size, text_at, text_size = struct.unpack_from("<HBBIIIII", data)
            if magic != 0xEB9F:
                raise NoType(f"the magic number of BTF is 0xeb9f, here it is {magic:#x}")
            wanted = header + max(type_at + type_size, text_at + text_size)
            if wanted > len(data):
                raise NoType(f"it has {len(data)} of {wanted} bytes")
            self._text = data[header + text_at : header + text_at + text_size]
            self._data = data[header + type_at : header + type_at + type_size]
            self._index()
        except struct.error as error:
            raise NoType("a record of a type is not whole") from error

    def _index(self) -> None:
        unpack, add = struct.Struct("<III").unpack_from, self._types.append
        entry = {INT: 4, ARRAY: 12, VAR: 4, DECL_TAG: 4}
        each = {STRUCT: 12, UNION: 12, ENUM: 8, FUNC_PROTO: 8, DATASEC: 12, ENUM64: 12}
        at, data, end = 0, self._data, len(self._data)
        while at < end:
            name, info, size = unpack(data, at)
            kind, count = info >> 24 & 31, info & 0xFFFF
            if kind == 0 or kind > ENUM64:
                raise NoType(f"there is no kind {kind} of types")
            at += 12
            label = self._label(name)
            number = len(self._types)
            add(Type(kind, label, count, bool(info >> 31), size, at))
            if label and kind in (STRUCT, UNION, ENUM, ENUM64, TYPEDEF, INT):
                self._by_name.setdefault((kind, label), number)
            if kind == VAR:
                self.variables.setdefault(label, size)
            at += entry.get(kind, 0) + each.get(kind, 0) * count
        if at > end:
            raise NoType("the last type is not whole")

    def _label(self, at: int) -> str:
        end = self._text.find(b"\0", at)
        if end < 0:
            raise NoType(f"the text at {at} does not end")
        return self._text[at:end].decode(errors="replace")

    def __bool__(self) -> bool:
        return len(self._types) > 1

    def type(self, number: int) -> Type:
        if not 0 <= number < len(self._types):
            raise NoType(f"there is no type {number}")
        return self._types[number]

    def named(self, name: str) -> int:
        """The number of a structure, union, typedef or basic type of this name (with or without "struct ")."""
        bare = name.removeprefix("struct ").removeprefix("union ")
        for kind in (STRUCT, UNION, TYPEDEF, INT):
            if (kind, bare) in self._by_name:
                return self._by_name[kind, bare]
        raise NoType(f"there is no type `{name}`")

    def __contains__(self, name: str) -> bool:
        try:
            return self.named(name) > 0
        except NoType:
            return False

    @cache  # noqa: B019 (one Btf lives as long as its run)
    def resolve(self, number: int) -> int:
        """The type behind typedefs and qualifiers."""
        for _ in range(64):
            t = self.type(number)
            if t.kind not in PASS_THROUGH:
                return number
            number = t.size
        raise NoType(f"type {number} refers to itself")

    def array(self, number: int) -> tuple[int, int]:
        """An array's element type and number of elements."""
        t = self.type(number)
        if t.kind != ARRAY:
            raise NoType(f"`{self.title(number)}` is not an array")
        element, _, count = struct.unpack_from("<III", self._data, t.at)
        return element, count

    @cache  # noqa: B019
    def size(self, number: int) -> int:
        t = self.type(self.resolve(number))
        if t.kind in (INT, STRUCT, UNION, ENUM, ENUM64, FLOAT, DATASEC):
            return t.size
        if t.kind == PTR:
            return POINTER_SIZE
        if t.kind == ARRAY:
            element, count = self.array(self.resolve(number))
            return self.size(element) * count
        return 0

    def title(self, number: int) -> str:
        """A type's name, through qualifiers and pointers: `dentry *`."""
        t = self.type(number)
        if t.name:
            return t.name
        if t.kind == PTR:
            return self.title(t.size) + " *"
        if t.kind == ARRAY:
            element, count = self.array(number)
            return f"{self.title(element)}[{count}]"
        return self.title(t.size) if t.kind in PASS_THROUGH else "?"

    @cache  # noqa: B019
    def members(self, number: int) -> tuple[Member, ...]:
        t = self.type(number)
        if t.kind not in (STRUCT, UNION):
            return ()
        out = []
        for i in range(t.members):
            name, kind, offset = struct.unpack_from("<III", self._data, t.at + 12 * i)
            label = self._label(name)
            out.append(Member(label, kind, offset & 0xFFFFFF, offset >> 24) if t.flag else Member(label, kind, offset, 0))
        return tuple(out)

    @cache  # noqa: B019
    def find(self, number: int, path: str) -> tuple[int, int]:
        """(offset, type) of a member by a path such as `d_lockref.lock` or `node_zones[2].lock`; NoType if there is none."""
        offset = 0
        for step in path.split("."):
            name, *indices = step.replace("]", "").split("[")
            found = self._member(self.resolve(number), name)
            if found is None:
                raise NoType(f"`{self.title(number)}` has no member `{name}`")
            offset, number = offset + found[0], found[1]
            for index in indices:
                element, _ = self.array(self.resolve(number))
                offset, number = offset + int(index) * self.size(element), element
        return offset, number

    def _member(self, number: int, name: str) -> tuple[int, int] | None:
        for m in self.members(number):
            if m.name == name:
                return m.bit // 8, m.type
            if not m.name:
                inner = self._member(self.resolve(m.type), name)
                if inner is not None:
                    return m.bit // 8 + inner[0], inner[1]
        return None

    def field_at(self, number: int, offset: int) -> Field:
        """What lies `offset` bytes into a type; an empty path where the type has no members there."""
        path = ""
        for _ in range(32):
            number = self.resolve(number) if self.type(number).name not in WHOLE else number
            t = self.type(number)
            if t.name in WHOLE:
                break
            if t.kind == ARRAY:
                element, count = self.array(number)
                size = self.size(element)
                if size <= 1 or (count and offset >= size * count):  # arrays of characters have no elements here
                    break
                path += f"[{offset // size}]"
                number, offset = element, offset % size
                continue
            member = self._covering(t, number, offset)
            if member is None:
                break
            if member.name:
                path += ("." if path else "") + member.name
            number, offset = member.type, offset - member.bit // 8
        return Field(path, number, offset)

    @cache  # noqa: B019
    def _extents(self, number: int) -> tuple[tuple[int, int, Member], ...]:
        """Where each member begins and ends; an array without a length ends where it begins."""
        return tuple((m.bit // 8, (m.bit + m.bits + 7) // 8 if m.bits else m.bit // 8 + self.size(m.type), m)
                     for m in self.members(number))

    def _covering(self, t: Type, number: int, offset: int) -> Member | None:
        """The member that contains `offset`. In a union, a member that is a structure is preferred, because it says more;
        otherwise the first one."""
        fits, unbounded = [], []
        for first, end, m in self._extents(number):
            if first <= offset < end:
                fits.append(m)
            elif offset >= first == end and m.type and self.type(self.resolve(m.type)).kind == ARRAY:
                unbounded.append(m)
        if t.kind == UNION:
            fits.sort(key=lambda m: self.type(self.resolve(m.type)).kind not in (STRUCT, UNION))
        return next(iter(fits or unbounded[-1:]), None)

    def fields_in(self, number: int, first: int, end: int) -> list[str]:
        """The distinct fields that begin in, or reach into, [first, end) of a type, in order."""
        out: list[str] = []
        at = max(first, 0)
        while at < min(end, self.size(number)):
            field = self.field_at(number, at)
            if field.path and field.path not in out:
                out.append(field.path)
            at += max(self.size(field.type) - field.rest, 1) if field.path else 1
        return out

    def enumeration(self, name: str) -> dict[str, int]:
        """The values of an enumeration; empty if there is none of that name."""
        for kind in (ENUM, ENUM64):
            number = self._by_name.get((kind, name))
            if number is not None:
                return self._values(number)
        return {}

    def _values(self, number: int) -> dict[str, int]:
        t = self.type(number)
        values, wide = {}, t.kind == ENUM64
        for i in range(t.members):
            name, low, high = struct.unpack_from("<III" if wide else "<Ii", self._data, t.at + (12 if wide else 8) * i) + (
                () if wide else (0,))
            values[self._label(name)] = low | high << 32 if wide else low
        return values

    def placed(self) -> dict[str, int]:
        """The offsets of variables in their section. A kernel's BTF has one section, that of per-CPU variables."""
        return {self.type(variable).name: offset for section in self._types if section.kind == DATASEC
                for variable, offset, _ in (struct.unpack_from("<III", self._data, section.at + 12 * i) for i in range(section.members))}


@cache
def read(data: bytes) -> Btf:
    """The types of a blob, read once. NoType if the blob is damaged."""
    return Btf(data)


def parse(data: bytes) -> Btf:
    """The types of a blob; none if the blob is empty or damaged, since names are possible without types."""
    try:
        return read(data)
    except NoType:
        return Btf(b"")
