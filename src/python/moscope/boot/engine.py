# SPDX-License-Identifier: BSD-3-Clause
"""The interface of the engine's machine to the front end (src/python/bindings/system.cc), as a protocol that tests can replace."""

import json
from pathlib import Path
from typing import Any, Protocol


class System(Protocol):
    """One machine. `step` runs for about that much host time, or to the end, or until the console has shown
    one of the markers; its answer has `state` (running, poweroff, reset, exit, panic, triple_fault, hang,
    marker, end_of_time, unmodelled), `detail` and `status`. `step_until` also ends at a tick, with the state `time`.
    `stats` has `instructions`, `per_core`, `pauses`, `ticks` and `touched_bytes`; `counts` has `ticks`, and is cheap."""

    def step(self, host_ms: int) -> dict[str, Any]: ...
    def step_until(self, tick: int, host_ms: int) -> dict[str, Any]: ...
    def console_output(self) -> bytes: ...
    def console_input(self, data: bytes) -> None: ...
    def counts(self) -> dict[str, int]: ...
    def stats(self) -> dict[str, Any]: ...
    def save(self, path: str) -> None: ...
    def restore(self, path: str) -> None: ...
    def registers_text(self) -> str: ...


def create(config: dict[str, Any]) -> System:
    """Creates a machine from the configuration of a plan."""
    from moscope import _engine

    system: System = _engine.System(json.dumps(config))
    return system


def checkpoint_config(path: Path) -> str:
    """The configuration of the machine in a checkpoint; UserError if the file is damaged or newer."""
    from moscope import _engine

    text: str = _engine.checkpoint_config(str(path))
    return text
