# SPDX-License-Identifier: BSD-3-Clause
"""What a wheel of moscope holds: the package `moscope` and, in `moscope/data`, what it reads at run time, laid out as in the
checkout (moscope/paths.py). The libraries of the distribution that the engine links to go beside it, each with its copyright
file. Standard library only.
"""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

DATA = "moscope/data"
TARGETS = ("engine", "module", "protocols", "checks")
# Below the checkout, what an installed moscope reads: folder, and the suffixes of the files (all, where there are none).
READ: dict[str, set[str]] = {
    "analysis": set(), "configs": set(), "kernels": set(), "workloads": set(), "src/mem/slicc": set(), "src/mem/ruby/protocol": set(),
    "src/base": {".hh"}, "src/sim": {".hh"}, "src/mem": {".hh"}, "src/schema": {".hh"},
    "src/verify": {".hh"},
}
FILES = ("requirements-sweep.txt",)
BUILT = "build/opt"
SKIPPED = {"__pycache__"}


def named_packages(requirements: str) -> dict[str, str]:
    """Package and version of those that moscope itself names, the file's first part."""
    own = requirements.partition("# then ")[0]
    return dict(line.split("==") for line in own.splitlines() if "==" in line)


def accepted(name: str, version: str) -> str:
    """The version that the tests run with or a later one, up to the next that may break its users."""
    return f"{name}>={version},<{int(version.split('.')[0]) + 1}"


def files(root: Path) -> Iterator[tuple[Path, str]]:
    """Every file of the wheel with its place in it."""
    package = root / "src/python/moscope"
    if str(package.parent) not in sys.path:
        sys.path.insert(0, str(package.parent))
    for path in files_under(package):
        yield path, f"moscope/{path.relative_to(package)}"
    for folder, suffixes in READ.items():
        for path in files_under(root / folder, suffixes):
            yield path, f"{DATA}/{path.relative_to(root)}"
    for name in FILES:
        yield root / name, f"{DATA}/{name}"
    build = root / BUILT
    engine = build / "libmoscope_engine.so"
    interfaces = list((build / "protocol").glob("*.json"))
    protocols = [path.with_suffix(suffix) for path in interfaces for suffix in (".json", ".so", ".check.so")]
    module = build / "moscope" / f"_engine{sysconfig.get_config_var('EXT_SUFFIX')}"
    for path in (engine, module, *protocols, *files_under(build / "generated", {".hh"})):
        yield path, f"{DATA}/{path.relative_to(root)}"
    yield from workload_programs(root)
    for name, library in foreign_libraries(engine).items():
        yield library, f"{DATA}/{BUILT}/{name}"
        if licence := copyright_of(library):
            yield licence, f"{DATA}/{BUILT}/{name}.copyright"


def workload_programs(root: Path) -> Iterator[tuple[Path, str]]:
    """The guest programs of the supplied workloads, so that they run without a compiler, and the licences of libraries in them."""
    from moscope import workloads

    for program in workloads.programs({w.family for w in workloads.every()}).values():
        yield program, f"{DATA}/{BUILT}/workloads/{program.name}"
    for folder in {w.folder for w in workloads.every()}:
        for package, licence in workloads.libraries.licences(folder, workloads.silent).items():
            yield licence, f"{DATA}/{BUILT}/workloads/{package}.copyright"


def files_under(folder: Path, suffixes: set[str] | None = None) -> Iterator[Path]:
    for base, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(set(folders) - SKIPPED)
        yield from (Path(base, name) for name in sorted(names) if not suffixes or Path(name).suffix in suffixes)


def foreign_libraries(engine: Path) -> dict[str, Path]:
    """Libraries that not every Linux has: by the name that the engine asks for, the file."""
    from moscope import toolchain

    listed = subprocess.run(["ldd", engine], capture_output=True, text=True, check=True).stdout
    found = {name: Path(path) for name, path in re.findall(r"^\s*(\S+) => (/\S+)", listed, re.MULTILINE)}
    return {name: path for name, path in found.items() if name.startswith(tuple(f"lib{own}." for own in toolchain.LIBRARIES))}


def copyright_of(library: Path) -> Path | None:
    """The file in which Debian keeps the licence of a library."""
    owner = subprocess.run(["dpkg", "-S", library.resolve()], capture_output=True, text=True, check=False).stdout.partition(":")[0]
    path = Path("/usr/share/doc", owner, "copyright")
    return path if owner and path.is_file() else None
