# SPDX-License-Identifier: BSD-3-Clause
"""Boots for the tests in this folder: on QEMU and on the model, each from the same files."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from table import GUEST, Boot

from moscope.config import Machine, load_machine
from moscope.guest import initramfs, kernel, packages


def in_cache(*names: str) -> bool:
    return all((packages.cache() / "chosen" / f"{name}.json").is_file() for name in names)


@pytest.fixture(scope="session")
def opteron48() -> Machine:
    return load_machine("opteron48")


@pytest.fixture(scope="session")
def distro(request: pytest.FixtureRequest) -> kernel.Kernel:
    """The distribution's kernel. Quick runs take it from the cache alone, --long fetches it."""
    if not in_cache(kernel.CLOUD_KERNEL, initramfs.BUSYBOX_PACKAGE) and not request.config.getoption("--long"):
        pytest.skip("the distribution's kernel is not in the cache: `moscope boot` or --long fetches it")
    return kernel.find("distro", print)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The guest's C programs, built static."""
    folder = tmp_path_factory.mktemp("programs")
    built = {}
    for source in sorted(GUEST.glob("*.c")):
        target = folder / source.stem
        subprocess.run(["gcc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", str(source), "-o",
                        str(target)], check=True)
        built[source.stem] = target
    return built


def chosen(boot: Boot, programs: dict[str, Path]) -> dict[str, Path]:
    return {name: programs[name] for name in boot.programs}


def in_order(console: str, shows: tuple[str, ...]) -> list[str]:
    """The expected lines that are missing, or that come too early. The kernel's messages may begin within a line of a program's."""
    import re

    lines = iter(re.sub(r"(?<=[^\n])\[ *\d+\.\d{6}\] [^\n]*\n", "", console.replace("\r", "")).splitlines())
    return [wanted for wanted in shows if not any(re.fullmatch(wanted, line) for line in lines)]
