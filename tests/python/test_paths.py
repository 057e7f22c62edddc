# SPDX-License-Identifier: BSD-3-Clause
"""The folders that moscope uses."""

import os
import pwd
from pathlib import Path

import pytest

from moscope import paths
from moscope.errors import UserError


@pytest.mark.parametrize(("given", "expected"), [(None, "home/.cache"), ("", "home/.cache"), ("cache", "home/.cache"),
                                                 ("/elsewhere", "/elsewhere")])
def test_the_cache_is_in_an_absolute_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str | None, expected: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if given is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert paths.cache_dir() == tmp_path / expected / "moscope"


def test_a_user_without_a_home_gets_no_folder_called_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "here")
    with pytest.raises(UserError, match="HOME: here: expected an absolute path"):
        paths.cache_dir()
    unknown = max(user.pw_uid for user in pwd.getpwall()) + 1
    monkeypatch.setattr(os, "getuid", lambda: unknown)
    monkeypatch.delenv("HOME")
    with pytest.raises(UserError, match="HOME: is not set: expected "):
        paths.cache_dir()
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert paths.cache_dir() == Path("/elsewhere/moscope")


def test_the_command_has_the_name_that_starts_it_from_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(paths.root())
    assert paths.launcher() == "./moscope"
    monkeypatch.chdir(tmp_path)
    assert paths.launcher() == f"{paths.root()}/moscope"
    monkeypatch.setattr(paths, "installed", lambda: True)
    assert paths.launcher() == "moscope"
