# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of description beside parameters (parameters.py): enumerations, records, sets of counters.

A description that cannot be emitted is refused where it is written: BadDescription, `what: problem: expected ...`.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
COLOUR = re.compile(r"#[0-9a-f]{6}\Z")
# Bytes of each type of a record's field; the letter says unsigned or signed.
BYTES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i64": 8}
CXX_WORDS = {"auto", "bool", "case", "char", "const", "default", "delete", "double", "enum", "float", "int", "long", "new",
             "operator", "private", "public", "short", "signed", "static", "struct", "switch", "template", "this", "union",
             "unsigned", "using", "virtual", "void"}


class BadDescription(ValueError):
    """A description that no emitter could follow; the author of the description reads this."""


def check_names(owner: str, names: Iterator[str] | list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not NAME.match(name) or name in CXX_WORDS or (keyword.iskeyword(name) and name != "from"):
            raise BadDescription(f"{owner}: {name!r}: expected a lower-case identifier that is not a word of C++ or Python")
        if name in seen:
            raise BadDescription(f"{owner}: {name}: described twice: expected each name once")
        seen.add(name)


def check_sentence(what: str, sentence: str) -> None:
    if not sentence.strip() or "\n" in sentence or "*/" in sentence:
        raise BadDescription(f"{what}: {sentence!r:.40}: expected one line that says what it is")


def check_member(what: str, member: Member) -> None:
    check_sentence(what, member.sentence)
    for colour in member.colours or ():
        if not COLOUR.match(colour):
            raise BadDescription(f"{what}: colour {colour!r}: expected #rrggbb, for a light and a dark page")


@dataclass(frozen=True)
class Member:
    """A value of an enumeration: what it means, and how reports show it."""

    sentence: str
    label: str = ""  # in reports; the name with spaces if empty
    short: str = ""  # on an axis, in a column or a bar; the name with spaces if empty
    noun: str = ""  # in a sentence; the label if empty
    colours: tuple[str, str] | None = None  # #rrggbb on a light and on a dark page
    rank: int = 0  # place in stacked bars and legends; members of the same rank keep their order
    group: str = ""  # sums and rules over members select them by group


@dataclass(frozen=True)
class Enumeration:
    """Values that are numbers in the engine and names in files. `plural` names the number of them in C++ (`kSegments`).
    A member that is a sentence has no other property."""

    name: str
    plural: str
    sentence: str
    members: Mapping[str, Member | str]
    counted: bool = True  # C++ gets a last value `count`, which may stand for none
    engine: bool = True  # False: for files and reports only; C++ does not get it
    namespace: str = "moscope"

    def __post_init__(self) -> None:
        if not TYPE_NAME.match(self.name) or not TYPE_NAME.match(self.plural):
            raise BadDescription(f"{self.name}: {self.plural}: expected type names, such as Segment and Segments")
        check_sentence(self.name, self.sentence)
        if not 0 < len(self.members) < 255:
            raise BadDescription(f"{self.name}: {len(self.members)} members: expected 1 to 254")
        check_names(self.name, list(self.members))
        if self.counted and "count" in self.members:
            raise BadDescription(f"{self.name}: count: expected another name, as C++ calls the number of members so")
        for name in self.members:
            check_member(f"{self.name}.{name}", self[name])
        plain = [name for name in self.members if not self[name].colours]
        if 0 < len(plain) < len(self):
            raise BadDescription(f"{self.name}: {', '.join(plain)}: no colours: expected colours for all members or for none")
        groups = sorted({self[name].group for name in self.members})
        if "" in groups[:1] and len(groups) > 1:
            alone = ", ".join(name for name in self.members if not self[name].group)
            raise BadDescription(f"{self.name}: {alone}: no group: expected one for all members or for none, such as {groups[1]}")

    def __getitem__(self, name: str) -> Member:
        found = self.members[name]
        return found if isinstance(found, Member) else Member(found)

    def label(self, name: str) -> str:
        """A member as reports write it."""
        return self[name].label or name.replace("_", " ")

    def short(self, name: str) -> str:
        """A member on an axis, in a column or a bar."""
        return self[name].short or name.replace("_", " ")

    def noun(self, name: str) -> str:
        """A member in a sentence."""
        return self[name].noun or self.label(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.members)

    @property
    def ranked(self) -> tuple[str, ...]:
        """The names in the order of stacked bars and legends."""
        return tuple(sorted(self.members, key=lambda name: self[name].rank))

    def of(self, *groups: str) -> tuple[str, ...]:
        """The members of these groups."""
        return tuple(name for name in self.members if self[name].group in groups)

    @property
    def sentences(self) -> dict[str, str]:
        return {name: self[name].sentence for name in self.members}

    def __len__(self) -> int:
        return len(self.members)


@dataclass(frozen=True)
class Field:
    """A field of a record. `values`: it holds a number of that enumeration; `each`: it is an array, one value per member.
    `none` is the number that stands for no value. `flags`: its bits by name, from the lowest on, with a sentence each."""

    name: str
    type: str
    sentence: str
    unit: str = ""
    default: int = 0
    none: int | None = None
    values: Enumeration | None = None
    each: Enumeration | None = None
    flags: Mapping[str, str] = field(default_factory=dict)
    bare: bool = False  # the columns of an array are called MEMBER, not FIELD_MEMBER

    def __post_init__(self) -> None:
        if self.type not in BYTES:
            raise BadDescription(f"{self.name}: type {self.type!r}: expected one of {', '.join(BYTES)}")
        check_sentence(self.name, self.sentence)
        for what, value in (("default", self.default), ("none", self.none or 0)):
            if not self.least <= value <= self.most:
                raise BadDescription(f"{self.name}: {what} {value}: expected {self.least} to {self.most}")
        if len(self.flags) > 8 * self.width:
            raise BadDescription(f"{self.name}: {len(self.flags)} flags: expected at most {8 * self.width} in a {self.type}")
        check_names(self.name, list(self.flags))
        if self.each and (self.values or self.flags or self.none is not None):
            raise BadDescription(f"{self.name}: an array of enumerated, flagged or absent values: expected plain numbers")

    @property
    def width(self) -> int:
        """Bytes of one value."""
        return BYTES[self.type]

    @property
    def count(self) -> int:
        return len(self.each) if self.each else 1

    @property
    def least(self) -> int:
        return 0 if self.type[0] == "u" else -(1 << 63)

    @property
    def most(self) -> int:
        return (1 << (8 * self.width - (self.type[0] == "i"))) - 1

    def bit(self, flag: str) -> int:
        return 1 << list(self.flags).index(flag)

    @property
    def columns(self) -> dict[str, str]:
        """Its columns in files, with a sentence each: one per member of its array, one per flag, or the field itself."""
        if self.each:
            prefix = "" if self.bare else f"{self.name}_"
            return {prefix + name: f"{self.sentence}: {about}" for name, about in self.each.sentences.items()}
        return dict(self.flags) or {self.name: self.sentence}


@dataclass(frozen=True)
class Record:
    """Rows of fixed size, little-endian. Fields lie in their order, each at a multiple of its size, and the whole takes a
    multiple of eight bytes; what is left between them is padding, written as zeros."""

    name: str
    sentence: str
    fields: tuple[Field, ...]
    namespace: str = "moscope"

    def __post_init__(self) -> None:
        if not TYPE_NAME.match(self.name):
            raise BadDescription(f"{self.name}: expected a type name, such as LineRow")
        check_sentence(self.name, self.sentence)
        if not self.fields:
            raise BadDescription(f"{self.name}: no fields: expected at least one")
        check_names(self.name, [f.name for f in self.fields])

    def __getitem__(self, name: str) -> Field:
        for found in self.fields:
            if found.name == name:
                return found
        raise KeyError(name)

    @property
    def offsets(self) -> dict[str, int]:
        at, found = 0, {}
        for f in self.fields:
            at = -(-at // f.width) * f.width
            found[f.name] = at
            at += f.width * f.count
        return found

    @property
    def size(self) -> int:
        last = self.fields[-1]
        return -(-(self.offsets[last.name] + last.width * last.count) // 8) * 8

    @property
    def layout(self) -> int:
        """Changes with anything that a reader of rows must know; 64 bits."""
        text = "".join(f"{f.name} {f.type} {f.count} {self.offsets[f.name]} {f.none} {list(f.flags)} "
                       f"{list(f.values.names) if f.values else ''} {list(f.each.names) if f.each else ''}\n" for f in self.fields)
        return int.from_bytes(hashlib.sha256(f"{self.name} {self.size}\n{text}".encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Column:
    """A column that no field of the record holds as it is: the reader of the rows computes it, from the field `of` first of all."""

    name: str
    of: str
    sentence: str
    unit: str = ""
    type: str = "text"  # "text", "bool" or a type of a field
    replaces: bool = False  # the file has it in place of the field's own columns

    def __post_init__(self) -> None:
        check_sentence(self.name, self.sentence)


@dataclass(frozen=True)
class Table:
    """The columns of a file: those of the fields of a record, in their order, each followed by the columns computed from it. Fields in
    `internal` have no columns of their own."""

    name: str
    sentence: str
    record: Record
    computed: tuple[Column, ...]
    internal: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_sentence(self.name, self.sentence)
        known = {f.name for f in self.record.fields}
        for column in self.computed:
            if column.of not in known:
                raise BadDescription(f"{self.name}.{column.name}: of {column.of}: expected a field of {self.record.name}")
        if unknown := set(self.internal) - known:
            raise BadDescription(f"{self.name}: internal {', '.join(sorted(unknown))}: expected fields of {self.record.name}")
        check_names(self.name, [c.name for c in self.columns if c.name != "class"])

    @property
    def columns(self) -> list[Column]:
        found: list[Column] = []
        for f in self.record.fields:
            own = [c for c in self.computed if c.of == f.name]
            if f.name not in self.internal and not any(c.replaces for c in own):
                kind = "bool" if f.flags else "text" if f.values else f.type
                found += [Column(name, f.name, sentence, f.unit, kind) for name, sentence in f.columns.items()]
            found += own
        return found


@dataclass(frozen=True)
class Counter:
    """A number that only grows. `each`: one for each member of an enumeration, of which files have those that are not zero. A
    `maximum` of values is one, too, but has no difference: a window has the value at its end."""

    name: str
    unit: str
    sentence: str
    signed: bool = False
    each: Enumeration | None = None
    internal: bool = False  # for tests and the model itself; no file has it
    maximum: bool = False

    def __post_init__(self) -> None:
        check_sentence(self.name, self.sentence)
        if self.maximum and self.each:
            raise BadDescription(f"{self.name}: a maximum for each of {self.each.name}: expected a single maximum")


@dataclass(frozen=True)
class Counters:
    """What a part of the machine counts; a window is the difference of two snapshots."""

    name: str
    sentence: str
    counters: tuple[Counter, ...]
    namespace: str = "moscope"

    def __post_init__(self) -> None:
        check_sentence(self.name, self.sentence)
        check_names(self.name, [c.name for c in self.counters])

    @property
    def in_files(self) -> list[Counter]:
        return [c for c in self.counters if not c.internal]


Description = Enumeration | Record | Table | Counters
