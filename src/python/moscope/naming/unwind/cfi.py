# SPDX-License-Identifier: BSD-3-Clause
"""Unwind tables of user programs (section .eh_frame: System V ABI for x86-64, section 4.2.4; DWARF 5, section 6.4)."""

import contextlib
import io
import struct
from bisect import bisect_right
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.dwarf.callframe import FDE, CallFrameInfo
from elftools.elf.elffile import ELFFile

from moscope.naming.unwind.state import BY_NUMBER, Frame, Stack

RETURN_ADDRESS = 16  # the number of the return address among the registers
HEADER = struct.Struct("<BBBBiI")
USUAL = (1, 0x1B, 0x03, 0x3B)  # version; encodings of the header: offsets of four bytes, entries relative to the header
DAMAGED = (ELFError, ValueError, KeyError, IndexError, AssertionError, struct.error)


class _Entries(CallFrameInfo):
    """Reads single entries of the section, not all of it."""

    def at(self, offset: int) -> Any:
        return self._parse_entry_at(offset)


class Cfi:
    """The unwind tables of a file, by link address. If the tables are missing or damaged, all answers are None."""

    def __init__(self, data: bytes) -> None:
        self._starts: list[int] = []
        self._functions: list[Any] = []  # by start: the entry, or its offset in the section
        self._entries: _Entries | None = None
        self._rows: dict[int, list[dict[Any, Any]]] = {}
        self._row_of: dict[int, dict[Any, Any] | None] = {}
        with contextlib.suppress(*DAMAGED):
            self._read(ELFFile(io.BytesIO(data)))

    def _read(self, file: ELFFile) -> None:
        dwarf = file.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
        index, frames = file.get_section_by_name(".eh_frame_hdr"), dwarf.eh_frame_sec
        if index and frames and tuple(index.data()[:4]) == USUAL:
            raw, first = index.data(), int(index["sh_addr"])
            count = min(HEADER.unpack_from(raw)[5], (len(raw) - HEADER.size) // 8)
            pairs = list(struct.iter_unpack("<ii", raw[HEADER.size:HEADER.size + 8 * count]))
            self._starts = [first + start for start, _ in pairs]
            self._functions = [first + at - frames.address for _, at in pairs]
            self._entries = _Entries(frames.stream, frames.size, frames.address, dwarf.structs, for_eh_frame=True)
            return
        entries = dwarf.EH_CFI_entries() if dwarf.has_EH_CFI() else dwarf.CFI_entries() if dwarf.has_CFI() else []
        self._functions = sorted((one for one in entries if isinstance(one, FDE)), key=lambda one: one["initial_location"])
        self._starts = [one["initial_location"] for one in self._functions]

    def _table(self, n: int) -> list[dict[Any, Any]]:
        """The rows of a function's table; the last one contains only the end of the function."""
        if n not in self._rows:
            try:
                one = self._functions[n]
                entry = self._entries.at(one) if self._entries and isinstance(one, int) else one
                self._rows[n] = [*entry.get_decoded().table, {"pc": entry["initial_location"] + entry["address_range"]}]
            except DAMAGED:
                self._rows[n] = []
        return self._rows[n]

    def _row(self, address: int) -> dict[Any, Any] | None:
        if address not in self._row_of:
            n = bisect_right(self._starts, address) - 1
            found = next((row for row in reversed(self._table(n)) if row["pc"] <= address), None) if n >= 0 else None
            self._row_of[address] = found if found and "cfa" in found else None
        return self._row_of[address]

    def covers(self, address: int) -> bool:
        return self._row(address) is not None

    def top(self, frame: Frame, link: int) -> int | None:
        """The canonical frame address: the beginning of the caller's frame."""
        row = self._row(link)
        top = _frame_address(row["cfa"], frame) if row else None
        return None if top is None or top <= frame.rsp - 8 else top

    def depth(self, link: int) -> int | None:
        """The distance of the canonical frame address from rsp at an instruction, if the tables state it."""
        row = self._row(link)
        return int(row["cfa"].offset) if row and row["cfa"].expr is None and BY_NUMBER[row["cfa"].reg:][:1] == ("rsp",) else None

    def by_rbp(self, link: int) -> bool:
        """Whether the frame is found by means of rbp at that instruction."""
        row = self._row(link)
        return row is not None and row["cfa"].expr is None and BY_NUMBER[row["cfa"].reg:][:1] == ("rbp",)

    def caller(self, frame: Frame, stack: Stack, link: int) -> Frame | None:
        """The frame of the caller. `link`: the link address of `frame.within`."""
        row, top = self._row(link), self.top(frame, link)
        if row is None or top is None:
            return None
        rule = row.get(RETURN_ADDRESS)
        if rule is not None and rule.type != "OFFSET":
            return None  # the outermost function has an undefined return address
        rip = stack.word(top + (rule.arg if rule is not None else -8))
        restored = {}
        for number, one in row.items():
            if isinstance(number, int) and number < len(BY_NUMBER) and one.type == "OFFSET":
                value = stack.word(top + one.arg)
                if value is not None:
                    restored[BY_NUMBER[number]] = value
        return frame.caller(rip, top, restored) if rip else None


def _frame_address(rule: Any, frame: Frame) -> int | None:
    if rule.expr is not None:
        # The linker's tables for stubs that call libraries: after the push, eleven bytes into a stub of sixteen, the stack is one
        # word deeper.
        return frame.rsp + 8 + (8 if frame.rip % 16 >= 11 else 0)
    base = frame.registers.get(BY_NUMBER[rule.reg]) if rule.reg < len(BY_NUMBER) else None
    return None if base is None else base + int(rule.offset)
