# SPDX-License-Identifier: BSD-3-Clause
"""Booted guests that are kept: which are taken, and which are made anew."""

import struct
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from moscope import paths
from moscope.runs import checkpoints

CONFIG = {"cores": 2, "seed": 1, "kernel": "/somewhere/bzImage", "initrd": "/somewhere/initrd", "restore": False, "info": {"kernel": "abc"}}


@pytest.fixture
def boots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """The cache is empty, and a boot only leaves its name here and files without sense."""
    made: list[Path] = []

    def boot(config: Any, path: Path, console: Path, report: Any, create: Any) -> None:
        made.append(path)
        path.write_bytes(b"new")
        console.write_bytes(b"console")

    monkeypatch.setattr(paths, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(checkpoints, "_boot", boot)
    return made


def at_prompt(config: dict[str, Any]) -> checkpoints.Start:
    return checkpoints.at_prompt(config, None, lambda progress: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("difference", [-1, 1])
def test_a_file_of_another_format_is_made_anew(engine: ModuleType, boots: list[Path], difference: int) -> None:
    path = checkpoints.folder() / f"{checkpoints.key(CONFIG)}.ckpt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"moscope checkpoint\n" + struct.pack("<I", engine.CHECKPOINT_VERSION + difference) + bytes(100))
    path.with_suffix(".console").write_bytes(b"console")
    assert at_prompt(CONFIG).checkpoint == path
    assert boots == [path] and path.read_bytes() == b"new"


def test_each_format_has_files_of_its_own(engine: ModuleType, monkeypatch: pytest.MonkeyPatch, boots: list[Path]) -> None:
    before = at_prompt(CONFIG).checkpoint
    monkeypatch.setattr(engine, "CHECKPOINT_VERSION", engine.CHECKPOINT_VERSION + 1)
    assert at_prompt(CONFIG).checkpoint != before
    assert len(boots) == 2 and before.exists()
