# SPDX-License-Identifier: BSD-3-Clause
"""The procedure linkage table of a program (System V ABI for x86-64, 5.2): the stubs through which it calls functions of libraries. They
have no symbols. A stub jumps to an address in the global offset table; the relocation of that address names the function."""

import struct
from collections.abc import Iterator

from moscope.naming import demangle
from moscope.naming.elf import SHT_NOBITS, SHT_RELA, Elf

STUBS = {".plt": 16, ".plt.sec": 16, ".plt.got": 8}  # sections, and the bytes of a stub
JUMP = b"\xff\x25"  # jmp [rip + displacement]
RELOCATION, SYMBOL = 24, 24  # bytes
GLOB_DAT, JUMP_SLOT = 6, 7


def symbols(file: Elf) -> Iterator[tuple[int, int, str, str]]:
    """(address, size, kind letter, name) of each stub, as `Elf.symbols`: `plt of pthread_create`. A stub of no known function, such as the
    first one, which calls the dynamic loader, has the name of its section."""
    sections = [s for s in file.sections if s.name in STUBS and s.kind != SHT_NOBITS]
    called = _called(file) if sections else {}
    for section in sections:
        step = STUBS[section.name]
        for at in range(0, min(section.size, len(file.data) - section.offset), step):
            code = file.data[section.offset + at:section.offset + min(at + step, section.size)]
            jump = code.find(JUMP)
            name = None
            if 0 <= jump <= len(code) - 6:
                (displacement,) = struct.unpack_from("<i", code, jump + 2)
                name = called.get(section.address + at + jump + 6 + displacement)
            yield section.address + at, len(code), "t", f"plt of {name}" if name else section.name


def _called(file: Elf) -> dict[int, str]:
    """The names of functions, by the addresses at which the loader stores theirs."""
    found = {}
    for section in file.sections:
        if section.kind != SHT_RELA or section.link >= len(file.sections):
            continue
        table = file.sections[section.link]
        for at in range(section.offset, min(section.offset + section.size, len(file.data)) - RELOCATION + 1, RELOCATION):
            where, info = struct.unpack_from("<QQ", file.data, at)
            symbol = info >> 32
            if info & 0xFFFFFFFF in (GLOB_DAT, JUMP_SLOT) and 0 < symbol < table.size // SYMBOL:
                found[where] = demangle.function(file.name_of_symbol(table, symbol))
    return {where: name for where, name in found.items() if name}
