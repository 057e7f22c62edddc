# SPDX-License-Identifier: BSD-3-Clause
"""Where a program's debug information is: in its own file, or split off into a file beside it or in the system's folder.

A split file is found by the program's build ID or by the name in its section .gnu_debuglink, as debuggers find it, and it is
taken only if its build ID or its checksum is the program's.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from moscope.naming import elf

SYSTEM = Path("/usr/lib/debug")
DEBUG_INFO = (".debug_info", ".zdebug_info")
BUILD_ID = 3  # NT_GNU_BUILD_ID


def build_id(file: elf.Elf) -> str:
    """The build ID in hexadecimal digits; empty if the file has none. A kernel has it among the notes of its section .notes."""
    notes = file.section(".note.gnu.build-id") or file.section(".notes") or b""
    while len(notes) >= 12:
        name, size, kind = struct.unpack_from("<III", notes)
        at = 12 + _padded(name)
        if kind == BUILD_ID and notes[12 : 12 + name] == b"GNU\0":
            return notes[at : at + size].hex()
        notes = notes[at + _padded(size) :]
    return ""


def _padded(size: int) -> int:
    return (size + 3) // 4 * 4


def has_debug(file: elf.Elf) -> bool:
    return any(file.section(name) for name in DEBUG_INFO)


def _link(file: elf.Elf) -> tuple[str, int] | None:
    """The name and the checksum that .gnu_debuglink gives."""
    raw = file.section(".gnu_debuglink")
    if not raw or len(raw) < 8:
        return None
    return raw.split(b"\0")[0].decode(errors="replace"), struct.unpack_from("<I", raw, len(raw) - 4)[0]


def _candidates(path: Path, identity: str, names: Iterable[str], under: str) -> Iterator[Path]:
    folder = path.absolute().parent
    if identity:
        for root in (folder, SYSTEM):
            yield root / ".build-id" / identity[:2] / f"{identity[2:]}.debug"
    for name in dict.fromkeys(names):
        if name and "/" not in name:
            yield folder / name
            yield folder / ".debug" / name
            yield SYSTEM / (under or folder.relative_to("/")) / name


def find(path: Path, file: elf.Elf) -> tuple[Path, elf.Elf] | None:
    """The file with the debug information of a program, and its content; None if there is none."""
    if has_debug(file):
        return path, file
    name, checksum = _link(file) or ("", None)
    return split(path, build_id(file), (name, f"{path.name}.debug"), checksum=checksum)


def split(path: Path, identity: str, names: Iterable[str], under: str = "", checksum: int | None = None) -> tuple[Path, elf.Elf] | None:
    """The file that was split off from `path`. It has the build ID `identity`; if there is none, this checksum. `names`: names
    that it may have; `under`: its path in the system's folder, if it is not that of `path`."""
    for candidate in _candidates(path, identity, names, under):
        try:
            found = elf.from_file(candidate)
        except (OSError, elf.NotElf):
            continue
        same = build_id(found) == identity if identity else checksum is not None and zlib.crc32(found.data) == checksum
        if same and has_debug(found):
            return candidate, found
    return None
