# SPDX-License-Identifier: BSD-3-Clause
"""Makes the helpers of this folder importable, and keeps times of faked points out of the user's cache."""

import sys
from pathlib import Path

import pytest

from moscope.sweeps import speeds

if (here := str(Path(__file__).parent)) not in sys.path:
    sys.path.insert(0, here)


@pytest.fixture(autouse=True)
def own_speeds(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path_factory.mktemp("speeds") / "speeds.json"
    monkeypatch.setattr(speeds, "file", lambda: file)
