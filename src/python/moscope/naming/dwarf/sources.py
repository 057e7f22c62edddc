# SPDX-License-Identifier: BSD-3-Clause
"""File and line of instructions, with the functions that the compiler inlined there, from DWARF."""

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE

from moscope.naming.dwarf.scopes import BLOCKS, INLINED, covers, function_name
from moscope.naming.dwarf.units import DEEPEST, FUNCTION, Units, children, number, text

SPACES = ("DW_TAG_namespace", "DW_TAG_module")


@dataclass(frozen=True)
class Source:
    """`at` is `FILE:LINE`; `inlined` has, innermost first, the functions inlined there and where each was called."""

    at: str
    inlined: tuple[str, ...] = ()

    @property
    def calls(self) -> str:
        return "; ".join(self.inlined)


class Unit:
    """The code of one unit."""

    def __init__(self, units: Units, unit: CompileUnit) -> None:
        self._units = units
        self._top = unit.get_top_DIE()
        self._program: Any = units.dwarf.line_program_for_CU(unit)
        self._folder = text(self._top, "DW_AT_comp_dir")
        rows = []
        for entry in self._program.get_entries() if self._program else ():
            state = entry.state
            if state is not None:
                rows.append((state.address, not state.end_sequence, 0 if state.end_sequence else state.file, state.line))
        rows.sort(key=lambda row: row[:2])  # where one sequence begins at the end of another, its own row comes last
        self._rows = rows
        self._addresses = [row[0] for row in rows]
        functions = [(first, end, die) for die in self._functions(self._top, 0) for first, end in units.ranges(die)]
        self._functions_by_address = sorted(functions, key=lambda one: one[0])
        self._starts = [first for first, _, _ in self._functions_by_address]

    def _functions(self, scope: DIE, depth: int) -> Iterator[DIE]:
        for child in children(scope):
            if child.tag == FUNCTION and ("DW_AT_low_pc" in child.attributes or "DW_AT_ranges" in child.attributes):
                yield child
            elif child.tag in SPACES and depth < DEEPEST:
                yield from self._functions(child, depth + 1)

    def source(self, pc: int) -> Source | None:
        i = bisect_right(self._addresses, pc) - 1
        if i < 0 or not self._rows[i][1] or not self._rows[i][3]:
            return None
        _, _, file, line = self._rows[i]
        calls = [f"{function_name(die)} called at {self._file(number(die, 'DW_AT_call_file'))}:{number(die, 'DW_AT_call_line') or '?'}"
                 for die in self._inlined(pc)]
        return Source(f"{self._file(file)}:{line}", tuple(reversed(calls)))

    def _inlined(self, pc: int) -> list[DIE]:
        """The inlined functions that an instruction belongs to, outermost first."""
        i = bisect_right(self._starts, pc) - 1
        if i < 0 or pc >= self._functions_by_address[i][1]:
            return []
        inside = self._functions_by_address[i][2]
        found = []
        for _ in range(DEEPEST):
            block = next((child for child in children(inside) if child.tag in BLOCKS and covers(self._units, child, pc)), None)
            if block is None:
                break
            if block.tag == INLINED:
                found.append(block)
            inside = block
        return found

    def _file(self, index: int | None) -> str:
        """The name of a file as it was given to the compiler; an absolute path if the file is not below the compiler's working
        folder."""
        header = self._program.header
        first = 0 if header.version >= 5 else 1  # DWARF 5 counts from 0, with the unit itself first
        if index is None or not first <= index < len(header.file_entry) + first:
            return "?"
        entry = header.file_entry[index - first]
        name = entry.name.decode(errors="replace")
        # Folder 0 is the compiler's working folder. Only DWARF 5 lists it. If it were joined to itself, a relative path would
        # appear twice.
        folders = ["", *(one.decode(errors="replace") for one in header.include_directory[1 - first:])]
        folder = folders[entry.dir_index] if entry.dir_index < len(folders) else ""
        whole = os.path.normpath(os.path.join(self._folder, folder, name))
        return whole.removeprefix(self._folder.rstrip("/") + "/") if self._folder else whole


class Sources:
    def __init__(self, units: Units) -> None:
        self._units = units
        self._read: dict[int, Unit] = {}

    def at(self, pc: int) -> Source | None:
        """The source line of the instruction at a link address; None if no unit with lines contains it."""
        unit = self._units.unit_of(pc)
        if unit is None:
            return None
        if unit.cu_offset not in self._read:
            self._read[unit.cu_offset] = Unit(self._units, unit)
        return self._read[unit.cu_offset].source(pc)
