# SPDX-License-Identifier: BSD-3-Clause
"""Names in the address spaces of programs: by the area that contains an address, and by the symbols of the program's
file, of which the host has a copy.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path

from moscope.guest.addresses import USER_TOP
from moscope.naming import debug, demangle, elf, plt
from moscope.naming.dwarf.sources import Source
from moscope.naming.guest import PAGE
from moscope.naming.own_code import OF_SYSTEM, WITHOUT_SYMBOLS
from moscope.naming.symbols import Place, Symbol, SymbolTable
from moscope.naming.tasks import Process, Tasks
from moscope.naming.unwind.activations import Activation
from moscope.naming.unwind.cfi import Cfi

CODE = 96  # bytes of code after a call that show where its result goes
LARGE_FILE = re.compile("64v?")  # in the second name of a function for large files: stat64, preadv64v2
COUNTED = re.compile(r"\.\d+$")  # the suffix of variables in functions, several of which may have the same name


@dataclass(frozen=True)
class Variable:
    """A variable on a stack, bytes [start, end): `name` in a call of `function`. `field`: gives path and type of the field at an
    offset."""

    start: int
    end: int
    function: str
    name: str
    field: Callable[[int], tuple[str, str]]


class Program:
    """One program's file; without symbols if it cannot be read. `place`: its path in the guest, if that
    differs from `path`."""

    def __init__(self, name: str, path: Path, place: str = "") -> None:
        self.name = name
        self.fixed = False
        self.of_system = bool(OF_SYSTEM.match(place or str(path)))
        self.segments: list[elf.Segment] = []
        self.thread_local = 0  # bytes of a thread's block of variables
        self.symbols = SymbolTable([])
        self._path = path
        self._aliases: dict[int, str] = {}  # by address of the symbol
        self._file: elf.Elf | None = None
        try:
            self._file = file = elf.from_file(path)
        except (OSError, elf.NotElf):
            return
        self.fixed = file.type == elf.ET_EXEC
        self.segments, self.thread_local = file.segments, file.thread_local
        richest = self._split_symbols() if not file.has_symtab else None
        self.symbols = SymbolTable([*bounded(richest or file), *plt.symbols(file)])

    @cached_property
    def _debug(self) -> tuple[debug.Debug, elf.Elf] | None:
        """The debug information, and the file that has it."""
        return debug.of(self._path, self._file) if self._file else None

    def _split_symbols(self) -> elf.Elf | None:
        return self._debug[1] if self._debug and self._debug[1].has_symtab else None

    def at(self, address: int) -> Place | None:
        """The symbol at an address. If functions share their code, as pthread_spin_init and pthread_spin_unlock do, it is the one
        that the source file is named after."""
        place = self.symbols.at(address)
        if place is None or not place.symbol.is_code:
            return place
        symbol = place.symbol
        if symbol.address not in self._aliases:
            self._aliases[symbol.address] = self._of_source_file(symbol)
        return Place(replace(symbol, name=self._aliases[symbol.address]), place.offset)

    def _of_source_file(self, symbol: Symbol) -> str:
        names = [name for name in self.symbols.alike(symbol) if not name.startswith("_")]
        plain = {name: LARGE_FILE.sub("", demangle.VERSION.sub("", name)) for name in names}
        source = self.source(symbol.address) if len(set(plain.values())) > 1 else None
        file = LARGE_FILE.sub("", Path(source.at.rpartition(":")[0]).stem) if source else ""
        return next((name for name in names if plain[name] == file), symbol.name)

    @property
    def notes(self) -> list[str]:
        """Problems with the debug information that was needed so far."""
        read = self.__dict__.get("_debug")
        return list(read[0].notes) if read else []

    def name_of(self, place: Place) -> tuple[str, str]:
        """The name of a place in the source, and the field alone: `stats[2].packets`, `[2].packets`. Without debug information it
        has no field."""
        symbol, rest = place.symbol, f"+{place.offset:#x}" if place.offset else ""
        if symbol.is_code:
            return demangle.function(symbol.name) + rest, ""
        name, read = demangle.variable(symbol.name), self._debug[0] if self._debug else None
        found = read.variable(symbol.address, place.offset) if read else None
        if read is None or found is None:
            return name + rest, ""
        name, (function, path) = read.block(symbol.address) or name, found
        if function and COUNTED.search(name):
            name = f"{function}::{COUNTED.sub('', name)}"
        return name + path, path.removeprefix(".")

    def type_of(self, place: Place) -> str:
        """The type of the field at a place; empty without debug information."""
        return self._debug[0].type_at(place.symbol.address, place.offset) if self._debug else ""

    @cached_property
    def unwinding(self) -> Cfi | None:
        """The unwind tables of its code."""
        return Cfi(self._file.data) if self._file else None

    def code(self, address: int, size: int) -> bytes:
        """Bytes at a link address; fewer where the file has no more."""
        return self._file.read(address, size) if self._file else b""

    def function(self, address: int) -> str:
        place = self.at(address)
        return demangle.function(place.symbol.name) if place else f"{address:#x}"

    def variables(self, one: Activation) -> list[Variable]:
        """The variables of a call of one of its functions; none without debug information."""
        read = self._debug[0] if self._debug else None
        return [Variable(local.start, local.end, local.function, local.name, partial(read.read_field, local.type))
                for local in read.locals(one)] if read else []

    def source(self, address: int) -> Source | None:
        """File and line of an instruction."""
        return self._debug[0].source(address) if self._debug else None

    def result(self, address: int, name: str) -> "debug.Result | None":
        """The type of the memory that the call before an address has returned."""
        frame = self.unwinding.depth(address) if self.unwinding else None
        return self._debug[0].result(self.code(address, CODE), address, name, frame) if self._debug else None

    def made(self, address: int, depth: int) -> "debug.Result | None":
        """The type of the memory that one of the innermost `depth` functions at an instruction allocates, by its template."""
        return self._debug[0].made(address, depth) if self._debug else None

    def covers(self, address: int) -> bool:
        return any(s.address <= address < s.address + s.size for s in self.segments)

    def address_of(self, offset: int) -> int | None:
        """The link address of the byte at an offset in the file."""
        return next((s.address + offset - s.offset for s in self.segments if 0 <= offset - s.offset < s.file_size), None)


def bounded(file: elf.Elf) -> Iterator[tuple[int, int, str, str]]:
    """Symbols with the size that they cover. A symbol without a size, as in assembly code, covers the bytes up to the next symbol
    or the end of its section. Marks of the ends of sections (`_end`) and labels inside other symbols cover nothing."""
    rows = sorted(file.symbols(), key=lambda row: row[0])
    sized = {row[0] for row in rows if row[1]}
    addresses = sorted({row[0] for row in rows})
    following = dict(pairwise(addresses))
    end = 0
    for address, size, kind, name in rows:
        if size or address in sized:
            end = max(end, address + size)
            yield address, size, kind, name
        elif address >= end:
            limit = file.section_end(address)
            extent = min(following.get(address, limit), limit) - address
            if extent > 0:
                yield address, extent, kind, name


def _in_common(one: list[str], other: list[str]) -> int:
    """How many parts at the end of two paths are the same."""
    return next((n for n, (a, b) in enumerate(zip(reversed(one), reversed(other), strict=False)) if a != b), min(len(one), len(other)))


class Users:
    def __init__(self, tasks: Tasks, binaries: Mapping[str, Path | str], other: Callable[[str], Path | None] | None = None) -> None:
        """`other` finds the host's copy of a file that is not in `binaries`."""
        self._tasks = tasks
        self._other = other
        self._paths = {name: Path(path) for name, path in binaries.items()}
        self._programs: dict[str, Program] = {}
        self._found: dict[str, Program | None] = {}  # by file
        self._by_name: dict[str, list[str]] = {}
        self._pages: dict[tuple[Process, int], tuple[Program | None, int]] = {}  # results of _loaded(), the same for a whole page
        for name in self._paths:
            self._by_name.setdefault(name.rsplit("/", 1)[-1], []).append(name)

    def refresh(self) -> None:
        """Call it after Tasks.refresh(): forgets the contents of address spaces."""
        self._pages.clear()

    def program(self, file: str) -> Program | None:
        """The host's copy of a guest's file; of several files with this name, the one whose path has the most parts at its end in
        common."""
        if file not in self._found:
            parts = file.partition(":")[2].split("/") if ":" in file else file.split("/")
            names = self._by_name.get(parts[-1], [])
            if names:
                self._found[file] = self._of_name(max(names, key=lambda one: _in_common(one.split("/"), parts)))
            else:
                copy = self._other(file) if self._other else None
                self._found[file] = Program(parts[-1], copy, "/".join(parts)) if copy else None
        return self._found[file]

    def _of_name(self, name: str) -> Program:
        if name not in self._programs:
            self._programs[name] = Program(name.rsplit("/", 1)[-1], self._paths[name], name)
        return self._programs[name]

    def place(self, address: int, cr3: int) -> tuple[Program, Place] | None:
        """(program, symbol) of an address in the address space of `cr3`."""
        for find in (self.linked, self._of_thread):
            program, link = find(address, cr3)
            if program and (place := program.at(link)):
                return program, place
        return None

    def _of_thread(self, address: int, cr3: int) -> tuple[Program | None, int]:
        """The program of the process, and where in its block of variables of a thread an address is. The block of the program ends at
        the thread pointer (ELF Handling For Thread-Local Storage, variant II); those of libraries lie below it."""
        program, at = self._before_thread(address, cr3)
        return (program, elf.THREAD_LOCAL + at) if at >= 0 else (None, 0)

    def _before_thread(self, address: int, cr3: int) -> tuple[Program | None, int]:
        """The program, and the distance of an address from the next block of a thread's variables: 0 or more if it is inside."""
        process = self._tasks.process(cr3)
        pointer = self._tasks.thread_pointer(process, address) if process else 0
        program = self.program(process.exe) if process and pointer else None
        return program, address - pointer + program.thread_local if program and program.thread_local else -USER_TOP

    def none_in_page(self, page: int, cr3: int) -> bool:
        """Whether place() finds nothing in the page at an address."""
        if self._tasks.process(cr3) is None:
            return not any(p.fixed and any(s.address < page + PAGE and page < s.address + s.size for s in p.segments)
                           for p in map(self.program, self._paths) if p)
        if self._before_thread(page, cr3)[1] > -PAGE:
            return False
        program, link = self.linked(page, cr3)
        return program is None or program.symbols.none_in(link, link + PAGE)

    def extent(self, address: int, cr3: int) -> tuple[int, int] | None:
        """[first, end) of the variable at an address in the address space of `cr3`; without one, of the area that contains the
        address."""
        found = self.place(address, cr3)
        if found and not found[1].symbol.is_code:
            start = address - found[1].offset
            return start, start + found[1].symbol.size
        process = self._tasks.process(cr3)
        area = self._tasks.area(process, address) if process else None
        return (area.start, area.end) if area and area.what != "file" else None

    def source(self, address: int, cr3: int) -> Source | None:
        """File and line of an instruction in the address space of `cr3`."""
        program, link = self.linked(address, cr3)
        return program.source(link) if program else None

    def of_system(self, address: int, cr3: int) -> bool:
        """Whether an instruction belongs to a system library, whose source lines are not the program's."""
        program, _ = self.linked(address, cr3)
        return program is not None and program.of_system

    def unwinding(self, address: int, cr3: int) -> tuple[Cfi, int] | None:
        """The unwind tables of a program's code, and the link address of the instruction."""
        program, link = self.linked(address, cr3)
        return (program.unwinding, link) if program and program.unwinding else None

    def result(self, address: int, cr3: int, name: str) -> "debug.Result | None":
        program, link = self.linked(address, cr3)
        return program.result(link, name) if program else None

    def made(self, address: int, cr3: int, depth: int) -> "debug.Result | None":
        program, link = self.linked(address, cr3)
        return program.made(link, depth) if program else None

    def notes(self) -> list[str]:
        return [note for program in dict.fromkeys((*self._programs.values(), *self._found.values())) if program for note in program.notes]

    def linked(self, address: int, cr3: int) -> tuple[Program | None, int]:
        """(program, link address) of an address in the address space of `cr3`. If that process is unknown, the program is found
        by its address, provided that exactly one program is linked to this fixed address."""
        process = self._tasks.process(cr3)
        if process is None:
            return self._fixed(address), address
        page = process, address // PAGE
        if page not in self._pages:
            self._pages[page] = self._loaded(process, address)
        program, bias = self._pages[page]
        return program, address - bias

    def _fixed(self, address: int) -> Program | None:
        """The program that is linked to an address, if there is exactly one."""
        fits = [p for p in map(self.program, self._paths) if p and p.fixed and p.covers(address)]
        return fits[0] if len(fits) == 1 else None

    def owner(self, address: int, cr3: int) -> str:
        """The file of code that has no symbols, so that the instructions of a program add up."""
        process = self._tasks.process(cr3)
        area = self._tasks.area(process, address) if process else None
        program = self._fixed(address) if process is None else None
        file = area.file.rsplit("/", 1)[-1] if area and area.file else area.what if area else program.name if program else ""
        if not file and process:
            file = process.exe.rsplit("/", 1)[-1]
        return f"{file or 'user code'}{WITHOUT_SYMBOLS}"

    def place_in_file(self, file: str, offset: int) -> tuple[Program, Place] | None:
        """(program, symbol) of the byte at an offset in a program's file."""
        program = self.program(file)
        address = program.address_of(offset) if program else None
        place = program.at(address) if program and address is not None else None
        return (program, place) if program and place else None

    def _loaded(self, process: Process, address: int) -> tuple[Program | None, int]:
        """The program that an address belongs to, and the distance from its link addresses to where it was loaded."""
        area = self._tasks.area(process, address)
        program = self.program(area.file if area and area.file else process.exe)
        if program is None or program.fixed:
            return program, 0
        if area is None or area.what != "file":
            # Zeroed data follows the file's own areas; the nearest area below gives the distance.
            below = [a for a in self._tasks.areas(process) if a.what == "file" and a.end <= address]
            area = below[-1] if below else None
            program = self.program(area.file) if area else None
        if program is None or area is None:
            return None, 0
        # All segments are loaded at the same distance. The area in which the file begins gives the distance, because other areas
        # are ambiguous: a page of the file may belong to two segments, and the loader may have split off an area that it made
        # read-only.
        file = area.file
        heads = [a for a in self._tasks.areas(process) if a.what == "file" and a.file == file and a.offset == 0 and a.start <= address]
        for s in program.segments:
            if heads and s.offset // PAGE == 0:
                return program, heads[-1].start - s.address // PAGE * PAGE
            if s.offset // PAGE * PAGE == area.offset:
                return program, area.start - s.address // PAGE * PAGE
        return None, 0
