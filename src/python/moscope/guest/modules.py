# SPDX-License-Identifier: BSD-3-Clause
"""Loadable modules of a kernel: which other modules each one needs, from the modules' own `.modinfo` sections.

A Debian kernel package holds no modules.dep (that is made when it is installed), so the dependencies are read from
where depmod reads them. Names are compared as the kernel does, with `-` and `_` alike.
"""

import gzip
import lzma
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

from moscope.errors import UserError

_SUFFIXES = (".ko", ".ko.xz", ".ko.gz", ".ko.zst")


def canonical(name: str) -> str:
    return name.replace("-", "_")


class Modules:
    """The modules under a folder such as lib/modules/RELEASE."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, Path] = {}
        for path in sorted((folder / "kernel").rglob("*.ko*")):
            for suffix in _SUFFIXES:
                if path.name.endswith(suffix):
                    self._files[canonical(path.name.removesuffix(suffix))] = path
        builtin = folder / "modules.builtin"
        lines = builtin.read_text(encoding="utf-8").splitlines() if builtin.is_file() else []
        self._builtin = {canonical(Path(line).name.removesuffix(".ko")) for line in lines}

    def knows(self, name: str) -> bool:
        """Whether the kernel has it, built in or as a module."""
        return canonical(name) in self._files or canonical(name) in self._builtin

    def order(self, name: str) -> list[str]:
        """`name` and all that it needs, in the order in which they have to be loaded; empty if it is built in."""
        ordered: list[str] = []
        self._visit(canonical(name), ordered, [])
        return ordered

    def _visit(self, name: str, ordered: list[str], on_the_way: list[str]) -> None:
        if name in ordered or name in self._builtin and name not in self._files:
            return
        if name in on_the_way:
            raise UserError(f"{self.folder}: the modules {' -> '.join([*on_the_way, name])} depend on each other: "
                            "expected the unmodified modules of a kernel")
        if name not in self._files:
            needed = f", needed by {on_the_way[-1]}" if on_the_way else ""
            raise UserError(f"{self.folder}: has no module {name}{needed}: expected the modules of the kernel that is booted")
        for other in depends(self.data(name), str(self._files[name])):
            self._visit(canonical(other), ordered, [*on_the_way, name])
        ordered.append(name)

    def data(self, name: str) -> bytes:
        """The module's object file, unpacked."""
        path = self._files[canonical(name)]
        try:
            return _unpacked(path)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, subprocess.CalledProcessError) as error:
            raise UserError(f"{path}: cannot be unpacked ({error}): expected the unmodified modules of a kernel") from error


def _unpacked(path: Path) -> bytes:
    raw = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(raw)
    if path.suffix == ".gz":
        return gzip.decompress(raw)
    if path.suffix == ".zst":
        if shutil.which("zstd") is None:
            raise UserError(f"{path}: is compressed with zstd, which this system lacks: expected the package zstd")
        return subprocess.run(["zstd", "-dcq"], input=raw, capture_output=True, check=True).stdout
    return raw


def depends(module: bytes, name: str) -> list[str]:
    """What the `depends=` of a module's .modinfo names."""
    try:
        for entry in _section(module, b".modinfo").split(b"\0"):
            key, _, value = entry.partition(b"=")
            if key == b"depends":
                return [n for n in value.decode("ascii").split(",") if n]
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise UserError(f"{name}: is not a kernel module ({error}): expected a 64-bit ELF object") from error
    return []


def _section(elf: bytes, wanted: bytes) -> bytes:
    """The bytes of a section of a 64-bit little-endian ELF file (System V gABI, chapter 4)."""
    if elf[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit ELF file")
    table, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    strings = heads[names][4]
    for name, _, _, _, offset, length in heads:
        start = strings + name
        if elf[start : elf.index(b"\0", start)] == wanted:
            return elf[offset : offset + length]
    return b""
