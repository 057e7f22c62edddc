# SPDX-License-Identifier: BSD-3-Clause
"""Functions of a user's program that a run counts (`--count`) or at which it begins (`--begin call:NAME`). This module finds them
in the files of the program and its libraries, for the engine's probes (board/program_probes.hh). It also handles counted system
calls.

A name is a symbol, or its demangled form with or without parameters; a name without parameters means all overloads. A procedure of
a Fortran module is also found without its module. The program's own functions take precedence: libraries are searched only if the
program has no function of that name.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from moscope.errors import UserError, unknown_name
from moscope.guest import packages
from moscope.naming import debug_file, demangle, elf

CALL = "call:"  # of --begin
SYSTEM_CALL, ANY = "syscall:", "any"  # of --count
PROGRAMS = "programs/"  # the folder of the user's program in the guest
PARTS = re.compile(r"\.(part\.\d+|cold(\.\d+)?)\Z")  # parts that compilers split off from functions
OF_FILE = re.compile(r"([\w.+-]+):(?!:)(.+)\Z")  # libz.so.1:inflate
MOST_LISTED = 12
BEGINS = "_start"  # a program's first instruction, which belongs to the program itself
# Symbols of allocators in the C and C++ libraries, and how the engine reads their arguments: mmap has the size second, as
# aligned_alloc does. If an address has several symbols, the first of these is used.
ALLOCATORS = {"malloc": "malloc", "calloc": "calloc", "realloc": "realloc", "aligned_alloc": "aligned", "memalign": "aligned",
              "posix_memalign": "posix_memalign", "valloc": "malloc", "free": "free", "mmap": "aligned", "mmap64": "aligned",
              "munmap": "free",
              **{f"_Zn{kind}m{how}": "malloc" for kind in "wa"
                 for how in ("", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t")}}
ALLOCATING = re.compile(r"lib(c|stdc\+\+|jemalloc|tcmalloc\w*|mimalloc)[.-]")  # libraries that contain allocators


class Watched(Protocol):
    """A system with probes."""

    def code_report(self) -> str: ...


@dataclass(frozen=True)
class Function:
    file: Path
    offset: int
    symbol: str

    @property
    def name(self) -> str:
        return demangle.function(self.symbol)

    @property
    def place(self) -> tuple[str, int]:
        """Identifies the code of a function. It is equal for the same file under different names in the guest, because the engine
        finds code by the file's content."""
        return _digest(self.file), self.offset

    @property
    def titles(self) -> set[str]:
        plain = demangle.VERSION.sub("", self.symbol)
        of_module = {self.name.rpartition("::")[2]} if demangle.OF_MODULE.match(plain) else set()
        return {self.symbol, plain, self.name, demangle.variable(demangle.CLONE.sub("", plain)), *of_module}


@lru_cache
def _digest(file: Path) -> str:
    """The digest of a file, computed once, because a name can mean hundreds of functions of a file."""
    return packages.digest_of(file)


def of_file(path: Path) -> list[Function]:
    """The functions of an ELF file, from its symbols and, if these are stripped, from its debug information; none for another
    file."""
    try:
        file = elf.from_file(path)
    except (OSError, elf.NotElf):
        return []
    split = None if file.has_symtab else debug_file.find(path, file)
    rows = [*(split[1].symbols() if split else ()), *file.symbols()]
    found: dict[tuple[int, str], Function] = {}
    for address, _, kind, symbol in rows:
        offset = next((s.offset + address - s.address for s in file.segments if 0 <= address - s.address < s.file_size), None)
        if kind in "tT" and offset is not None and not PARTS.search(symbol):
            found.setdefault((offset, symbol), Function(path, offset, symbol))
    return list(found.values())


def files(programs: Mapping[str, Path], program: str) -> tuple[list[Path], list[Path]]:
    """The program's own file, and the other files that go into the guest with it. `programs`: files by their paths in the guest,
    including moscope's own."""
    along = {guest: path for guest, path in programs.items() if guest.startswith(("/", PROGRAMS))}
    own = [path for guest, path in along.items() if guest == PROGRAMS + program] or [
        path for guest, path in along.items() if guest.rsplit("/", 1)[-1] == program]
    return own, [path for path in along.values() if path not in own]


def find(option: str, name: str, programs: Mapping[str, Path], program: str) -> list[Function]:
    """All functions that a name means. UserError if there is none."""
    match = OF_FILE.match(name)
    only, wanted = (match[1], match[2]) if match else ("", name)
    known: list[list[str]] = []  # of the program's own file, and of its libraries
    for group in files(programs, program):
        there = [one for path in group if only in ("", path.name) for one in of_file(path)]
        if found := [one for one in there if wanted in one.titles]:
            return list({one.place: one for one in found}.values())
        known.append(sorted({one.name for one in there}))
    if not any(known):
        raise UserError(f"{option}: {name}: {only or program} has no symbols: expected a program that is not stripped, or its debug "
                        "information beside it")
    raise unknown_name(option, "function", name, known[1], first=known[0])


