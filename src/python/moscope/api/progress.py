# SPDX-License-Identifier: BSD-3-Clause
"""How a call shows its progress: in a person's terminal or notebook, or by calls of the caller's function."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from moscope.api.machine import Machine
from moscope.api.values import whole
from moscope.cli import Shared, checked_seed
from moscope.errors import UserError


@dataclass(frozen=True)
class Progress:
    """What a call is doing. `task`: the row or point in progress, empty for a remark about the whole call. `phase`: what it does,
    in words. `share`: how much of the task is done, 0 to 1."""

    task: str
    phase: str
    share: float


#: True: shown on the standard error output. None: shown if a person watches. A function gets each `Progress`.
Watcher = bool | Callable[[Progress], None] | None


@dataclass(frozen=True)
class Call(Shared):
    """The options that all calls share, for the parts that the commands use."""

    watcher: Callable[[Progress], None] | None = field(default=None)

    def say(self, text: str, share: float = 0.0) -> None:
        if self.watcher:
            self.watcher(Progress("", text, share))
        else:
            super().say(text)

    def at(self, phase: str, share: float) -> None:
        """For the caller's function alone: how much of the task is done."""
        if self.watcher:
            self.watcher(Progress("", phase, share))


def call(machine: Machine, seed: int, progress: Watcher, out: Path | None = None) -> Call:
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise UserError(f"progress: {progress!s:.60}: expected True, False, None or a function")
    watcher = progress if callable(progress) else None
    shown = watched() if progress is None else bool(progress)
    chosen = checked_seed(whole("--seed", seed))
    return Call(machine.base, machine.sets, chosen, out, quiet=not shown or watcher is not None, watcher=watcher)


def watched() -> bool:
    """Whether a person is watching: in a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules
