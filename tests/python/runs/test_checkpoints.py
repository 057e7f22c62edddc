# SPDX-License-Identifier: BSD-3-Clause
"""Booted guests that are kept: which are taken, which are made anew, and which are removed."""

import fcntl
import os
import random
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from moscope import locks, paths
from moscope.errors import UserError
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


def test_what_a_killed_process_has_written_of_one_is_removed(engine: ModuleType, boots: list[Path]) -> None:
    path = checkpoints.folder() / f"{checkpoints.key(CONFIG)}.ckpt"
    path.parent.mkdir(parents=True)
    parts = [path.with_name(f"{name}.part-123") for name in (path.name, "another.ckpt")]  # the second may be under way
    for part in parts:
        part.touch()
    assert at_prompt(CONFIG).checkpoint == path
    assert [part.exists() for part in parts] == [False, True]


def test_what_a_process_was_writing_when_it_was_killed_is_removed_after_a_week(engine: ModuleType, boots: list[Path]) -> None:
    names = ["another.ckpt.part-123", ".another.ckpt.01234567.host.123.123"]  # of another machine, which is not booted again
    lock, parts = older("another", 0).with_suffix(".lock"), [checkpoints.folder() / name for name in names]
    for file in (lock, *parts):
        file.touch()
        os.utime(file, (10**9, 10**9))
    under_way = checkpoints.folder() / "third.ckpt.part-124"
    under_way.touch()
    at_prompt(CONFIG)
    assert [file.exists() for file in (lock, *parts, under_way)] == [True, False, False, True]


def older(name: str, age_s: int) -> Path:
    """A checkpoint that was used so long ago."""
    path = checkpoints.folder() / f"{name}.ckpt"
    path.parent.mkdir(parents=True, exist_ok=True)
    for file in (path, path.with_suffix(".console")):
        file.write_bytes(b"old")
    os.utime(path, (10**9 - age_s, 10**9 - age_s))
    return path


def kept() -> set[str]:
    return {path.stem for path in checkpoints.folder().glob("*.ckpt")}


def test_the_longest_unused_are_removed_with_what_their_boots_showed(engine: ModuleType, boots: list[Path]) -> None:
    files = [older(f"used-{n}", n) for n in range(checkpoints.KEPT + 2)]
    new = at_prompt(CONFIG).checkpoint
    assert kept() == {new.stem, *(path.stem for path in files[:checkpoints.KEPT - 1])}
    assert [path.with_suffix(".console").exists() for path in files] == [path.exists() for path in files]


def test_one_that_is_in_use_is_not_removed(engine: ModuleType, boots: list[Path]) -> None:
    files = [older(f"used-{n}", n) for n in range(checkpoints.KEPT + 2)]
    with files[-1].with_suffix(".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        at_prompt(CONFIG)
    assert files[-1].exists() and not files[-2].exists()


def test_one_that_was_used_after_its_age_was_read_is_not_removed(boots: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    files = [older(f"used-{n}", n) for n in range(checkpoints.KEPT + 2)]
    take = locks.take

    def used(handle: Any, *, wait: bool = True) -> bool:
        os.utime(files[-1])
        return take(handle, wait=wait)

    monkeypatch.setattr(locks, "take", used)
    checkpoints._forget_the_oldest()
    assert files[-1].exists() and not files[-2].exists()


class Refusing:
    """An engine that restores only what `boots` writes."""

    def restore(self, path: str) -> None:
        if Path(path).read_bytes() != b"new":
            raise UserError(f"{path}: checkpoint: holds \"copier\" where \"counts\" was due: expected one written by this version")


def test_a_cached_boot_that_the_engine_rejects_is_replaced(engine: ModuleType, boots: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    at_prompt(CONFIG).checkpoint.write_bytes(b"of other devices")
    monkeypatch.setattr(checkpoints, "_readable", lambda path: True)  # what is wrong lies beyond the part that a start reads
    made: list[checkpoints.Start] = []

    def create(start: checkpoints.Start) -> Any:
        made.append(start)
        return Refusing()

    start, _ = checkpoints.restored(lambda: at_prompt(CONFIG), create)
    assert start.checkpoint.read_bytes() == b"new" and len(boots) == len(made) == 2


def test_a_second_rejection_of_a_cached_boot_is_an_error(engine: ModuleType, boots: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_boot", lambda config, path, console, *_: (path.write_bytes(b"nonsense"), console.touch()))
    with pytest.raises(UserError, match="copier"):
        checkpoints.restored(lambda: at_prompt(CONFIG), lambda start: Refusing())  # type: ignore[arg-type,return-value]



@pytest.mark.parametrize("number", locks.NO_LOCKS)
def test_file_systems_without_locks_do_without(monkeypatch: pytest.MonkeyPatch, engine: ModuleType, boots: list[Path], number: int) -> None:
    def flock(handle: Any, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    assert at_prompt(CONFIG).checkpoint.exists()


def test_a_file_that_is_gone_after_the_folder_was_read_is_passed_over(engine: ModuleType, boots: list[Path]) -> None:
    older("used", 1).with_name("gone.ckpt").symlink_to("nowhere")
    assert at_prompt(CONFIG).checkpoint.exists()


def test_many_points_share_a_folder_that_is_too_small_for_them(engine: ModuleType, boots: list[Path],
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a checkpoint and makes those that are not there, which removes others."""
    threads, most, seeds = 8, 6, 24
    monkeypatch.setattr(checkpoints, "KEPT", most)
    monkeypatch.setattr(checkpoints, "_readable", lambda path: True)
    monkeypatch.setattr(checkpoints.time, "sleep", lambda seconds: None)

    def points(thread: int) -> int:
        numbers = random.Random(thread)
        return sum(at_prompt({**CONFIG, "seed": numbers.randrange(seeds)}).console == b"console" for _ in range(150))

    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(points, range(threads))) == [150] * threads
    assert seeds < len(boots) and len(kept()) <= most + threads
