# SPDX-License-Identifier: BSD-3-Clause
"""Programs that make the guest's root image: the system's, or those of packages that were unpacked and not installed."""

import subprocess
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


def test_a_script_runs_in_the_tree_of_the_image_and_makes_it_another_image(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[list[str]] = []

    def run(program: rootimage._Program, arguments: list[str], given: Path | None, instead: str) -> None:
        made.append(arguments)
        if given:  # the image's maker
            Path(arguments[1]).write_text(" ".join(made[-2][:-1]))

    monkeypatch.setattr(packages, "cache", lambda: tmp_path)
    monkeypatch.setattr(rootimage, "_program", lambda *_, **__: rootimage._Program(tmp_path))
    monkeypatch.setattr(rootimage, "_run", run)
    script = "echo 'a  b' >$HOME/made"
    plain, completed = rootimage.find(print, ("one",)), rootimage.find(print, ("one",), script)
    assert plain.sha256 != completed.sha256 and len(made) == 4
    assert rootimage.find(print, ("one",), script) == completed and len(made) == 4, "from the cache"
    assert not [a for a in made[0] if "hook" in a]
    hook = next(a for a in made[2] if "hook" in a).partition("=")[2]
    # A shell executes the hook with the tree as its argument.
    got = subprocess.run(["sh", "-c", f'chroot() {{ shift; "$@"; }}; {hook}', "sh", "tree"], check=True, env={"HOME": str(tmp_path)})
    assert got.returncode == 0 and (tmp_path / "made").read_text() == "a  b\n"
