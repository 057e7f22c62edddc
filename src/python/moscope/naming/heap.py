# SPDX-License-Identifier: BSD-3-Clause
"""Names for heap memory by the place of its allocation: `calloc at stats.c:51` (src/board/allocations.hh follows the
allocators).

The place is the innermost line of the program's own code. Lines of libraries, and of their headers inlined into the program
(`new` within std::vector), are skipped. Without debug information, the place is the innermost function in the program's file.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from moscope.naming.debug import Result
from moscope.naming.dwarf.sources import Source
from moscope.naming.own_code import is_own
from moscope.naming.tasks import TABLE_MASK
from moscope.naming.unwind import chains

PIECE = np.dtype([(name, "<u8") for name in ("address_space", "start", "size", "site", "freed")])
CALLED_AT = " called at "
MAPPING = re.compile(r"mmap(64)?\Z")
ELEMENT = re.compile(r"allocator<(?!void>)([\w:]+)>")  # of a container of C++
MOST_NAMED = 256  # elements of an array whose names have their index
NEW = re.compile(r"operator (new|new\[\])\Z")


@dataclass(frozen=True)
class Piece:
    """The memory of one allocation: [start, start + size)."""

    start: int
    size: int
    site: int
    freed: bool


@dataclass(frozen=True)
class Code:
    """Functions that describe the code of user programs, by address and CR3."""

    source: Callable[[int, int], Source | None]  # None in system libraries
    function: Callable[[int, int], str]  # PROGRAM:FUNCTION
    program: Callable[[int], str]  # the name of the file that a process runs
    chain: Callable[[chains.Sample], list[int]]
    result: Callable[[int, int, str], Result | None]  # the type that the call before an address returned, or of this name
    made: Callable[[int, int, int], Result | None]  # the type for which one of the innermost N functions there allocates memory


class Heap:
    """The allocations of a system at one moment. `functions`: names of the engine's probes, by number."""

    def __init__(self, packed: tuple[bytes, bytes], functions: Sequence[str], code: Code) -> None:
        pieces = np.frombuffer(packed[0], PIECE)
        self._of: dict[int, tuple[list[int], np.ndarray]] = {}  # of PIECE
        for space in np.unique(pieces["address_space"]).tolist():
            mine = pieces[pieces["address_space"] == space]
            self._of[space] = mine["start"].tolist(), mine
        self._sites = list(chains.samples(packed[1]))
        self._functions, self._code = functions, code
        self._titles: dict[int, tuple[str, Result | None]] = {}

    def at(self, va: int, cr3: int) -> Piece | None:
        starts, pieces = self._of.get(cr3 & TABLE_MASK, ([], None))
        i = bisect_right(starts, va) - 1
        if pieces is None or i < 0:
            return None
        found = pieces[i]
        if va >= int(found["start"]) + int(found["size"]):
            return None
        return Piece(int(found["start"]), int(found["size"]), int(found["site"]), bool(found["freed"]))

    def none_in(self, first: int, end: int, cr3: int) -> bool:
        """Whether [first, end) contains no part of a piece."""
        starts, _ = self._of.get(cr3 & TABLE_MASK, ([], None))
        return self.at(first, cr3) is None and bisect_left(starts, first) == bisect_left(starts, end)

    def mapping(self, piece: Piece) -> bool:
        """Whether the program has mapped the memory itself (anonymous or from a file): the area then has the name."""
        return bool(MAPPING.match(self._functions[self._sites[piece.site].line]))

    def name(self, piece: Piece, va: int) -> tuple[str, str, str]:
        """For a byte of a piece: its name, the field, and the field's type: `calloc at stats.c:51 (worker_stats)[2].packets`,
        `[2].packets`, `long`. Without a type, the name is that of the site, and the field is a distance."""
        title, result = self.title(piece.site)
        if result is None or not result.name or piece.size < result.size or piece.size % result.size:
            return title, f"+{va - piece.start:#x}", ""
        elements = piece.size // result.size
        index, path, typed = result.field(va - piece.start)
        field = f"[{index}]{path}" if elements > 1 else path
        named = path if elements > MOST_NAMED else field
        return f"{title} ({result.name}){named}", field.removeprefix("."), typed

    def title(self, site: int) -> tuple[str, Result | None]:
        """`calloc at stats.c:51`, `new at pool.cc:12`, or `malloc in FUNCTION`; and the type of the memory."""
        if site not in self._titles:
            self._titles[site] = self._title(self._sites[site])
        return self._titles[site]

    def _title(self, sample: chains.Sample) -> tuple[str, Result | None]:
        space, chain = sample.address_space, self._code.chain(sample)
        called = NEW.sub(r"\1", self._functions[sample.line])
        mapped = MAPPING.match(called)  # by a library for its own purpose, as by pthread_create for a stack, or by the program itself
        made: Result | None = None
        for n, address in enumerate(chain):
            source = self._code.source(address, space)
            lines = places(source)
            own = next((at for at, place in enumerate(lines) if is_own(place)), None)
            if made is None and lines and own != 0 and not mapped:  # functions of libraries alone allocate for others
                made = self._code.made(address, space, len(lines) if own is None else own)
            if own is None:
                continue
            if made is None:
                within = f"{source.calls if source else ''} {self._code.function(chain[0], space)}"
                element = None if mapped else ELEMENT.search(within)
                made = self._code.result(address + 1, space, element[1] if element else "") if element or not n else None
            return f"{called} at {lines[own].rsplit('/', 1)[-1]}", made
        program = self._code.program(space)
        names = [self._code.function(address, space) for address in chain]
        function = next((name.partition(":")[2] for name in names if name.startswith(f"{program}:")), "")
        return f"{called} in {function or (names[0] if names else 'unknown code')}", None


def places(source: Source | None) -> list[str]:
    """The line of an instruction, then the lines of the calls of functions that were inlined there, innermost first."""
    return [source.at, *(call.rpartition(CALLED_AT)[2] for call in source.inlined)] if source else []
