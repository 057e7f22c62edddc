# SPDX-License-Identifier: BSD-3-Clause
"""The folders that moscope uses."""

from pathlib import Path

import pytest

from moscope import paths


@pytest.mark.parametrize(("given", "expected"), [(None, "home/.cache"), ("", "home/.cache"), ("cache", "home/.cache"),
                                                 ("/elsewhere", "/elsewhere")])
def test_the_cache_is_in_an_absolute_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str | None, expected: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if given is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert paths.cache_dir() == tmp_path / expected / "moscope"
