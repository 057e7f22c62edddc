# SPDX-License-Identifier: BSD-3-Clause
"""The workloads by name, and what `moscope run` has to know of one.

A workload's program sets up, brings all its threads or processes to work, marks the beginning of the region of
interest (m5 workbegin with work item 0), then does operations and tells each (workend, item 1) until it is stopped:
by Ctrl-C on its terminal, or by itself where the command says `--operations`. Then it checks what was done and
prints its result (see `results`). It exits with 0 where the check holds.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from moscope.errors import UserError, unknown_name

# Where the guest finds the programs; moscope.guest.initramfs puts files there under what `programs` calls them.
GUEST_FOLDER = "/run/moscope"
INITRAMFS_FOLDER = "workloads"
# What stops a workload that goes on by itself: Ctrl-C.
STOP = b"\x03"


# A third of the time between two timer ticks (250 a second): three windows hold one tick of each kernel, as all time does, where short
# ones hold none or are mostly that.
THIRD_OF_TICK = "1334us"


@dataclass(frozen=True)
class Workload:
    name: str  # unique among all
    family: str  # the folder under workloads/, the program's name
    summary: str  # one line
    operation: str  # what one operation is, as in "increments"
    arguments: Callable[[int], str]  # the program's own arguments, for so many cores
    # Simulated times, for so many cores where that matters: before anything counts, and of one window.
    warmup: str | Callable[[int], str] = "200us"
    window: str | Callable[[int], str] = "500us"
    kernels: str = "distro"  # that it is run on where none is named
    memory_per_node: str = "512MiB"  # at least
    most_cores: int | None = None  # where more would idle

    @property
    def program(self) -> str:
        return f"{GUEST_FOLDER}/{INITRAMFS_FOLDER}/{self.family}"

    def command(self, cores: int, *more: str) -> str:
        """The line to type at the guest's shell; `more` are options of the program (docs/workloads.md)."""
        return " ".join([self.program, "--simulated", self.arguments(cores), *more])


_REGISTERED: dict[str, Workload] = {}
_NOT_FAMILIES = {"registry", "build", "results"}


def register(*workloads: Workload) -> None:
    for w in workloads:
        if w.name in _REGISTERED:
            raise UserError(f"{w.family}: there is a workload called {w.name} already: another name would be right")
        _REGISTERED[w.name] = w


def every() -> list[Workload]:
    """All workloads, by name."""
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in _NOT_FAMILIES:
            importlib.import_module(f"{__package__}.{module.name}")
    return [w for _, w in sorted(_REGISTERED.items())]


def find(name: str) -> Workload:
    known = {w.name: w for w in every()}
    if name not in known:
        raise unknown_name("--workload", "workload", name, known)
    return known[name]


def programs(families: set[str] | None = None) -> dict[str, Path]:
    """The built programs, of all families or of some, as `extra` of moscope.guest.initramfs.build; their symbols are
    those of the guest's processes. Builds what is missing."""
    from .build import program

    wanted = families if families is not None else {w.family for w in every()}
    return {f"{INITRAMFS_FOLDER}/{family}": program(family) for family in sorted(wanted)}
