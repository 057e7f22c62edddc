# SPDX-License-Identifier: BSD-3-Clause
"""Builds the workloads' programs: the C files of their folder and of `workloads/common`, static, for any x86-64.

A program is kept in the cache under the digest of everything that it is made from, the compiler's version included, so
checkouts that agree share it and the initial file system made from it stays the same.
"""

import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from moscope import paths
from moscope.errors import UserError

CC = "gcc"
# No tuning for the build machine: the guest's processor is an older one. Functions keep their names in the symbol table,
# by which stalls are named.
FLAGS = ["-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-march=x86-64", "-static", "-pthread"]


def folder(family: str) -> Path:
    return paths.root() / "workloads" / family


def sources(family: str) -> list[Path]:
    found = sorted(folder(family).glob("*.c"))
    if not found:
        raise UserError(f"{folder(family)}: holds no C file: the sources of the workload would be right")
    return [*found, *sorted(folder("common").glob("*.c"))]


def _inputs(family: str) -> list[Path]:
    return [*sources(family), *sorted(p for f in (family, "common") for p in folder(f).glob("*.h"))]


@cache
def _compiler() -> str:
    if shutil.which(CC) is None:
        raise UserError(f"{CC}: not found: a C compiler, the package gcc, would be right")
    return subprocess.run([CC, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def _digest(family: str) -> str:
    key = hashlib.sha256(f"{_compiler()} {FLAGS}".encode())
    for path in _inputs(family):
        data = path.read_bytes()
        key.update(f"{path.parent.name}/{path.name} {len(data)}\n".encode() + data)
    return key.hexdigest()[:32]


def program(family: str) -> Path:
    """The family's program; built if it is not in the cache."""
    target = paths.cache_dir() / "workloads" / _digest(family) / family
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{family}.{os.getpid()}")
        # Relative names, so that no checkout's place gets into the bytes.
        files = [str(p.relative_to(paths.root())) for p in sources(family)]
        got = subprocess.run([CC, *FLAGS, *files, "-o", str(partial)], capture_output=True, text=True, check=False,
                             cwd=paths.root())
        if got.returncode != 0:
            partial.unlink(missing_ok=True)
            raise UserError(f"{folder(family)}: does not compile: {_first_error(got.stderr)}: a C compiler with static "
                            "libraries (packages gcc and libc6-dev) would be right")
        partial.replace(target)
    return target


def _first_error(text: str) -> str:
    lines = text.strip().splitlines() or ["no message"]
    return next((line for line in lines if "error" in line), lines[-1])
