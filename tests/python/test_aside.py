# SPDX-License-Identifier: BSD-3-Clause
"""Files that are written beside their place and renamed onto it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moscope.aside import write_whole, written_aside


def test_a_file_keeps_its_content_until_the_new_one_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    write_whole(file, "old")
    with written_aside(file) as aside:
        aside.write_text("ne")
        assert file.read_text() == "old"
        aside.write_text("new")
    assert file.read_text() == "new"
    assert list(tmp_path.iterdir()) == [file]


def test_a_write_that_fails_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    write_whole(file, b"old")
    with pytest.raises(OSError, match="no space"), written_aside(file) as aside:
        aside.write_text("ne")
        raise OSError("no space")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_full_disk_names_the_file_that_was_to_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space") as caught, written_aside(tmp_path / "kept") as aside:
        Path("/dev/full").write_text("x")
    assert caught.value.filename == str(tmp_path / "kept") and not aside.exists()


def test_threads_that_write_one_file_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    texts = [letter * 100_000 for letter in "abcdefgh"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_whole(file, text), texts * 20))
    assert file.read_text() in texts
    assert list(tmp_path.iterdir()) == [file]
