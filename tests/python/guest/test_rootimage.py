# SPDX-License-Identifier: BSD-3-Clause
"""Programs that make the guest's root image: the system's, or those of packages that were unpacked and not installed."""

import io
import os
import random
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from moscope.errors import UserError
from moscope.guest import packages, rootimage
from moscope.guest.imagefiles import ImageFiles


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


@pytest.mark.usefixtures("heard")
def test_an_interrupted_maker_cleans_up_with_all_that_it_has_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maker, tree, waited, parent = tmp_path / "maker", tmp_path / "tree", tmp_path / "waited", os.getpid()
    communicate = subprocess.Popen.communicate

    def noted(process: "subprocess.Popen[str]", *args: Any, **named: Any) -> tuple[str, str]:
        waited.touch()
        return communicate(process, *args, **named)

    monkeypatch.setattr(subprocess.Popen, "communicate", noted)
    # As mmdebstrap: it leaves a signal to its child, and removes its tree once the child has ended. It takes longer than subprocess.run
    # waits for an interrupted program.
    maker.write_text('#!/bin/sh\ntrap : TERM\nmkdir "$1"\nsleep 60 &\nuntil [ -e "$3" ]; do sleep 0.01; done\nkill -INT $2\n'
                     'wait $!\nwait $!\nsleep 0.4\nrmdir "$1"\n')
    maker.chmod(0o755)
    with pytest.raises(KeyboardInterrupt):
        rootimage._run(rootimage.Program(maker), [str(tree), str(parent), str(waited)], None, "another")
    assert not tree.exists()


@pytest.mark.parametrize("text", ["", "[]", "{}"])
def test_an_image_whose_note_is_damaged_counts_as_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    monkeypatch.setattr(packages, "cache", lambda: tmp_path)
    note = rootimage._chosen(rootimage._recipe(("x",), ""))
    note.parent.mkdir()
    note.write_text(text)
    assert rootimage.kept(("x",)) is None


def test_a_script_runs_in_the_tree_of_the_image_and_makes_it_another_image(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[list[str]] = []

    def run(program: rootimage.Program, arguments: list[str], given: Path | None, instead: str) -> None:
        made.append(arguments)
        if given:  # the image's maker
            Path(arguments[1]).write_text(" ".join(made[-2][:-1]))

    monkeypatch.setattr(packages, "cache", lambda: tmp_path)
    monkeypatch.setattr(rootimage, "_program", lambda *_, **__: rootimage.Program(tmp_path))
    monkeypatch.setattr(rootimage, "_run", run)
    script = "echo 'a  b' >$HOME/made"
    left = tmp_path / "root" / f".root-{rootimage._recipe(('one',), '')}_killed"
    left.mkdir(parents=True)
    plain, completed = rootimage.find(print, ("one",)), rootimage.find(print, ("one",), script)
    assert plain.sha256 != completed.sha256 and len(made) == 4
    assert not left.exists(), "what a process that was killed has left"
    assert rootimage.find(print, ("one",), script) == completed and len(made) == 4, "from the cache"
    assert not [a for a in made[0] if "hook" in a]
    hook = next(a for a in made[2] if "hook" in a).partition("=")[2]
    # A shell executes the hook with the tree as its argument.
    got = subprocess.run(["sh", "-c", f'chroot() {{ shift; "$@"; }}; {hook}', "sh", "tree"], check=True, env={"HOME": str(tmp_path)})
    assert got.returncode == 0 and (tmp_path / "made").read_text() == "a  b\n"


def squashfs_tools(request: pytest.FixtureRequest) -> rootimage.Program:
    if not (packages.cache() / "chosen" / "squashfs-tools.json").is_file() and not request.config.getoption("--long"):
        pytest.skip("squashfs-tools is not in the cache: a root image or --long fetches it")
    return rootimage.squashfs_tool("mksquashfs", print)


def test_nearly_equal_files_keep_their_contents(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    maker = squashfs_tools(request)
    reader = rootimage.squashfs_tool("unsquashfs", print)
    # As PostgreSQL's databases: three copies of the same files, some of which differ in their last bytes.
    chosen = random.Random(1)
    once = [chosen.randbytes(chosen.choice((8, 16, 24, 40, 96, 128, 136, 248, 248, 248, 480, 512)) << 10) for _ in range(150)]
    files = {f"tree/{copy}/{n}": data[:-8] + chosen.randbytes(8) if copy == 2 and n % 9 == 0 else data
             for copy in range(3) for n, data in enumerate(once)}
    with tarfile.open(tmp_path / "tree.tar", "w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    for n in range(10 if request.config.getoption("--long") else 2):
        rootimage._squash(maker, tmp_path / "tree.tar", tmp_path / f"image{n}", "another")
        rootimage._run(reader, ["-q", "-n", "-d", str(tmp_path / f"out{n}"), str(tmp_path / f"image{n}")], None, "another")
        assert not [name for name, data in files.items() if (tmp_path / f"out{n}" / name).read_bytes() != data]


def test_a_program_of_an_image_is_taken_out_once_and_nothing_else_is(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    maker = squashfs_tools(request)
    program = b"\x7fELF" + random.Random(2).randbytes(3 << 20)
    files = {"usr/bin/program": program, "usr/bin/[": b"\x7fELF: one letter", "usr/share/text": b"text"}
    with tarfile.open(tmp_path / "tree.tar", "w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    image = tmp_path / "image.squashfs"
    rootimage._squash(maker, tmp_path / "tree.tar", image, "another")
    taken = ImageFiles(image)
    copy = taken.find("squashfs:/usr/bin/program")
    assert copy and copy.read_bytes() == program and taken.find("overlay:/usr/bin/program") == copy
    letter = taken.find("overlay:/usr/bin/[")
    assert letter and letter.read_bytes() == files["usr/bin/["]
    assert sorted(path.name for path in copy.parent.iterdir()) == ["[", "program"], "nothing half-written is left"
    others = ("squashfs:/usr/share/text", "squashfs:/usr/bin/none", "squashfs:/usr/bin", "tmpfs:/usr/bin/x", "squashfs:/../x", "usr/bin/x")
    assert not any(map(taken.find, others)) and [path.name for path in image.with_suffix(".files").glob("usr/*")] == ["bin"]


def test_without_a_tool_for_images_no_file_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(*_: object) -> rootimage.Program:
        raise UserError("squashfs-tools: no archive here")

    monkeypatch.setattr(rootimage, "squashfs_tool", missing)
    assert ImageFiles(tmp_path / "image.squashfs").find("squashfs:/usr/bin/program") is None
