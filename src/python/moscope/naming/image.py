# SPDX-License-Identifier: BSD-3-Clause
"""The contents of a kernel's image: its symbols (kallsyms, or the ELF's own table) and its types (section .BTF, or the
file of that format beside the image).

A bzImage's payload is found by the header of the Linux x86 boot protocol (payload_offset, version 2.08 on). Results
are kept in the cache under the image's digest.
"""

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moscope import paths
from moscope.aside import write_whole
from moscope.errors import UserError
from moscope.guest.packages import digest_of
from moscope.naming import debug_file, elf, kallsyms, unpack
from moscope.naming.btf import Btf, NoType, read
from moscope.naming.symbols import SymbolTable

VERSION = 4  # of what the cache holds
PER_CPU_TOP = 1 << 31  # symbols below it are offsets into a core's own area
BANNER_BYTES = 64
TABLE, SYSTEM_CALL, NONE = "sys_call_table", "__x64_sys_", "ni_syscall"  # the last is the entry of numbers without a system call
MOST_SYSTEM_CALLS = 1024


@dataclass(frozen=True)
class UnwindTables:
    """Sections .orc_unwind_ip, which lies at `first`, and .orc_unwind (naming/unwind/orc.py)."""

    first: int
    places: bytes
    entries: bytes


@dataclass(frozen=True)
class KernelImage:
    """Addresses are those the image was linked for; `per_cpu` holds offsets. `banner` is the text at `banner_at`. `notes` says
    why there are no types, if so."""

    sha256: str
    symbols: SymbolTable
    per_cpu: SymbolTable
    btf: bytes
    banner: bytes
    banner_at: int
    orc: UnwindTables | None = None
    build_id: str = ""  # hexadecimal digits
    system_calls: Mapping[str, int] = field(default_factory=dict)  # numbers by name; empty if their table has no symbol
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> int:
        return self.symbols.address("_text") or 0


def beside(image: Path, what: str = "btf") -> Path:
    """The file beside an image with its types, if it has no section .BTF, or with its debug information (`debug`)."""
    return image.with_name(f"{image.name}.{what}")


def load(image: Path) -> KernelImage:
    """A kernel's names, from the cache or from the image: a bzImage or an ELF vmlinux. An image without symbols or
    types yields empty tables; a file that is no kernel is a UserError."""
    digest = digest_of(image)
    kept = paths.cache_dir() / "naming" / f"{digest[:32]}-v{VERSION}"
    try:
        document = json.loads((kept / "symbols.json").read_text())
        btf, places, entries = ((kept / name).read_bytes() for name in ("btf", "orc-places", "orc-entries"))
    except (OSError, ValueError):
        document, btf, places, entries = _extract(image)
        _keep(kept, {"btf": btf, "orc-places": places, "orc-entries": entries, "symbols.json": json.dumps(document).encode()})
    rows = document["symbols"]
    per_cpu = SymbolTable((a, s, k, n) for a, s, k, n in rows if a < PER_CPU_TOP)
    btf, notes = _types(image, btf, per_cpu)
    return KernelImage(
        digest,
        SymbolTable((a, s, k, n) for a, s, k, n in rows if a >= PER_CPU_TOP),
        per_cpu, btf, bytes.fromhex(document["banner"]), document["banner_at"],
        UnwindTables(document["orc_at"], places, entries) if places else None, document["build_id"], document["system_calls"],
        notes)


def _types(image: Path, own: bytes, per_cpu: SymbolTable) -> tuple[bytes, tuple[str, ...]]:
    """The section .BTF of an image, or the file beside it, and no notes; if neither has the image's types, nothing, and a note."""
    file = image if own else beside(image)
    try:
        content = own or file.read_bytes()
        if fault := _fault(read(content), per_cpu):
            raise NoType(fault)
        return content, ()
    except FileNotFoundError:
        why = f"{image}: has no types: expected a section .BTF, or the file {file}"
    except OSError as error:
        why = f"{file}: cannot be read ({error.strerror}): expected the types of the kernel (BTF)"
    except NoType as error:
        why = f"{file}: its types cannot be used ({error}): expected the BTF of this kernel"
    return b"", (f"{why}; most of the kernel's data has no names",)


