# SPDX-License-Identifier: BSD-3-Clause
"""Static libraries of Debian packages in a workload's program. A program of the test's own stands in for apt."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import cli, workloads
from moscope.errors import UserError
from moscope.guest import packages
from moscope.workloads import build, libraries, registry

APT_CACHE = '#!/bin/sh\nfor last; do :; done\n[ $last = libanswer-dev ] && echo "Package: $last"\n'
APT_GET = '#!/bin/sh\nfor last; do :; done\n[ $last = update ] || cp "$DEB" .\n'
SOURCE = '#include "common/workload.h"\n#include <answer.h>\nint main(void) { printf("%d\\n", answer()); return 0; }\n'
REGISTRATION = """\
from moscope.workloads import Workload, register

register(__file__, Workload("answering", "a test", "answers", lambda cores: ""))
"""


def package(place: Path, version: str, answer: int) -> Path:
    """A Debian package with a header and the static library `answer`."""
    tree = place / f"tree-{version}"
    for folder in ("DEBIAN", "usr/include", "usr/lib/x86_64-linux-gnu", "usr/share/doc/libanswer-dev"):
        (tree / folder).mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(f"Package: libanswer-dev\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@x>\n"
                                         "Description: x\n")
    (tree / "usr/share/doc/libanswer-dev/copyright").write_text("free")
    (tree / "usr/include/answer.h").write_text("int answer();\n")  # a declaration of which the workloads' own flags warn
    (place / "answer.c").write_text(f"int answer(void) {{ return {answer}; }}")
    subprocess.run(["gcc", "-c", "answer.c", "-o", "answer.o"], check=True, cwd=place)
    subprocess.run(["ar", "rc", tree / "usr/lib/x86_64-linux-gnu/libanswer.a", "answer.o"], check=True, cwd=place)
    deb = place / f"answer-{version}.deb"
    subprocess.run(["dpkg-deb", "-b", str(tree), str(deb)], check=True, capture_output=True)
    return deb


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_ins: Callable[[dict[str, str]], None]) -> Path:
    """The folder of a user's workload that links to a package, an apt that has this package, and an empty cache."""
    workloads.every()
    monkeypatch.setattr(registry, "_REGISTERED", {w.name: w for w in registry.every()})
    stand_ins({"apt-get": APT_GET, "apt-cache": APT_CACHE})
    monkeypatch.setenv("DEB", str(package(tmp_path, "1.2", 42)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "mine.c").write_text(SOURCE)
    (mine / "workload.py").write_text(REGISTRATION)
    (mine / libraries.FILE).write_text("# why\n\nlibanswer-dev  answer  # the only one\n")
    return mine


def printed(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def test_a_program_has_the_library_of_the_package_that_its_folder_names(folder: Path) -> None:
    said: list[str] = []
    assert not build.is_built("mine", folder) and not (packages.cache() / "packages").exists()
    program = build.program("mine", folder, said.append)
    assert printed(program) == "42\n" and b"ld-linux" not in program.read_bytes()[:4096]
    assert said == ["fetching the package libanswer-dev (once)"]
    assert build.program("mine", folder, said.append) == program and len(said) == 1 and build.is_built("mine", folder)
    assert libraries.licences(folder, said.append)["libanswer-dev"].read_text() == "free"


def test_another_version_of_the_package_is_another_program(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build.program("mine", folder)
    monkeypatch.setenv("DEB", str(package(tmp_path, "1.3", 43)))
    assert build.program("mine", folder) == first, "what was fetched stays in use"
    packages.fetch("libanswer-dev", build.silent, "").tree.rename(tmp_path / "away")
    assert not build.is_built("mine", folder)
    second = build.program("mine", folder)
    assert second != first and printed(second) == "43\n"


def test_a_program_with_a_library_is_only_in_the_initial_file_systems_of_its_own_runs(
        folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "program", lambda name, place, say: place)
    w = workloads.find(str(folder))
    assert not registry.come_along(w) and not registry.come_along(workloads.find("pedsort"))
    assert workloads.programs({"mine"}).keys() == {"workloads/mine"}
    assert workloads.programs().keys().isdisjoint({"workloads/mine", "workloads/pedsort"}) and "workloads/counter" in workloads.programs()


@pytest.mark.parametrize(("text", "message"), [
    ("libanswer-dev", '/mine/libraries:1: "libanswer-dev": expected a Debian package and its libraries, such as libdb5.3-dev db'),
    ("\nlibanswer-dev -lanswer;", '/mine/libraries:2: "libanswer-dev -lanswer;": expected'),
    ("libanswer-dev question", "/mine/libraries:1: libanswer-dev 1.2 has no static library question: expected answer"),
    ("libother-dev other", "libother-dev: the package cannot be fetched .*: expected network access to the distribution's archive, "
                           "or else a workload without this library, which .*/mine/libraries:1 names"),
    ("# none", "/mine: does not compile: .*answer.h: No such file"),
])
def test_a_line_that_cannot_be_linked_is_an_error_of_the_user(folder: Path, text: str, message: str) -> None:
    (folder / libraries.FILE).write_text(text)
    with pytest.raises(UserError, match=message):
        build.program("mine", folder)


def test_a_folder_elsewhere_that_includes_as_those_of_the_checkout_do_reads_what_to_include(folder: Path) -> None:
    (folder / "mine.c").write_text('#include "../common/workload.h"\nint main(void) { return 0; }\n')
    with pytest.raises(UserError, match='mine: does not compile: .*: expected #include "common/workload.h", as the folder is outside'):
        build.program("mine", folder)


def test_a_function_that_no_library_has_is_named(folder: Path) -> None:
    (folder / "mine.c").write_text(SOURCE.replace("answer()", "answer() + question()").replace("int main", "int question(void);\nint main"))
    with pytest.raises(UserError, match="mine: does not compile: .*undefined reference to `question'"):
        build.program("mine", folder)


def test_a_system_without_apt_reads_what_is_missing_with_the_exit_code_of_a_user_error(
        folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "few").mkdir()
    for tool in ("gcc", "as", "ld"):
        (tmp_path / "few" / tool).symlink_to(next(p for p in map(Path, ("/usr/bin/" + tool, "/bin/" + tool)) if p.exists()))
    monkeypatch.setenv("PATH", str(tmp_path / "few"))
    assert cli.main(["workload", "build", str(folder)]) == 2
    assert "libanswer-dev: this system has no apt-get to fetch the package with: expected a workload without this library" in \
        capfd.readouterr().err
    assert "workloads/counter" in workloads.programs({"counter"})
