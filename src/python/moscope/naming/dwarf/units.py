# SPDX-License-Identifier: BSD-3-Clause
"""DWARF debug information of one program: its units, and the entry of a variable (DWARF 5, sections 2 and 7).

Only units that are needed for a name are read. The entry of a variable is found by searching .debug_info for the
bytes of its location; the unit of an instruction, by .debug_aranges, or by the ranges of the units if the compiler
wrote no such section.
"""

import io
import struct
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.dwarf.ranges import BaseAddressEntry
from elftools.elf.elffile import ELFFile

from moscope.naming.elf import THREAD_LOCAL

OP_ADDRESS = 0x03  # DW_OP_addr
OP_PLUS = 0x23  # DW_OP_plus_uconst, with a number in LEB128
AT_ADDRESS = bytes((9, OP_ADDRESS))  # a location of nine bytes: DW_OP_addr and the address
AT_OFFSET = b"\x0a\x0e"  # a location of ten bytes: DW_OP_const8u, the offset, and one of these:
OF_THREAD = (b"\x9b", b"\xe0")  # DW_OP_form_tls_address, DW_OP_GNU_push_tls_address
WIDE = 0xFFFFFFFF  # the length of a unit in the 64-bit format follows
DEEPEST = 64
REFERENCES = ("DW_AT_specification", "DW_AT_abstract_origin")
FUNCTION = "DW_TAG_subprogram"


class Damaged(Exception):
    """The debug information contradicts itself."""


def text(die: DIE, attribute: str) -> str:
    found = die.attributes.get(attribute)
    return found.value.decode(errors="replace") if found and isinstance(found.value, bytes) else ""


def number(die: DIE, attribute: str) -> int | None:
    """A constant; None where it is missing or computed at run time."""
    found = die.attributes.get(attribute)
    value: Any = found.value if found else None
    if isinstance(value, list) and value[:1] == [OP_PLUS] and [byte >> 7 for byte in value[1:]] == [1] * (len(value) - 2) + [0]:
        value = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(value[1:]))  # a member's location in DWARF 2
    return value if isinstance(value, int) else None


def address(variable: DIE) -> int | None:
    """The fixed address of a variable; None if it has none."""
    found = variable.attributes.get("DW_AT_location")
    where: Any = found.value if found else None
    fixed = isinstance(where, list) and len(where) == 9 and where[0] == OP_ADDRESS
    return int.from_bytes(bytes(where[1:]), "little") if fixed else None


def chain(die: DIE) -> Iterator[DIE]:
    """An entry, and those that it completes: declaration of a definition, origin of an inlined copy."""
    for _ in range(DEEPEST):
        yield die
        reference = next((name for name in REFERENCES if name in die.attributes), None)
        if reference is None:
            return
        die = die.get_DIE_from_attribute(reference)
    raise Damaged("an entry refers to itself")


def children(die: DIE) -> Iterator[DIE]:
    """The children in the order of the file. Damaged references to siblings, which do not keep this order, raise Damaged."""
    last = die.offset
    if die.has_children:
        for child in die.iter_children():
            if child.offset <= last:
                raise Damaged("entries are not in order")
            last = child.offset
            yield child


class Units:
    def __init__(self, data: bytes) -> None:
        self.dwarf: DWARFInfo = ELFFile(io.BytesIO(data)).get_dwarf_info(follow_links=False)
        section = self.dwarf.debug_info_sec
        self._info: bytes = section.stream.getvalue() if section else b""  # type: ignore[attr-defined]
        self._starts = list(self._headers())
        self.functions: dict[int, list[tuple[int, int, DIE]]] = {}  # by unit, once needed: first address, end, entry (scopes.py)

    def _headers(self) -> Iterator[int]:
        at = 0
        while at + 12 <= len(self._info):
            (length,) = struct.unpack_from("<I", self._info, at)
            yield at
            at += 4 + length if length != WIDE else 12 + struct.unpack_from("<Q", self._info, at + 4)[0]

    def variable(self, address: int) -> list[DIE]:
        """The entry of the variable at an address, preceded by the entries that contain it; empty if there is none."""
        of_thread = [AT_OFFSET + struct.pack("<Q", address - THREAD_LOCAL) + end for end in OF_THREAD] if address >= THREAD_LOCAL else []
        for wanted in of_thread or [AT_ADDRESS + struct.pack("<Q", address)]:
            at = self._info.find(wanted)
            while at >= 0:
                found = self._around(at)
                if found and found[-1].tag == "DW_TAG_variable" and "DW_AT_location" in found[-1].attributes:
                    return found
                at = self._info.find(wanted, at + 1)
        return []

    def _around(self, at: int) -> list[DIE]:
        """The entry that contains a byte of .debug_info, preceded by the entries that contain it."""
        unit = self.dwarf.get_CU_at(self._starts[bisect_right(self._starts, at) - 1])
        path = [unit.get_top_DIE()]
        for _ in range(DEEPEST):
            if at < path[-1].offset + path[-1].size:
                return path
            inner = None
            for child in children(path[-1]):
                if child.offset > at:
                    break
                inner = child
            if inner is None:
                return []
            path.append(inner)
        raise Damaged("entries are nested too deeply")

    def unit_of(self, pc: int) -> CompileUnit | None:
        """The unit with the code at an address."""
        covers = self._ranges
        i = bisect_right(covers, (pc, 1 << 64, 0)) - 1
        if i >= 0 and covers[i][0] <= pc < covers[i][1]:
            return self.dwarf.get_CU_at(covers[i][2])
        return None

    @cached_property
    def _ranges(self) -> list[tuple[int, int, int]]:
        """(first address, end, unit) of all code. For units without an entry in .debug_aranges, their own ranges are used."""
        table = self.dwarf.get_aranges()
        found = [(e.begin_addr, e.begin_addr + e.length, e.info_offset) for e in table.entries] if table else []
        listed = {unit for _, _, unit in found}
        for start in self._starts:
            if start not in listed:
                unit = self.dwarf.get_CU_at(start)
                found += [(first, end, start) for first, end in self.ranges(unit.get_top_DIE()) if first]
        return sorted(found)

    def ranges(self, die: DIE) -> list[tuple[int, int]]:
        """First address and end of the code of an entry."""
        low, high = number(die, "DW_AT_low_pc"), die.attributes.get("DW_AT_high_pc")
        if low is not None and high is not None:
            return [(low, high.value if high.form == "DW_FORM_addr" else low + high.value)]
        listed = die.attributes.get("DW_AT_ranges")
        lists: Any = self.dwarf.range_lists() if listed else None
        if lists is None or listed is None:
            return []
        base = number(die.cu.get_top_DIE(), "DW_AT_low_pc") or 0
        out = []
        for entry in lists.get_range_list_at_offset(listed.value, die.cu):
            if isinstance(entry, BaseAddressEntry):
                base = entry.base_address
            else:
                start = 0 if entry.is_absolute else base
                out.append((start + entry.begin_offset, start + entry.end_offset))
        return out
