# SPDX-License-Identifier: BSD-3-Clause
"""Progress where there is no terminal: a line at each phase and now and then within one, with speed and time left."""

from types import SimpleNamespace
from typing import Any

import pytest

from moscope.runs import display
from moscope.runs.guest import Progress


def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, quiet: bool = False) -> list[str]:
    now = [100.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    job: Any = SimpleNamespace(point=SimpleNamespace(name="exim-distro-48"))
    with display.Display(quiet, 1, 0) as shown:
        shown.live = False
        shown.show(job, None)
        for seconds, progress in ((0, Progress("boot", 0.1, 0.0, 0.0)), (10, Progress("boot", 0.2, 90.0, 0.0)),
                                  (35, Progress("boot", 0.5, 95.0, 0.0)),
                                  (40, Progress("window 1 of 2", 0.6, 4.5, 0.25)), (60, Progress("window 2 of 2", 0.7, 4.5, 0.5)),
                                  (61, Progress("window 2 of 2", 0.7, 4.5, 0.5))):
            now[0] = 100.0 + seconds
            shown.show(job, progress)
    return capsys.readouterr().err.splitlines()


def test_a_line_has_speed_and_time_left_as_soon_as_they_are_known(capsys: pytest.CaptureFixture[str],
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(capsys, monkeypatch) == [
        "exim-distro-48: boot, 0.100000 s simulated", "exim-distro-48: boot, 0.500000 s simulated, 95.0 MIPS",
        "exim-distro-48: window 1 of 2, 0.600000 s simulated, 4.5 MIPS",
        "exim-distro-48: window 2 of 2, 0.700000 s simulated, 4.5 MIPS, 0:40 left"]


def test_who_wants_quiet_is_told_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert not said(capsys, monkeypatch, quiet=True)
