# SPDX-License-Identifier: BSD-3-Clause
"""Programs of one's own (`moscope run --program`): what their points are, and which files are refused, in words for people."""

import os
import struct
from pathlib import Path

import pytest

from moscope.cli import Shared
from moscope.errors import UserError
from moscope.runs import options, own_program

MARK = own_program.WORK_BEGIN_CODE


def elf(code: bytes = b"\x90" * 8 + MARK, kind: int = 2, machine: int = 62, bits: int = 2, segments: tuple[int, ...] = (1,),
        flags: int = 5, size: int = 0) -> bytes:
    """A file with a header, segments of these types, and the code in all of them."""
    at = 64 + 56 * len(segments)
    header = struct.pack("<4s12xHHIQQQIHHHHHH", b"\x7fELF", kind, machine, 1, 0x400000, 64, 0, 0, 64, 56, len(segments), 64, 0, 0)
    header = header[:4] + bytes((bits, 1, 1)) + header[7:]
    rest = flags, at, 0x400000, 0, len(code), size or len(code), 4096
    return header + b"".join(struct.pack("<IIQQQQQQ", s, *rest) for s in segments) + code


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "mine"
    path.write_bytes(elf())
    return path


def made(shared: Shared, program: object, **given: object) -> options.Plan:
    return options.make(shared, options.Options(**{"program": str(program), **given}))  # type: ignore[arg-type]


def test_its_points_are_a_workloads_on_the_distributions_kernel(shared: Shared, program: Path) -> None:
    plan = made(shared, f"{program} --threads {{cores}} 'two words' $HOME", cores="1,12")
    assert [(p.workload, p.kernel, p.cores, p.family) for p in plan.points] == [("mine", "distro", 1, ""), ("mine", "distro", 12, "")]
    assert [p.command for p in plan.points] == [
        f"""/run/moscope/programs/mine --threads {n} 'two words' '$HOME'; echo "moscope: program ended with status $?\"""" for n in (1, 12)]
    assert plan.programs["programs/mine"] == program and "workloads/counter" in plan.programs
    assert plan.points[0].name == "mine-distro-1" and plan.points[0].begin is None


def test_without_arguments_the_command_is_the_program(shared: Shared, program: Path) -> None:
    assert made(shared, program, cores="1").points[0].command.startswith("/run/moscope/programs/mine; echo ")


def test_it_needs_a_mark_only_if_nothing_else_says_where_to_begin(shared: Shared, program: Path) -> None:
    program.write_bytes(elf(b"\x90" * 16))
    with pytest.raises(UserError, match=r"mine: does not mark the start of detailed simulation: expected m5_work_begin\(0, 0\) in it \(the "
                       r"instruction 0f 04 5a 00\)"):
        made(shared, program)
    with pytest.raises(UserError, match="does not mark the start of detailed simulation"):
        made(shared, program, begin="workbegin")
    assert made(shared, program, begin="1ms").points and made(shared, program, begin="ready").points


def test_a_position_independent_program_without_an_interpreter_is_static(shared: Shared, program: Path) -> None:
    program.write_bytes(elf(kind=3))
    assert made(shared, program).points


def test_a_dynamic_program_takes_its_libraries_and_their_loader_along(shared: Shared) -> None:
    plan = made(shared, os.path.realpath("/proc/self/exe"), begin="1ms")
    loaders = [name for name in plan.programs if "ld-linux" in name]
    assert loaders and all(name.startswith("/") and plan.programs[name].is_file() for name in loaders)
    assert any(name.endswith("/libc.so.6") for name in plan.programs)


def test_a_shell_script_needs_nothing_and_a_start_that_it_cannot_mark(shared: Shared, program: Path) -> None:
    program.write_bytes(b"#!/bin/sh\necho\n")
    assert set(made(shared, program, begin="1ms").programs) == {"programs/mine", *made(shared, program, begin="threads").programs}
    with pytest.raises(UserError, match="does not mark the start of detailed simulation"):
        made(shared, program)
    program.write_bytes(b"#!/usr/bin/unheard-of\n")
    with pytest.raises(UserError, match="needs the interpreter unheard-of, .*: expected --with and the Debian package"):
        made(shared, program, begin="1ms")


