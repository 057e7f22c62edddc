# SPDX-License-Identifier: BSD-3-Clause
"""ELF files (System V ABI for x86-64): the parts that naming needs, which are sections, loaded segments and symbol tables."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ET_EXEC, ET_DYN = 2, 3
PT_LOAD, PT_INTERP, PT_TLS = 1, 3, 7
PF_X = 1
SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_DYNSYM = 2, 4, 8, 11
STT_OBJECT, STT_FUNC, STT_NOTYPE, STT_TLS = 1, 2, 0, 6
SHN_UNDEF, SHN_RESERVED = 0, 0xFF00
THREAD_LOCAL = 1 << 62  # "addresses" from here on are offsets in a thread's block of thread-local variables
LETTERS = {STT_OBJECT: "d", STT_FUNC: "t", STT_NOTYPE: "n", STT_TLS: "d"}


class NotElf(Exception):
    """The bytes are not a 64-bit little-endian ELF file, or are truncated."""


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    address: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class Segment:
    """What PT_LOAD maps: `file_size` bytes of the file, zeros up to `size`."""

    offset: int
    address: int
    physical: int
    file_size: int
    size: int


def program_headers(data: bytes) -> list[tuple[int, ...]]:
    """(type, flags, offset, address, physical address, size in the file, size, alignment) of each; NotElf where they are cut short."""
    (at,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    try:
        return [struct.unpack_from("<IIQQQQQQ", data, at + i * size) for i in range(count)]
    except (struct.error, OverflowError) as error:
        raise NotElf("the ELF file is cut short") from error


class Elf:
    def __init__(self, data: bytes) -> None:
        self.data = data
        if data[:6] != b"\x7fELF\x02\x01" or len(data) < 64:
            raise NotElf("no 64-bit little-endian ELF file")
        (self.type,) = struct.unpack_from("<H", data, 16)
        (shoff,) = struct.unpack_from("<Q", data, 40)
        shentsize, shnum, shstrndx = struct.unpack_from("<HHH", data, 58)
        headers = program_headers(data)
        self.segments = [Segment(p[2], p[3], p[4], p[5], p[6]) for p in headers if p[0] == PT_LOAD]
        self.thread_local = next((-(-p[6] // max(p[7], 1)) * max(p[7], 1) for p in headers if p[0] == PT_TLS), 0)  # bytes of that block
        try:
            raw = [struct.unpack_from("<IIQQQQII", data, shoff + i * shentsize) for i in range(shnum)]
        except (struct.error, OverflowError) as error:
            raise NotElf("the ELF file is cut short") from error
        names = raw[shstrndx][4] if shstrndx < len(raw) else 0
        self.sections = [Section(self._text(names + s[0]), s[1], s[3], s[4], s[5], s[6]) for s in raw]

    def _text(self, at: int) -> str:
        return self.data[at : self.data.find(b"\0", at)].decode(errors="replace")

    def section(self, name: str) -> bytes | None:
        """A section's content, or None where the file has none of that name."""
        for s in self.sections:
            if s.name == name and s.kind != SHT_NOBITS:
                return self.data[s.offset : s.offset + s.size]
        return None

    def section_range(self, name: str) -> tuple[int, int] | None:
        """Where a section lies in memory: first address, size."""
        return next(((s.address, s.size) for s in self.sections if s.name == name), None)

    def read(self, address: int, size: int) -> bytes:
        """The bytes that the file loads at virtual `address`; empty if it loads nothing there."""
        for s in self.segments:
            if s.address <= address < s.address + s.file_size:
                size = min(size, s.address + s.file_size - address)
                at = s.offset + address - s.address
                return self.data[at : at + size]
        return b""

    @property
    def has_symtab(self) -> bool:
        return any(s.kind == SHT_SYMTAB for s in self.sections)

    def section_end(self, address: int) -> int:
        """The end of the section that contains an address; 0 if none does."""
        return max((s.address + s.size for s in self.sections if s.address and s.address <= address < s.address + s.size), default=0)

    def symbols(self) -> Iterator[tuple[int, int, str, str]]:
        """(address, size, kind letter as nm prints it, name) of what lies in memory, from .symtab or else .dynsym. Of a truncated
        table, or one without its strings, the symbols that can be read: Linux runs a program without reading its sections."""
        tables = [s for s in self.sections if s.kind == SHT_SYMTAB] or [s for s in self.sections if s.kind == SHT_DYNSYM]
        for table in (t for t in tables if t.link < len(self.sections)):
            strings = self.sections[table.link].offset
            for at in range(table.offset, min(table.offset + table.size, len(self.data)) - 23, 24):
                name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
                kind = info & 15
                if section == SHN_UNDEF or section >= SHN_RESERVED or kind not in LETTERS:
                    continue
                text = self._text(strings + name)
                if text:
                    letter = LETTERS[kind]
                    yield value + (THREAD_LOCAL if kind == STT_TLS else 0), size, letter.upper() if info >> 4 else letter, text

    def name_of_symbol(self, table: Section, number: int) -> str:
        """The name of a symbol in one of the tables; empty where the table or its strings are cut short."""
        at = table.offset + 24 * number
        if table.link >= len(self.sections) or at + 4 > len(self.data):
            return ""
        return self._text(self.sections[table.link].offset + int(struct.unpack_from("<I", self.data, at)[0]))


def from_file(path: Path) -> Elf:
    """Raises NotElf, or OSError where the file cannot be read."""
    return Elf(path.read_bytes())
