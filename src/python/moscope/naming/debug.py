# SPDX-License-Identifier: BSD-3-Clause
"""What a program's debug information says about an address: the field of a global variable, file and line of an
instruction.

If debug information is missing, damaged or of an unknown kind, names are as without it, and a note says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from elftools.dwarf.die import DIE

from moscope.naming import debug_file, elf
from moscope.naming.dwarf.fields import COMMON, Types, template_type, title, type_of
from moscope.naming.dwarf.locals import Local, Locals
from moscope.naming.dwarf.results import Results
from moscope.naming.dwarf.sources import Source, Sources
from moscope.naming.dwarf.units import FUNCTION, Units, chain, text
from moscope.naming.unwind.activations import Activation

T = TypeVar("T")
# What std::make_shared allocates: counts of references, then the object.
SHARED, SHARED_OBJECT, MAKE_SHARED = "_Sp_counted_ptr_inplace<", "._M_impl._M_storage", "make_shared<"


class Debug:
    """The debug information of a file. `notes` says, once for each file, what could not be read."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.notes: list[str] = []
        self._path = path
        self._variables: dict[int, tuple[str, DIE] | None] = {}
        self._sources: Sources | None = None
        self._units = self._read(lambda: Units(data))
        self._types = Types()
        self._locals: Locals | None = None
        if self._units:
            self._sources = Sources(self._units)
            self._locals = Locals(self._units, self._types)

    def _read(self, what: Callable[[], T]) -> T | None:
        try:
            return what()
        except Exception as error:  # noqa: BLE001  damaged bytes raise any kind of exception in the library, from KeyError to its own kinds
            if not self.notes:
                self.notes.append(f"{self._path}: its debug information cannot be read ({str(error) or type(error).__name__}): "
                                  "expected DWARF 2 to 5; names are those of its symbols")
            return None

    def variable(self, address: int, offset: int) -> tuple[str, str] | None:
        """(function, field) of a byte of the variable at a link address. The function is empty for a variable outside functions."""
        found = self._known(address)
        path = self._read(lambda: self._types.path(found[1], offset)) if found else None
        return (found[0], path) if found and path is not None else None

    def type_at(self, address: int, offset: int) -> str:
        """The type of the field at a byte of that variable; empty if it is unknown."""
        found = self._known(address)
        return (self._read(lambda: self._types.type_at(found[1], offset)) if found else None) or ""

    def read_field(self, die: DIE, offset: int) -> tuple[str, str]:
        return self._read(lambda: (self._types.path(die, offset), self._types.type_at(die, offset))) or ("", "")

    def block(self, address: int) -> str:
        """The name of the Fortran common block at an address; empty if there is none."""
        found = self._known(address)
        return title(found[1]) if found and found[1].tag == COMMON else ""

    def _known(self, address: int) -> tuple[str, DIE] | None:
        if address not in self._variables:
            self._variables[address] = self._read(lambda: self._variable(address))
        return self._variables[address]

    def _variable(self, address: int) -> tuple[str, DIE] | None:
        """The function that contains the variable at an address, and the variable's type; for a common block, the block itself."""
        path = self._units.variable(address) if self._units else []
        if path and path[-2].tag == COMMON:
            return "", path[-2]
        kind = type_of(path[-1]) if path else None
        if kind is None:
            return None
        inside = next((die for die in path[-2::-1] if die.tag == FUNCTION), None)
        function = next(filter(None, (text(one, "DW_AT_name") for one in chain(inside))), "") if inside else ""
        return function, kind

    def result(self, code: bytes, pc: int, name: str, frame: int | None) -> "Result | None":
        """The type of the memory that was returned by the call before link address `pc`, with the code `code` at `pc`. `name`:
        the name of the type if it is known already, otherwise empty. `frame`: the distance of the frame's end from RSP there."""
        return self._result(lambda results: results.named(name, pc) if name else results.type(code, pc, frame))

    def made(self, pc: int, depth: int) -> "Result | None":
        """The type of the memory that one of the innermost `depth` functions at an instruction allocates, by its template."""
        return self._result(lambda results: results.made(pc, depth))

    def _result(self, find: Callable[[Results], DIE | None]) -> "Result | None":
        units = self._units
        if units is None:
            return None
        found = self._read(lambda: find(Results(units, self._types)))
        size = self._read(lambda: self._types.shape(found).size) if found is not None else 0
        return Result(self, found, self._read(lambda: _title(found)) or "", size) if found is not None and size else None

    def locals(self, one: Activation) -> list[Local]:
        """The variables of a call of a function that lie in memory, with their addresses."""
        known = self._locals
        return (self._read(lambda: known.of(one)) if known else None) or []

    def source(self, pc: int) -> Source | None:
        """The source line of an instruction at a link address."""
        sources = self._sources
        return self._read(lambda: sources.at(pc)) if sources else None


@dataclass(frozen=True)
class Result:
    """The type of a piece of memory."""

    debug: Debug
    die: DIE
    name: str
    size: int

    def field(self, offset: int) -> tuple[int, str, str]:
        """For an offset in an array: the number of the element, the field in it, and the field's type."""
        index, rest = divmod(offset, self.size)
        path, typed = self.debug.read_field(self.die, rest)
        return index, path.removeprefix(SHARED_OBJECT) if self.name.startswith(MAKE_SHARED) else path, typed


def _title(found: DIE) -> str:
    name = title(found)
    return f"{MAKE_SHARED}{title(template_type(found))}>" if name.startswith(SHARED) else name


def of(path: Path, file: elf.Elf) -> tuple[Debug, elf.Elf] | None:
    """The debug information of a program, and the file that has it, which may have more symbols than the program."""
    found = debug_file.find(path, file)
    return (Debug(found[0], found[1].data), found[1]) if found else None
