# SPDX-License-Identifier: BSD-3-Clause
"""Where a program's debug information is: in its own file, or split off into a file beside it or in the system's folder.

A split file is found by the program's build ID or by the name in its section .gnu_debuglink, as debuggers find it, and it is
taken only if its build ID or its checksum is the program's.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from moscope.naming import elf

SYSTEM = Path("/usr/lib/debug")
DEBUG_INFO = (".debug_info", ".zdebug_info")
BUILD_ID = 3  # NT_GNU_BUILD_ID


def build_id(file: elf.Elf) -> str:
    """In hexadecimal digits; empty where the file has none."""
    note = file.section(".note.gnu.build-id") or b""
    if len(note) < 16:
        return ""
    name, size, kind = struct.unpack_from("<III", note)
    at = 12 + (name + 3) // 4 * 4
    return note[at : at + size].hex() if kind == BUILD_ID else ""


def _link(file: elf.Elf) -> tuple[str, int] | None:
    """The name and the checksum that .gnu_debuglink gives."""
    raw = file.section(".gnu_debuglink")
    if not raw or len(raw) < 8:
        return None
    return raw.split(b"\0")[0].decode(errors="replace"), struct.unpack_from("<I", raw, len(raw) - 4)[0]


def _candidates(path: Path, identity: str, link: str) -> Iterator[Path]:
    folder = path.absolute().parent
    if identity:
        for root in (folder, SYSTEM):
            yield root / ".build-id" / identity[:2] / f"{identity[2:]}.debug"
    for name in dict.fromkeys(filter(None, (link, f"{path.name}.debug"))):
        if "/" not in name:
            yield folder / name
            yield folder / ".debug" / name
            yield SYSTEM / folder.relative_to("/") / name


def find(path: Path, file: elf.Elf) -> tuple[Path, elf.Elf] | None:
    """The file with the debug information of a program and what it holds; None where there is none."""
    if any(file.section(name) for name in DEBUG_INFO):
        return path, file
    identity, link = build_id(file), _link(file)
    for candidate in _candidates(path, identity, link[0] if link else ""):
        try:
            found = elf.from_file(candidate)
        except (OSError, elf.NotElf):
            continue
        same = build_id(found) == identity if identity else link is not None and zlib.crc32(found.data) == link[1]
        if same and any(found.section(name) for name in DEBUG_INFO):
            return candidate, found
    return None
