# SPDX-License-Identifier: BSD-3-Clause
"""The archive writer against the system's own cpio reader, and its bytes against its promise."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from moscope.guest.cpio import Archive


def sample() -> Archive:
    archive = Archive()
    archive.file("usr/bin/tool", b"abcde", 0o755)
    archive.link("sbin/tool", "/elsewhere")
    archive.folder("proc")
    archive.character_device("dev/console", 5, 1)
    return archive


def test_the_bytes_do_not_depend_on_the_order_of_calls() -> None:
    other = Archive()
    other.character_device("dev/console", 5, 1)
    other.folder("proc")
    other.link("sbin/tool", "/elsewhere")
    other.file("/usr/bin/tool", b"abcde", 0o755)
    assert other.bytes() == sample().bytes()


def test_records_are_padded_to_four_and_the_archive_to_a_block() -> None:
    data = sample().bytes()
    assert len(data) % 512 == 0
    starts = [i for i in range(len(data)) if data.startswith(b"070701", i)]
    assert len(starts) == 9 and all(s % 4 == 0 for s in starts)  # dev, proc, sbin, usr, usr/bin and four leaves


def test_parents_come_before_what_lies_in_them() -> None:
    data = sample().bytes()
    assert data.index(b"usr\0") < data.index(b"usr/bin\0") < data.index(b"usr/bin/tool\0")


def test_a_name_given_twice_is_refused() -> None:
    archive = sample()
    with pytest.raises(ValueError, match="usr/bin/tool"):
        archive.file("usr/bin/tool", b"")


def test_names_keep_their_bytes_in_whatever_encoding() -> None:
    archive = sample()
    for name in (b"na\xefve", "na\u00efve".encode()):
        archive.file(os.fsdecode(name), b"")
        archive.link(os.fsdecode(b"to " + name), os.fsdecode(name))
    data = archive.bytes()
    assert all(part in data for part in (b"\0na\xefve\0", b"to na\xefve\0", "to na\u00efve\0".encode()))


@pytest.mark.skipif(shutil.which("busybox") is None, reason="no busybox to read the archive with")
def test_another_reader_lists_what_was_put_in(tmp_path: Path) -> None:
    got = subprocess.run(["busybox", "cpio", "-tv"], input=sample().bytes(), capture_output=True, check=True)
    lines = got.stdout.decode().splitlines()
    assert any(line.startswith("-rwxr-xr-x") and " 5 " in line and line.endswith(" usr/bin/tool") for line in lines)
    assert any(line.startswith("lrwxrwxrwx") and line.endswith("sbin/tool -> /elsewhere") for line in lines)
