# SPDX-License-Identifier: BSD-3-Clause
"""The shared libraries of a dynamic executable, found as the loader finds them (ld.so(8)): RPATH or RUNPATH, LD_LIBRARY_PATH, the folders
of ld.so.conf, the system's own. Libraries that a program opens by itself while it runs are not known from its file.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from moscope.errors import UserError

SYSTEM = tuple(Path(folder) for folder in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib",
                                           "/usr/lib"))
CONFIGURED = Path("/etc/ld.so.conf")
# glibc opens this library by name when a thread is cancelled or ends early.
OPENED = ("libgcc_s.so.1",)


@dataclass(frozen=True)
class Dynamic:
    """The dynamic section of an ELF file: its loader, libraries and search paths."""

    loader: str = ""
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()


@dataclass
class Found:
    """The files for the guest, by their paths there, and the folders that the guest's loader does not search by default."""

    files: dict[str, Path] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)


def dynamic(path: Path) -> Dynamic | None:
    """The dynamic section of a file; None if it names no loader and no libraries, as in a static program."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.elffile import ELFFile
    from elftools.elf.segments import InterpSegment

    try:
        with path.open("rb") as stream:
            loader = ""
            tags: dict[str, list[str]] = {"DT_NEEDED": [], "DT_RPATH": [], "DT_RUNPATH": []}
            for segment in ELFFile(stream).iter_segments():
                if isinstance(segment, InterpSegment):
                    loader = segment.get_interp_name()
                elif isinstance(segment, DynamicSegment):
                    for tag in segment.iter_tags():
                        if tag.entry.d_tag in tags:
                            tags[tag.entry.d_tag].append(getattr(tag, tag.entry.d_tag[3:].lower()))
    except (ELFError, OSError, ValueError):
        return None
    if not loader and not tags["DT_NEEDED"]:
        return None
    paths = {key: tuple(part for text in tags[key] for part in text.split(":") if part) for key in ("DT_RPATH", "DT_RUNPATH")}
    return Dynamic(loader, tuple(tags["DT_NEEDED"]), paths["DT_RPATH"], paths["DT_RUNPATH"])


def of(program: Path) -> Found:
    """The shared libraries of a program. UserError if one of them is missing."""
    found = Found()
    first = dynamic(program)
    if first is None:
        return found
    if first.loader:
        found.files[first.loader] = Path(first.loader)
    waiting, seen = [(program, first, first.rpath)], set[str]()
    while waiting:
        owner, has, inherited = waiting.pop(0)
        for name in has.needed:
            if name in seen:
                continue
            seen.add(name)
            place = _place(name, owner, has, inherited)
            if place is None:
                raise UserError(f"--program: {program}: needs the library {name}, which was not found: expected it in a folder that the "
                                "loader searches (LD_LIBRARY_PATH adds one)")
            found.files[str(place)] = place
            if place.parent not in SYSTEM and str(place.parent) not in found.folders:
                found.folders.append(str(place.parent))
            if (more := dynamic(place)) is not None:
                waiting.append((place, more, inherited if more.runpath else (*more.rpath, *inherited)))
    for name in OPENED:
        if (place := _place(name, program, Dynamic(), ())) is not None and any("libc.so" in file for file in found.files):
            found.files.setdefault(str(place), place)
    return found


def _place(name: str, owner: Path, has: Dynamic, inherited: tuple[str, ...]) -> Path | None:
    if "/" in name:
        return Path(name) if Path(name).is_file() else None
    given = [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    folders = [*(() if has.runpath else (*has.rpath, *inherited)), *given, *has.runpath]
    for folder in (*(Path(_origin(text, owner)) for text in folders), *configured(CONFIGURED), *SYSTEM):
        if (folder / name).is_file():
            return folder / name
    return None


def _origin(text: str, owner: Path) -> str:
    return re.sub(r"\$(ORIGIN|\{ORIGIN\})", str(owner.resolve().parent), text)


def configured(file: Path) -> Iterator[Path]:
    """The folders of ld.so.conf and of what it includes."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in (text.partition("#")[0].strip() for text in lines):
        if line.startswith("include"):
            pattern = line.split(None, 1)[1]
            for included in sorted(file.parent.glob(pattern) if not pattern.startswith("/") else Path("/").glob(pattern[1:])):
                yield from configured(included)
        elif line:
            yield Path(line)
