# SPDX-License-Identifier: BSD-3-Clause
"""A guest that the test writes as a generator, in the place of the engine's machine."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from moscope.boot import engine
from moscope.errors import UserError

# Yields what the console shows, or an answer of `step`; receives what was typed since; ends by returning the final answer.
Guest = Callable[[], Generator[str | dict[str, Any], str, dict[str, Any]]]


class FakeSystem:
    """Stops at markers as the engine does; saves by writing a few bytes."""

    def __init__(self, guest: Guest, config: dict[str, Any]) -> None:
        self.config, self._guest, self._started = config, guest(), False
        self._out, self._in, self._steps, self._ticks = b"", b"", 0, 0
        self.saved: list[tuple[str, int]] = []
        self.restored: list[str] = []
        self.typed: list[str] = []

    def step(self, host_ms: int) -> dict[str, Any]:
        answer = self._go_on()
        return {**answer, "state": "running"} if answer["state"] == "time" else answer

    def _go_on(self) -> dict[str, Any]:
        self._steps += 1
        self._ticks += 10**12
        try:
            if self._started:
                typed, self._in = self._in.decode(), b""
                shown = self._guest.send(typed)
            else:
                self._started, shown = True, next(self._guest)
        except StopIteration as end:
            return {"state": "running", "detail": "", "status": 0, **end.value}
        if isinstance(shown, dict):
            return {"status": 0, **shown}
        self._out += shown.encode()
        marker = next((m for m in self.config["markers"] if shown.endswith(m)), None)
        return {"state": "marker" if marker else "running", "detail": marker or "", "status": 0}

    def step_until(self, tick: int, host_ms: int) -> dict[str, Any]:
        if self._ticks >= tick:
            return {"state": "time", "detail": "", "status": 0}
        answer = self._go_on()
        if answer["state"] == "time":  # of a guest that is idle until then
            self._ticks = tick
        return answer

    def console_output(self) -> bytes:
        data, self._out = self._out, b""
        return data

    def console_input(self, data: bytes) -> None:
        self.typed.append(data.decode())
        self._in += data

    def counts(self) -> dict[str, int]:
        return {"ticks": self._ticks}

    def stats(self) -> dict[str, Any]:
        return {"instructions": 1000 * self._steps, "per_core": [1000 * self._steps], "ticks": self._ticks,
                "pauses": 0, "touched_bytes": 4096}

    def save(self, path: str) -> None:
        self.saved.append((path, self._steps))
        Path(path).write_text("checkpoint")

    def restore(self, path: str) -> None:
        self.restored.append(path)

    def registers_text(self) -> str:
        return "rip ffffffff81000000"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[Guest], list[FakeSystem]]:
    """`fake(guest)` makes machines run that guest; the list holds those that were made."""

    def install(guest: Guest) -> list[FakeSystem]:
        made: list[FakeSystem] = []

        def create(config: dict[str, Any]) -> FakeSystem:
            made.append(FakeSystem(guest, config))
            return made[-1]

        monkeypatch.setattr(engine, "create", create)
        return made

    return install


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that passes for a kernel, and no need for busybox."""
    from moscope.guest import initramfs

    def build(kernel: Any, say: Any, script: Path | None = None, extra: Any = None) -> initramfs.Initramfs:
        if script and not script.exists():
            raise UserError(f"{script}: gone")
        return initramfs.Initramfs(tmp_path / "initrd", "0" * 64)

    monkeypatch.setattr(initramfs, "build", build)
    path = tmp_path / "vmlinuz"
    path.write_bytes(b"kernel")
    return path
