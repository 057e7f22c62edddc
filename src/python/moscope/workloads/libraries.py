# SPDX-License-Identifier: BSD-3-Clause
"""Static libraries of Debian packages that a workload's program links to. The file `libraries` of its folder names them, one package
a line with its libraries, in the order of the linker's command line; the rest of a line after # is a comment:

    libdb5.3-dev db

The packages are fetched into the cache (moscope.guest.packages), not installed. A package that a library depends on has a line too.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from moscope.errors import UserError
from moscope.guest import packages
from moscope.guest.packages import Package, Say

FILE = "libraries"
LINE = re.compile(r"[a-z0-9][a-z0-9+.-]+( +[A-Za-z0-9+._-]+)+")  # a Debian package, names of libraries


@dataclass(frozen=True)
class Linked:
    """A line of the file: `place` is the file and the line's number, for messages."""

    place: str
    package: str
    names: tuple[str, ...]


def named(folder: Path) -> list[Linked]:
    """The lines of the file in a workload's folder; nothing if it has no such file."""
    file = folder / FILE
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: {error}: expected lines of a Debian package and its libraries") from error
    found = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text and not LINE.fullmatch(text):
            raise UserError(f'{file}:{number}: "{text}": expected a Debian package and its libraries, such as libdb5.3-dev db')
        if text:
            package, *names = text.split()
            found.append(Linked(f"{file}:{number}", package, tuple(names)))
    return found


def are_kept(folder: Path) -> bool:
    """Whether the cache has the packages."""
    return all(packages.is_kept(one.package) for one in named(folder))


def identity(folder: Path, say: Say) -> str:
    """The part of a program's digest that represents its packages: names, versions and contents, but not the place of the cache.
    Fetches packages that the cache lacks."""
    return "".join(f"{p.name} {p.version} {p.sha256} {' '.join(one.names)}\n" for one, p in _fetched(folder, say))


def arguments(folder: Path, say: Say) -> list[str]:
    """Arguments for the compiler, to be given after the sources: folders of headers, whose warnings are ignored, and the
    libraries."""
    headers, archives = [], []
    for one, package in _fetched(folder, say):
        include = package.tree / "usr/include"
        headers += [f"-isystem{path}" for path in (include, *sorted(include.glob("*-linux-gnu"))) if path.is_dir()]
        archives += [str(_archive(one, package, name)) for name in one.names]
    return [*headers, *archives]


def licences(folder: Path, say: Say) -> dict[str, Path]:
    """The file in which Debian keeps the licence of each package. A package's documentation may be a link to that of another one."""
    found = {}
    for one, package in _fetched(folder, say):
        documentation = package.tree / "usr/share/doc" / package.name
        if documentation.is_symlink():
            other = documentation.readlink().name
            documentation = packages.fetch(other, say, f"another package than {package.name} in {one.place}").tree / "usr/share/doc" / other
        found[package.name] = documentation / "copyright"
    return found


def _fetched(folder: Path, say: Say) -> list[tuple[Linked, Package]]:
    return [(one, packages.fetch(one.package, say, f"a workload without this library, which {one.place} names")) for one in named(folder)]


def _archive(one: Linked, package: Package, name: str) -> Path:
    there = {path.name.removeprefix("lib").removesuffix(".a"): path for path in sorted(package.tree.glob("usr/lib/**/lib*.a"))}
    if name not in there:
        right = " or ".join(there) or "a package that has one, often called lib...-dev"
        raise UserError(f"{one.place}: {one.package} {package.version} has no static library {name}: expected {right}")
    return there[name]
