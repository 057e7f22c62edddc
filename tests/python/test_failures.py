# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions of all kinds as the errors that users read."""

import errno
import re
import signal
import tempfile
from pathlib import Path

import pytest

from analysis.run_directory import unwritable
from moscope.errors import ProtocolError, SimulatorBug, UserError, worst
from moscope.failures import as_error, killed
from moscope.jsonio import atomic_dir


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001  whatever was given
        return caught


def test_a_moscope_error_is_returned_unchanged() -> None:
    error = ProtocolError("stuck")
    assert as_error(error, "x") is error


@pytest.mark.parametrize("sign", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_a_signal_from_outside_ends_is_a_user_error(sign: signal.Signals) -> None:
    error = killed("its process", -sign)
    assert isinstance(error, UserError) and str(error).startswith(f"its process: was killed by signal {sign:d} ({sign.name}), probably by ")


@pytest.mark.parametrize("code", [-signal.SIGABRT, -signal.SIGSEGV, -40, 0, 1, 9])
def test_a_process_that_ends_otherwise_was_not_killed_from_outside(code: int) -> None:
    assert killed("its process", code) is None


NO_ROOM = [(errno.ENOSPC, "free space"), (errno.EDQUOT, "free space within the quota"), (errno.EFBIG, "a higher limit of file sizes"),
           (errno.EROFS, "a file system that can be written")]


@pytest.mark.parametrize("number, right", NO_ROOM)
def test_a_full_disk_is_a_user_error(number: int, right: str) -> None:
    reported = as_error(OSError(number, "full", "/results/run.json"), "x")
    assert isinstance(reported, UserError) and str(reported).startswith(f"/results/run.json: full: expected {right} ")
    assert str(as_error(OSError(number, "full"), "x")).startswith("results: full: ")


def test_exhausted_memory_is_a_user_error() -> None:
    reported = as_error(MemoryError("std::bad_alloc"), "x")
    assert isinstance(reported, UserError) and str(reported).startswith("memory: the host has no more: expected a smaller machine")


@pytest.mark.parametrize("number, right", NO_ROOM)
def test_a_failed_write_names_what_the_disk_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, right: str) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(number, "full")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(UserError, match=f"out: full: expected {right}"), atomic_dir(tmp_path / "out"):
        pass
    assert str(unwritable(OSError(number, "full"), tmp_path)).startswith(f"{tmp_path}: full: expected {right}")
    assert str(unwritable(OSError(errno.EACCES, "no"), tmp_path)) == f"{tmp_path}: no: expected a writable folder"


@pytest.mark.parametrize("number, expected", [(errno.EACCES, "a path that this user may use"),
                                              (errno.EPERM, "a path that this user may use"), (errno.ENAMETOOLONG, "a shorter path")])
def test_a_path_that_cannot_be_used_is_a_user_error(number: int, expected: str) -> None:
    reported = as_error(OSError(number, "no", "/closed/run.json"), "x")
    assert isinstance(reported, UserError) and str(reported) == f"/closed/run.json: no: expected {expected}"


def test_a_working_folder_that_was_removed_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError) as caught:
        Path("run").absolute()
    reported = as_error(caught.value, "x")
    monkeypatch.undo()
    assert isinstance(reported, UserError) and str(reported).startswith("the working directory: was removed: expected ")
    assert isinstance(as_error(caught.value, "x"), SimulatorBug), "in a folder that exists"


def test_anything_else_is_a_bug_reported_in_one_line_with_its_traceback_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reported = as_error(raised(KeyError("a\nb")), "moscope run --cores 1")
    assert isinstance(reported, SimulatorBug) and "\n" not in str(reported) and "Traceback" not in str(reported)
    log = Path(re.search(r"details in (\S+\.log)", str(reported))[1])  # type: ignore[index]
    assert log.parent == tmp_path
    assert log.read_text().startswith("moscope run --cores 1\nTraceback (most recent call last):\n")


def test_a_bug_is_reported_for_arguments_of_any_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert "details in " in str(as_error(raised(ValueError("odd")), "moscope run --out o\udcff"))
    [log] = tmp_path.iterdir()
    assert log.read_text(encoding="utf-8").startswith("moscope run --out o\\udcff\n")


def test_a_bug_is_reported_also_where_no_file_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert str(as_error(ValueError("odd"), "x")) == "ValueError: odd (details could not be kept: No such file or directory)"


def test_the_exit_code_of_several_errors_is_that_of_the_most_severe() -> None:
    by_severity = [5, 3, 4, 2, 1]
    assert [worst(reversed(by_severity[n:])) for n in range(5)] == by_severity
    assert worst([]) == 0
