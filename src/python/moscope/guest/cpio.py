# SPDX-License-Identifier: BSD-3-Clause
"""A cpio archive in the "newc" format, as the kernel unpacks it (Linux: buffer-format.rst of early user space).

The bytes follow from the content alone: entries are sorted by name, inode numbers count up, times and owners are
zero. Parents are added where they are missing.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import PurePosixPath

_TRAILER = "TRAILER!!!"
_BLOCK = 512


@dataclass(frozen=True)
class _Entry:
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


class Archive:
    """Collects files, folders, links and device nodes; `bytes()` writes them."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self._add(path, _Entry(stat.S_IFREG | mode, data))

    def folder(self, path: str, mode: int = 0o755) -> None:
        self._add(path, _Entry(stat.S_IFDIR | mode))

    def link(self, path: str, target: str) -> None:
        """A symbolic link."""
        self._add(path, _Entry(stat.S_IFLNK | 0o777, os.fsencode(target)))

    def character_device(self, path: str, major: int, minor: int, mode: int = 0o600) -> None:
        self._add(path, _Entry(stat.S_IFCHR | mode, device=(major, minor)))

    def __contains__(self, path: str) -> bool:
        return _plain(path) in self._entries

    def bytes(self) -> bytes:
        parts: list[bytes] = []
        for inode, name in enumerate(sorted(self._entries), 1):
            parts.append(_record(name, self._entries[name], inode))
        parts.append(_record(_TRAILER, _Entry(0), 0))
        whole = b"".join(parts)
        return whole + bytes(-len(whole) % _BLOCK)

    def _add(self, path: str, entry: _Entry) -> None:
        name = _plain(path)
        if name in self._entries and not (stat.S_ISDIR(entry.mode) and stat.S_ISDIR(self._entries[name].mode)):
            raise ValueError(f"{path} is in the archive already")
        for parent in PurePosixPath(name).parents:
            if str(parent) != ".":
                self._entries.setdefault(str(parent), _Entry(stat.S_IFDIR | 0o755))
        self._entries[name] = entry


def _plain(path: str) -> str:
    return str(PurePosixPath(path)).lstrip("/")


def _record(name: str, entry: _Entry, inode: int) -> bytes:
    encoded = os.fsencode(name) + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (inode, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, *entry.device, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + encoded
    # Names and contents are padded so that what follows begins at a multiple of four.
    return head + bytes(-len(head) % 4) + entry.data + bytes(-len(entry.data) % 4)
