# SPDX-License-Identifier: BSD-3-Clause
"""Programs that make the guest's root image: the system's, or those of packages that were unpacked and not installed."""

from pathlib import Path

import pytest

from moscope.guest import packages, rootimage


def test_an_unpacked_program_finds_the_library_of_another_unpacked_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program, library = tmp_path / "tools/usr/bin/maker", tmp_path / "library/lib/some-arch/libneeded.so.2"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nls "$LD_LIBRARY_PATH" > "$1"\n')
    program.chmod(0o755)
    library.parent.mkdir(parents=True)
    library.touch()

    def unpacked(name: str, say: packages.Say, instead: str) -> packages.Package:
        return packages.Package(name, "1", "", tmp_path / name)

    monkeypatch.setattr(packages, "fetch", unpacked)
    maker = rootimage._program("maker", "tools", print, "another", library="library")
    rootimage._run(maker, [str(tmp_path / "seen")], None, "another")
    assert (tmp_path / "seen").read_text() == "libneeded.so.2\n"