def allocators(programs: Mapping[str, Path], program: str) -> list[tuple[str, Function]]:
    """(role, function) of the allocators in the program and its libraries, and of the program's beginning."""
    own, others = files(programs, program)
    found: list[tuple[str, Function]] = []
    for path in (*own, *(path for path in others if ALLOCATING.match(path.name))):
        by_offset: dict[int, tuple[int, str, Function]] = {}
        order = list(ALLOCATORS)
        for one in of_file(path):
            plain = demangle.VERSION.sub("", one.symbol)
            if plain in ALLOCATORS:
                rank = order.index(plain)
                by_offset[one.offset] = min(by_offset.get(one.offset, (len(order), "", one)), (rank, ALLOCATORS[plain], one),
                                            key=lambda known: known[0])
            elif plain == BEGINS and path in own:
                found.append(("begin", one))
        found += [(role, one) for _, role, one in by_offset.values()]
    return found


class Probes:
    """The probes of a point, in the engine's order, and their results."""

    def __init__(self, count: Sequence[str], begin: str | int | None, programs: Mapping[str, Path], program: str,
                 heap: bool = False, system_calls: Mapping[str, int] | None = None) -> None:
        """`system_calls`: the numbers of the kernel's system calls by name; None if they are not known yet, so that names are not
        checked. UserError for a function or system call that does not exist."""
        self.begin = begin if isinstance(begin, str) and begin.startswith(CALL) else ""
        self._counted = [(name, one) for name in count if not name.startswith(SYSTEM_CALL)
                         for one in find("--count", name, programs, program)]
        named: dict[tuple[str, int], str] = {}
        for name, one in self._counted:
            if (other := named.setdefault(one.place, name)) != name or count.count(name) > 1:
                raise UserError(f"--count {other} and --count {name}: are the same function: expected one of the two")
        self._system_calls = [(name, number(name, system_calls)) for name in count if name.startswith(SYSTEM_CALL)]
        self._stops = find("--begin", self.begin.removeprefix(CALL), programs, program) if self.begin else []
        # Needed only for the error that the function of --begin was not called.
        self._seen = [one for path in files(programs, program)[0] for one in of_file(path)] if self.begin else []
        self._allocators = allocators(programs, program) if heap else []

    def __bool__(self) -> bool:
        return bool(self._counted or self._system_calls or self._stops or self._allocators)

    @property
    def names(self) -> list[str]:
        """The names of the functions, by the number of their probe."""
        return [one.name for one in (*(one for _, one in self._counted), *self._stops, *self._seen, *(one for _, one in self._allocators))]

    def text(self) -> str:
        """The probes as JSON for the engine."""
        def place(one: Function, does: str, name: str) -> dict[str, Any]:
            return {"file": str(one.file), "offset": one.offset, "does": does, "name": name}

        return json.dumps([*(place(one, "count", name) for name, one in self._counted),
                           *(place(one, "stop", self.begin) for one in self._stops), *(place(one, "see", "") for one in self._seen),
                           *(place(one, role, "") for role, one in self._allocators),
                           *({"system_call": which, "name": name} for name, which in self._system_calls)])

    def calls(self, system: Watched) -> dict[str, int]:
        """The calls of each counted name since the checkpoint from which the run began; empty if none is counted."""
        if not self._counted and not self._system_calls:
            return {}
        rows, last = json.loads(system.code_report()), len(self._system_calls)
        found: dict[str, int] = {}
        for (name, _), row in (*zip(self._counted, rows, strict=False),
                               *zip(self._system_calls, rows[len(rows) - last:], strict=True)):
            found[name] = found.get(name, 0) + int(row["calls"])
        return found

    def ran(self, system: Watched) -> str:
        """Those functions of the program that a core reached."""
        first = len(self._counted) + len(self._stops)
        rows = json.loads(system.code_report())[first:first + len(self._seen)]
        return listed(one.name for one, row in zip(self._seen, rows, strict=True) if row["reached"])


def number(name: str, known: Mapping[str, int] | None) -> int:
    """The number of a system call such as `syscall:write`; -1 for any."""
    wanted = name.removeprefix(SYSTEM_CALL)
    if known is None or wanted == ANY:
        return -1
    if not known:
        raise UserError(f"--count: {name}: the kernel's table of system calls has no symbol: expected {SYSTEM_CALL}{ANY}, or a kernel with "
                        "all symbols (CONFIG_KALLSYMS_ALL)")
    if wanted not in known:
        raise unknown_name("--count", "system call", wanted, (ANY, *known))
    return known[wanted]


def listed(names: Iterator[str]) -> str:
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else ""
    return ", ".join(found[:MOST_LISTED]) + more if found else "none"
