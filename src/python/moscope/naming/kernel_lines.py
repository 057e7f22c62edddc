# SPDX-License-Identifier: BSD-3-Clause
"""Source lines of the kernel's code, from debug information that the image has itself or that is split off (naming/debug_file.py).

The project's build keeps debug information beside the image. For Debian's kernels it is in the package linux-image-RELEASE-dbg, as
the file /usr/lib/debug/boot/vmlinux-RELEASE. Reading a unit of the kernel takes half a second, so results are kept in the cache
under the image's build ID.
"""

import contextlib
import json
import sqlite3
from functools import cached_property
from pathlib import Path

from moscope import paths
from moscope.naming import debug_file, elf
from moscope.naming.debug import Debug
from moscope.naming.dwarf.sources import Source

VERSION = 1  # of what the cache holds
BUSY_SECONDS = 10  # that another process may take to write


class KernelLines:
    """`identity` is the build ID of the image (naming/image.py)."""

    def __init__(self, image: Path, identity: str) -> None:
        self._image = image
        self._identity = identity
        self._known: dict[int, Source | None] = {}
        self._new: list[int] = []

    @cached_property
    def _debug(self) -> Debug | None:
        path = self._image
        if (whole := _elf(path)) and debug_file.has_debug(whole):
            return Debug(path, whole.data)
        names = (f"{path.name}.debug", path.name.replace("vmlinuz", "vmlinux"))
        found = debug_file.split(path, self._identity, names, "boot") if self._identity else None
        return Debug(found[0], found[1].data) if found else None

    @cached_property
    def _kept(self) -> Path | None:
        """The cache's file; None without a build ID."""
        return paths.cache_dir() / "naming" / f"lines-{self._identity}-v{VERSION}.sqlite" if self._identity else None

    def at(self, address: int) -> Source | None:
        """The source line of the instruction at a link address; None without debug information."""
        if not self._known:
            self._load()
        if address not in self._known:
            self._known[address] = self._debug.source(address) if self._debug else None
            if self._debug and not self._debug.notes:
                self._new.append(address)
        return self._known[address]

    @property
    def notes(self) -> list[str]:
        """Problems with the debug information, in words."""
        read = self.__dict__.get("_debug")
        return list(read.notes) if read else []

    def _load(self) -> None:
        if self._kept and self._kept.is_file():
            with contextlib.suppress(sqlite3.Error, ValueError), contextlib.closing(sqlite3.connect(self._kept, BUSY_SECONDS)) as kept:
                for address, at, inlined in kept.execute("SELECT address, at, inlined FROM lines"):
                    self._known[int(address)] = Source(at, tuple(json.loads(inlined))) if at else None

    def keep(self) -> None:
        """Adds new results to the cache. A cache that cannot be written is not used."""
        if not self._kept or not self._new:
            return
        rows = [(str(address), found.at if found else "", json.dumps(found.inlined if found else ()))
                for address in self._new for found in (self._known[address],)]
        with contextlib.suppress(sqlite3.Error, OSError):
            self._kept.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self._kept, BUSY_SECONDS)) as kept, kept:
                kept.execute("CREATE TABLE IF NOT EXISTS lines (address TEXT PRIMARY KEY, at TEXT, inlined TEXT)")
                kept.executemany("INSERT OR IGNORE INTO lines VALUES (?, ?, ?)", rows)
        self._new.clear()


def _elf(path: Path) -> elf.Elf | None:
    """The ELF file at `path`. None for a bzImage, which holds no debug information and is not read."""
    try:
        with path.open("rb") as file:
            return elf.from_file(path) if file.read(4) == b"\x7fELF" else None
    except (OSError, elf.NotElf):
        return None