def _fault(types: Btf, per_cpu: SymbolTable) -> str:
    """Why these are not the types of a kernel with these per-CPU variables, which lie elsewhere in almost any other build."""
    if not types:
        return "there are none"
    both = [(offset, at) for name, offset in types.placed().items() if (at := per_cpu.address(name)) is not None]
    elsewhere = sum(offset != at for offset, at in both)
    return f"{elsewhere} of {len(both)} per-CPU variables lie elsewhere in the image" if 2 * elsewhere > len(both) else ""


def payload(data: bytes, name: str = "kernel") -> bytes:
    """The ELF vmlinux inside `data`."""
    if data.startswith(b"\x7fELF"):
        return data
    if len(data) < 0x250 or data[0x202:0x206] != b"HdrS" or struct.unpack_from("<H", data, 0x206)[0] < 0x208:
        raise UserError(f"{name}: is not a kernel image: expected a bzImage (boot protocol 2.08 or later) or an ELF vmlinux")
    sectors = data[0x1F1] or 4
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = (sectors + 1) * 512 + offset
    try:
        return unpack.unpack(data[start : start + length])
    except unpack.CannotUnpack as error:
        raise UserError(f"{name}: its payload cannot be unpacked: {error}: expected an undamaged image") from error


def _extract(image: Path) -> tuple[dict[str, Any], bytes, bytes, bytes]:
    """The document with names, the types, and the two sections of the unwind tables."""
    vmlinux = payload(image.read_bytes(), str(image))
    try:
        file = elf.Elf(vmlinux)
    except elf.NotElf as error:
        raise UserError(f"{image}: {error}: expected a Linux kernel for x86-64") from error
    rows = [(a, s, k, n) for a, s, k, n in file.symbols()]
    if not rows:
        try:
            rows = [(a, 0, k, n) for a, k, n in kallsyms.parse(vmlinux)]
        except kallsyms.NoSymbols:
            rows = []
    banner_at = next((a for a, _, _, n in rows if n == "linux_banner"), 0)
    banner = file.read(banner_at, BANNER_BYTES) if banner_at else b""
    orc_at, _ = file.section_range(".orc_unwind_ip") or (0, 0)
    types, places, entries = (file.section(name) or b"" for name in (".BTF", ".orc_unwind_ip", ".orc_unwind"))
    return ({"symbols": rows, "banner": banner.hex(), "banner_at": banner_at, "orc_at": orc_at, "build_id": debug_file.build_id(file),
             "system_calls": _system_calls(file, rows)}, types, places, entries)


def _system_calls(file: elf.Elf, rows: Iterable[tuple[int, int, str, str]]) -> dict[str, int]:
    """The numbers of system calls by name, from the functions in sys_call_table, an array of pointers for 64-bit programs."""
    functions: dict[int, str] = {}
    table = 0
    for address, _, _, name in rows:
        if name == TABLE:
            table = address
        elif name.startswith(SYSTEM_CALL):
            functions[address] = name.removeprefix(SYSTEM_CALL)
    found: dict[str, int] = {}
    content = file.read(table, MOST_SYSTEM_CALLS * 8) if table else b""
    for number, (address,) in enumerate(struct.iter_unpack("<Q", content[: len(content) // 8 * 8])):
        if address not in functions:
            break
        if functions[address] != NONE:
            found.setdefault(functions[address], number)
    return found


def _keep(folder: Path, files: dict[str, bytes]) -> None:
    """Writes results to the cache; several processes may do so at once. A cache that cannot be written is not used."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(folder / name, content)
    except OSError:
        return