def test_environment_folder_and_standard_input_go_along(shared: Shared, program: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words").write_text("one two")
    plan = made(shared, program, cores="1", variables=("A=b c",), take=str(tmp_path / "data"), stdin=str(tmp_path / "data" / "words"))
    assert plan.points[0].command.startswith("cd /run/moscope/work && A='b c' /run/moscope/programs/mine < /run/moscope/stdin; echo ")
    assert plan.programs["work/words"] == tmp_path / "data" / "words" == plan.programs["stdin"]
    with pytest.raises(UserError, match="--env: =x: expected NAME=VALUE"):
        made(shared, program, variables=("=x",))
    with pytest.raises(UserError, match="--take: applies only to a program of your own: expected --program, too"):
        options.make(shared, options.Options(take="."))


def test_an_empty_folder_is_refused_with_a_standard_input_too(shared: Shared, program: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="--take: .*/empty: is empty: expected a folder with files"):
        made(shared, program, take=str(tmp_path / "empty"), stdin=str(program))


@pytest.mark.parametrize(("content", "says"), [
    (b"", "is not an ELF file"),
    (b"MZ" + bytes(100), "is not an ELF file"),
    (b"\x7fELF", "is not an ELF file"),
    (elf(bits=1), "is for another processor than x86-64"),
    (elf(machine=183), "is for another processor than x86-64"),
    (elf(kind=1), "is an object file that is not linked"),
    (elf()[:100], "is cut short"),
    (elf(segments=()), "contains no code"),
    (elf(flags=4), "contains no code"),
])
def test_a_file_that_could_not_run_is_refused_before_anything_boots(shared: Shared, program: Path, content: bytes, says: str) -> None:
    program.write_bytes(content)
    with pytest.raises(UserError, match=f"^--program: {program}: {says}.*: expected a Linux program for x86-64, or a script"):
        made(shared, program, begin="1ms")


def test_a_program_larger_than_the_machines_memory_is_refused_before_the_boot(shared: Shared, program: Path) -> None:
    program.write_bytes(elf(size=(4 << 30) + 1))
    with pytest.raises(UserError, match=rf"^--program: {program}: its segments take 4097MiB, and the machine has 4096MiB: "
                                        "expected --memory-per-node above 513MiB$"):
        made(shared, program)
    assert made(shared, program, memory_per_node="1GiB").points
    program.write_bytes(elf(size=4 << 30))
    assert made(shared, program).points


@pytest.mark.parametrize(("given", "says"), [
    ("{}/nothing", "nothing: No such file or directory: expected a Linux program"),
    ("{}", "is a folder"),
    ("/dev/zero", "^--program: /dev/zero: is a device: expected a Linux program"),
    ("", "is empty"),
    ("{}/mine 'x", "no closing quotation: expected a file and its arguments, quoted as for a shell"),
    ("{}/mine a\x03", "arguments of printable ASCII"),
    ("{}/mine \u00fc", "arguments of printable ASCII"),
    ("'{}/my program'", "its file name: expected only letters"),
    ("{}/mine " + "x" * 900, r"the command has 9\d\d characters: expected at most 900"),
])
def test_a_command_that_cannot_be_typed_is_refused(shared: Shared, program: Path, given: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        made(shared, given.format(program.parent))


@pytest.mark.parametrize(("given", "says"), [
    ({"text": "nothing.sh"}, "--program: nothing.sh: is neither in {} nor on the PATH: expected a Linux program"),
    ({"text": "sub/nothing"}, "--program: {}/sub/nothing: No such file or directory: expected a Linux program"),
    ({"text": "true", "stdin": "words"}, "--stdin: {}/words: No such file or directory: expected a readable file"),
    ({"text": "true", "take": "sub"}, "--take: {}/sub: is not a folder: expected a folder"),
])
def test_an_error_says_where_a_relative_path_was_searched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str],
                                                              says: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as raised:
        own_program.parse(own_program.Asked(**given), False)
    assert str(raised.value).startswith(says.format(tmp_path))


def test_its_status_is_read_from_the_shells_output_and_not_from_the_echoed_command() -> None:
    echo = f'# mine; echo "{own_program.ENDED}$?"\r\n'
    assert own_program.status_of(echo.encode()) is None
    assert own_program.status_of(f"{echo}{own_program.ENDED}139\r\nmoscope# ".encode()) == 139
