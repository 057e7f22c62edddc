# SPDX-License-Identifier: BSD-3-Clause
"""The registry, the build and the reading of results."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import cli, jsonio, workloads
from moscope.errors import UserError
from moscope.workloads import build, registry


def test_every_workload_has_a_program_and_every_program_a_workload(sources: Path) -> None:
    every = workloads.every()
    folders = {p.name for p in sources.iterdir() if p.is_dir() and p.name not in ("common", "__pycache__")}
    assert {w.family for w in every} | {w.launcher for w in every if w.launcher} == folders
    for family in {w.launcher or w.family for w in every}:
        program = build.program(family)
        assert program.stat().st_mode & 0o100 and b"ld-linux" not in program.read_bytes()[:4096]


REGISTRATION = """\
from moscope.workloads import Workload, register

register(__file__, *(Workload(name, "a test", "loops", lambda cores: f"--cores {cores}") for name in (NAMES)))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a family outside the checkout; what it registers is forgotten after the test."""
    workloads.every()
    monkeypatch.setattr(registry, "_REGISTERED", {w.name: w for w in registry.every()})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/mine.c").write_text('#include "common/workload.h"\nint main(void) { return 0; }')
    return tmp_path / "mine"


def test_a_folder_outside_the_checkout_is_a_workload(folder: Path) -> None:
    (folder / "workload.py").write_text(REGISTRATION.replace("NAMES", "'looping',"))
    w = workloads.find(str(folder))
    assert (w.name, w.family, w.folder) == ("looping", "mine", folder)
    assert workloads.programs({"mine"})["workloads/mine"].is_file()


def test_a_folder_outside_the_checkout_is_in_no_guest_that_does_not_measure_it(folder: Path) -> None:
    before = workloads.programs()
    (folder / "workload.py").write_text(REGISTRATION.replace("NAMES", "'looping',"))
    w = workloads.find(str(folder))
    assert workloads.programs() == before and "workloads/mine" in workloads.along(w)


def test_one_of_several_workloads_of_a_folder_is_named_behind_a_colon(folder: Path) -> None:
    (folder / "workload.py").write_text(REGISTRATION.replace("NAMES", "'one', 'two'"))
    assert workloads.find(f"{folder}:two").name == "two"
    for wrong in (str(folder), f"{folder}:three"):
        with pytest.raises(UserError, match="registers 2 workloads: expected .*mine:one or .*mine:two"):
            workloads.find(wrong)


@pytest.mark.parametrize(("text", "message"), [
    ("register", "workload.py:1: NameError: .*: expected calls of moscope.workloads.register"),
    (REGISTRATION.replace("NAMES", "'exim',"), "workload exim: .*/workloads/exim/workload.py has this name: expected another"),
], ids=["no registration", "name of another"])
def test_a_folder_that_registers_no_workload_of_its_own_is_an_error(folder: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match="mine: workload.py: No such file or directory: expected the folder of a workload"):
        workloads.find(str(folder))
    (folder / "workload.py").write_text(text)
    with pytest.raises(UserError, match=message):
        workloads.find(str(folder))


def test_the_documentation_names_workloads_that_exist(root: Path) -> None:
    names = {w.name for w in workloads.every()}
    table = (root / "docs/workloads.md").read_text().partition("| workload | what it does")[2].partition("\n\n")[0]
    first = [n for row in table.splitlines()[2:] for n in re.findall("`([^`]+)`", row.split("|")[1])]
    stem = {n: next(f for f in first[i::-1] if not f.startswith("-")) for i, n in enumerate(first)}
    full = {n if not n.startswith("-") else f"{stem[n].partition('-')[0]}{n}" for n in first}
    assert full <= names, full - names


def test_a_name_that_is_not_known_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="falseshare"):
        workloads.find("falsesharing")


def test_the_command_names_the_program_where_the_initial_file_system_puts_it() -> None:
    w = workloads.find("counter-sloppy")
    assert w.command(6, "--operations", "5").startswith("/run/moscope/workloads/counter --simulated sloppy --cores 6")
    assert list(workloads.programs({"counter"})) == ["workloads/counter"]


def test_a_folder_may_have_a_name_that_the_guests_shell_would_split(folder: Path) -> None:
    (folder / "workload.py").write_text(REGISTRATION.replace("NAMES", "'looping',"))
    w = workloads.find(str(folder.rename(folder.with_name("mine (2)"))))
    assert shlex.split(w.command(2)) == ["/run/moscope/workloads/mine (2)", "--simulated", "--cores", "2"]


def test_windows_of_mail_get_shorter_with_more_cores() -> None:
    w = workloads.find("exim")
    assert callable(w.window) and callable(w.warmup)
    assert [w.window(n) for n in (1, 12, 24, 48)] == ["50000us", "12000us", "6000us", "3000us"]
    assert [w.warmup(n) for n in (1, 12, 48)] == ["5000us", "3000us", "3000us"]


def test_a_program_is_built_once_and_again_when_its_source_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build.paths, "root", lambda: tmp_path)
    for name, text in (("one/one.c", "int main(void) { return 0; }"), ("common/c.h", "")):
        (tmp_path / "workloads" / name).parent.mkdir(parents=True)
        (tmp_path / "workloads" / name).write_text(text)
    first = build.program("one")
    time = first.stat().st_mtime_ns
    assert build.program("one") == first and first.stat().st_mtime_ns == time
    (tmp_path / "workloads/common/c.h").write_text("// changed")
    assert build.program("one") != first


def test_a_program_is_built_again_when_a_file_changes_that_its_headers_include(folder: Path) -> None:
    (folder / "mine.c").write_text('#include "sub/value.h"\nint main(void) { return VALUE; }\n')
    (folder / "sub").mkdir()
    (folder / "sub/value.h").write_text('# include "../table.inc"\n')
    (folder / "table.inc").write_text("#define VALUE 7\n")
    first = build.program("mine", folder)
    assert build.program("mine", folder) == first
    (folder / "table.inc").write_text("#define VALUE 8\n")
    assert build.program("mine", folder) != first


def test_a_library_is_built_again_when_a_header_beside_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "seven.c").write_text('#include "seven.h"\nint seven(void) { return SEVEN; }\n')
    (tmp_path / "seven.h").write_text("#define SEVEN 7\n")
    first = build.library(tmp_path / "seven.c")
    assert build.library(tmp_path / "seven.c") == first
    (tmp_path / "seven.h").write_text("#define SEVEN 8\n")
    assert build.library(tmp_path / "seven.c") != first


def test_a_compiler_that_fortifies_by_itself_builds_the_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                 stand_ins: Callable[[dict[str, str]], None]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    expected = build.program("memfix")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    stand_ins({"gcc": f'#!/bin/sh\nexec {shutil.which("gcc")} -D_FORTIFY_SOURCE=2 "$@"\n'})
    assert build.program("memfix").read_bytes() == expected.read_bytes()


def test_a_program_that_does_not_compile_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build.paths, "root", lambda: tmp_path)
    (tmp_path / "workloads/one").mkdir(parents=True)
    with pytest.raises(UserError, match="contains no C file"):
        build.program("one")
    (tmp_path / "workloads/one/one.c").write_text("int main(void) { return x; }")
    with pytest.raises(UserError, match="does not compile.*error"):
        build.program("one")


def test_results_are_found_between_other_output() -> None:
    text = "moscope# ./x\r\nmoscope: x threads=4\r\n^Cmoscope: x operations=12 cycles=1.5 verify=ok\r\nmoscope: y verify=wrong\r\n"
    got = workloads.Results.of(text, "x")
    assert got.finished and got.right and got.values["operations"] == 12 and got.values["threads"] == 4
    assert workloads.Results.of(text, "y").finished and not workloads.Results.of(text, "y").right
    assert not workloads.Results.of(text, "z").finished


def test_the_counts_of_a_services_clients_are_those_of_its_launchers_line() -> None:
    line = "moscope: x cores=2 answers=480 wrong=0 timeouts=3 requests=520 first_error=57P01 verify=ok\r\n"
    assert workloads.Results.of(line, "x").clients == {"answers": 480, "wrong": 0, "timeouts": 3, "requests": 520}
    assert workloads.Results.of("moscope: x threads=4\nmoscope: x operations=12 verify=ok\n", "x").clients == {}


def test_the_list_of_workloads_fits_its_schema(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["workload", "list", "--json"]) == 0
    listed = json.loads(capfd.readouterr().out)
    jsonio.validate(listed)
    assert {"name": "exim", "family": "exim", "processes": True}.items() <= next(w for w in listed["workloads"]
                                                                                 if w["name"] == "exim").items()


def test_a_service_is_a_folder_with_one_file(folder: Path) -> None:
    (folder / "mine.c").unlink()
    (folder / "workload.py").write_text("""\
