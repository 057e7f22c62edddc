# SPDX-License-Identifier: BSD-3-Clause
"""The error if the report of a run or a sweep cannot be written."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moscope.cli import Shared
from moscope.errors import UserError
from moscope.reports import made_by
from moscope.runs import main


def answering(monkeypatch: pytest.MonkeyPatch, code: int, said: str) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], code, "", said))


def plan(folder: Path) -> Any:
    return SimpleNamespace(out=folder)


def test_a_user_error_of_the_report_stays_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, 2, "/out: full: expected free space\n")
    with pytest.raises(UserError, match=r"^/out: full: expected free space \(the results are in .*"):
        main.report(plan(tmp_path), Shared(quiet=True))


def test_a_bug_of_the_report_is_one_line_and_its_traceback_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, 1, "Traceback (most recent call last):\n  File ...\nKeyError: 'lines'\n")
    with pytest.raises(RuntimeError) as bug:
        main.report(plan(tmp_path), Shared(quiet=True))
    assert str(bug.value) == f"the report could not be written (the results are in {tmp_path}): KeyError: 'lines'"
    assert bug.value.__notes__ == ["Traceback (most recent call last):\n  File ...\nKeyError: 'lines'"]


def test_a_report_whose_process_the_host_kills_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, -9, "")
    with pytest.raises(UserError, match=r"was killed by signal 9 \(SIGKILL\), probably by .*\(the results are in "):
        main.report(plan(tmp_path), Shared(quiet=True))
    with pytest.raises(UserError, match="was killed by signal 9"):
        made_by("analysis.sweep.main", [str(tmp_path)], tmp_path)


def test_a_folder_without_a_run_gives_the_reports_own_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has neither run.json nor a finished point"):
        main.report(plan(tmp_path), Shared(quiet=True))
