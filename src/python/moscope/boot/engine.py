# SPDX-License-Identifier: BSD-3-Clause
"""The engine's machine as the front end drives it (src/python/bindings/system.cc), named so that tests can take its place."""

import json
from pathlib import Path
from typing import Any, Protocol


class System(Protocol):
    """One machine. `step` runs for about that much host time, or to the end, or until the console has shown
    one of the markers; its answer has `state` (running, poweroff, reset, exit, panic, triple_fault, hang,
    marker, unmodelled), `detail` and `status`. `stats` has `instructions`, `per_core`, `pauses`, `ticks` and
    `touched_bytes`."""

    def step(self, host_ms: int) -> dict[str, Any]: ...
    def console_output(self) -> bytes: ...
    def console_input(self, data: bytes) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def save(self, path: str) -> None: ...
    def restore(self, path: str) -> None: ...
    def registers_text(self) -> str: ...


def create(config: dict[str, Any]) -> System:
    """A machine from a plan's configuration."""
    from moscope import _engine

    system: System = _engine.System(json.dumps(config))
    return system


def checkpoint_config(path: Path) -> str:
    """The configuration of the machine that a checkpoint was taken of; UserError if the file is damaged or newer."""
    from moscope import _engine

    text: str = _engine.checkpoint_config(str(path))
    return text