from moscope.workloads import register, service

register(__file__, service("mine", "a test", "requests", packages=("memcached",), port=11211, one_process=True,
                           each="exec memcached -p %p", load=lambda cores: f"memcached clients={8 * cores}"))
""")
    (folder / "mine.conf").write_text("a line")
    found = workloads.find(str(folder))
    assert found.command(4).startswith("/run/moscope/workloads/launcher --simulated --name mine --cores 4 --port 11211 --each 'exec ")
    assert "--load 'memcached clients=32'" in found.command(4)
    assert workloads.programs({"mine"}).keys() == {"workloads/launcher"}
    assert workloads.files(found) == {"workloads/mine/mine.conf": folder / "mine.conf"}
    assert "workloads/launcher" not in workloads.programs()


def test_a_script_that_completes_the_root_image_is_part_of_the_workload_and_stays_out_of_the_guest(folder: Path) -> None:
    (folder / "mine.c").unlink()
    (folder / "workload.py").write_text("""\
from moscope.workloads import register, service

register(__file__, service("mine", "a test", "requests", packages=("memcached",), image="make.sh", port=11211, one_process=True,
                           each="exec memcached -p %p", load=lambda cores: "memcached"))
""")
    found = workloads.find(str(folder))
    with pytest.raises(UserError, match="make.sh: .*: expected the shell script of workload mine"):
        _ = found.image_script
    (folder / "make.sh").write_text("touch /made")
    assert found.image_script == "touch /made" and workloads.files(found) == {}
    assert workloads.find("memcached").image_script == ""


def test_the_database_is_made_with_the_rows_that_its_clients_expect(root: Path) -> None:
    for name, updates in (("postgresql", 0), ("postgresql-write", 5)):
        w = workloads.find(name)
        assert (w.packages, w.steering, w.kernels) == (("postgresql-15",), "pin-every-20", "stock,pk")
        assert f"'postgresql connections=48 rows=1000000 batch=256 updates={updates}'" in w.command(48)
        assert "(k::bigint * 2654435761 % 2147483648)::int FROM generate_series(0, 999999)" in w.image_script
    seeking = workloads.find("postgresql-seeks")
    assert " env LD_PRELOAD=/run/moscope/workloads/postgresql/seeks.so /usr/lib/" in seeking.command(48)
    assert workloads.files(seeking)["workloads/postgresql/seeks.so"].read_bytes()[:4] == b"\x7fELF"
    session = (root / "src/net/postgresql/session.hh").read_text()
    assert f"return key * 2654435761u & {2147483648 - 1:#x}u;" in session
