# SPDX-License-Identifier: BSD-3-Clause
"""Builds the programs of the workloads: the C files of their folder and of `workloads/common`, static, for any x86-64, with the
libraries of Debian packages that the folder names (see `libraries`).

The cache keeps a program under the digest of all its inputs, including the versions of compiler and packages. Checkouts with
the same sources share it, and their initial file systems are equal.
"""

import hashlib
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from moscope import paths
from moscope.aside import written_aside
from moscope.errors import UserError
from moscope.guest.packages import Say

from . import libraries

CC = "gcc"
# Not tuned for the build machine, because the guest's processor is older. The symbol table keeps the names of functions, by
# which reports name stalls. The compilers of some systems fortify by default, which would give other code, and errors where a
# result is ignored.
COMMON_FLAGS = ["-std=gnu17", "-O2", "-U_FORTIFY_SOURCE", "-Wall", "-Wextra", "-Werror", "-march=x86-64"]
FLAGS = [*COMMON_FLAGS, "-static", "-pthread"]
HEADER = "common/workload.h"  # what programs outside the checkout include
LIBRARY_FLAGS = [*COMMON_FLAGS, "-shared", "-fPIC"]
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def silent(_: str) -> None:
    """A `say` for callers that do not report what is fetched."""


def program(family: str, folder: Path | None = None, say: Say = silent) -> Path:
    """The program of a family, whose sources lie in `folder` (`workloads/FAMILY` by default); built if the cache lacks it. An
    installation contains the supplied programs."""
    place = folder or _ours() / family
    if paths.installed() and place.parent == _ours():
        return paths.workload_dir() / family
    target = _target(family, place, say)
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        # Relative names, so that the place of a checkout does not affect the program.
        files = [os.path.relpath(p, paths.root()) for p in _sources(place)]
        _compile([*_flags(place), *files, *libraries.arguments(place, say)], target, paths.root(), place,
                 "a program that a C compiler with static libraries (packages gcc and libc6-dev) compiles")
    return target


def library(source: Path) -> Path:
    """A C file as a shared library for the distribution's programs in the guest; built if the cache lacks it."""
    target = _library_target(source)
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        _compile([*LIBRARY_FLAGS, source.name], target, source.parent, source, "a library that a C compiler (package gcc) compiles")
    return target


def is_built(family: str, folder: Path) -> bool:
    """Whether the cache has the program of a family."""
    return (paths.installed() and folder.parent == _ours()) or (libraries.are_kept(folder) and _target(family, folder).is_file())


def library_is_built(source: Path) -> bool:
    return _library_target(source).is_file()


def _target(family: str, place: Path, say: Say = silent) -> Path:
    return paths.cache_dir() / "workloads" / _digest(place, say) / family


def _library_target(source: Path) -> Path:
    read = _with_included([source, *sorted(source.parent.glob("*.h"))])
    key = hashlib.sha256(f"{_compiler()} {LIBRARY_FLAGS}".encode() + b"".join(p.read_bytes() for p in read)).hexdigest()[:32]
    return paths.cache_dir() / "workloads" / key / f"{source.stem}.so"


def _compile(arguments: list[str], target: Path, folder: Path, what: Path, expected: str) -> None:
    with written_aside(target) as partial:
        got = subprocess.run([CC, *arguments, "-o", str(partial)], capture_output=True, text=True, check=False, cwd=folder)
        if got.returncode != 0:
            if f"../{HEADER}: No such file" in got.stderr:
                expected = f'#include "{HEADER}", as the folder is outside {_ours()}'
            raise UserError(f"{what}: does not compile: {_first_error(got.stderr)}: expected {expected}")


def _ours() -> Path:
    return paths.root() / "workloads"


def _flags(place: Path) -> list[str]:
    """The flags for a folder. Sources outside the checkout include `common/workload.h` from the include path; those inside, by a
    relative path."""
    return FLAGS if place.parent == _ours() else [*FLAGS, "-Iworkloads"]


def _sources(place: Path) -> list[Path]:
    found = sorted(place.glob("*.c"))
    if not found:
        raise UserError(f"{place}: contains no C file: expected the sources of the workload")
    return [*found, *sorted((_ours() / "common").glob("*.c"))]


def _with_included(files: list[Path]) -> list[Path]:
    """The files, and further ones that they include by their place, such as `sub/table.h` or `table.inc`."""
    found = {path.resolve(): path for path in files}
    waiting = list(files)
    while waiting:
        file = waiting.pop(0)
        for name in INCLUDE.findall(file.read_bytes()):
            included = file.parent / os.fsdecode(name)
            if included.is_file() and included.resolve() not in found:
                found[included.resolve()] = included
                waiting.append(included)
    return list(found.values())


@cache
def _compiler() -> str:
    if shutil.which(CC) is None:
        raise UserError(f"{CC}: not found: expected a C compiler (package gcc)")
    return subprocess.run([CC, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def _digest(place: Path, say: Say) -> str:
    key = hashlib.sha256(f"{_compiler()} {_flags(place)}".encode())
    for path in _with_included([*_sources(place), *sorted(p for f in (place, _ours() / "common") for p in f.glob("*.h"))]):
        data = path.read_bytes()
        key.update(f"{path.parent.name}/{path.name} {len(data)}\n".encode() + data)
    key.update(libraries.identity(place, say).encode())
    return key.hexdigest()[:32]


def _first_error(text: str) -> str:
    lines = text.strip().splitlines() or ["no message"]
    return next((line for line in lines if "error" in line or "undefined reference" in line), lines[-1])
