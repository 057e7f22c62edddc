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
        flags: int = 5) -> bytes:
    """A file with a header, segments of these types, and the code in all of them."""
    at = 64 + 56 * len(segments)
    header = struct.pack("<4s12xHHIQQQIHHHHHH", b"\x7fELF", kind, machine, 1, 0x400000, 64, 0, 0, 64, 56, len(segments), 64, 0, 0)
    header = header[:4] + bytes((bits, 1, 1)) + header[7:]
    return header + b"".join(struct.pack("<IIQQQQQQ", s, flags, at, 0x400000, 0, len(code), len(code), 4096) for s in segments) + code


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
    with pytest.raises(UserError, match=r"mine: never says where detailed time begins: expected m5_work_begin\(0, 0\) in it \(the "
                       r"instruction 0f 04 5a 00\)"):
        made(shared, program)
    with pytest.raises(UserError, match="never says where detailed time begins"):
        made(shared, program, begin="workbegin")
    assert made(shared, program, begin="1ms").points and made(shared, program, begin="ready").points


def test_a_position_independent_program_without_an_interpreter_is_static(shared: Shared, program: Path) -> None:
    program.write_bytes(elf(kind=3))
    assert made(shared, program).points


def test_the_programs_of_this_system_are_found_to_be_what_they_are(shared: Shared) -> None:
    with pytest.raises(UserError, match="is dynamically linked"):
        made(shared, os.path.realpath("/proc/self/exe"), begin="1ms")


@pytest.mark.parametrize(("content", "says"), [
    (b"#!/bin/sh\necho\n", "is a script"),
    (b"", "is no ELF file"),
    (b"MZ" + bytes(100), "is no ELF file"),
    (b"\x7fELF", "is no ELF file"),
    (elf(bits=1), "is for another processor than x86-64"),
    (elf(machine=183), "is for another processor than x86-64"),
    (elf(kind=1), "is an object file, not linked"),
    (elf(segments=(3, 1)), "is dynamically linked, and the guest has no libraries"),
    (elf()[:100], "is cut short"),
    (elf(segments=()), "holds no code"),
    (elf(flags=4), "holds no code"),
])
def test_a_file_that_could_not_run_is_refused_before_anything_boots(shared: Shared, program: Path, content: bytes, says: str) -> None:
    program.write_bytes(content)
    with pytest.raises(UserError, match=f"^--program: {program}: {says}.*: expected a static Linux program for x86-64"):
        made(shared, program, begin="1ms")


@pytest.mark.parametrize(("given", "says"), [
    ("{}/nothing", "nothing: No such file or directory: expected a file that can be read"),
    ("{}", "is a folder"),
    ("", "is empty"),
    ("{}/mine 'x", "no closing quotation: expected a file and its arguments, quoted as for a shell"),
    ("{}/mine a\x03", "arguments of printable ASCII"),
    ("{}/mine \u00fc", "arguments of printable ASCII"),
    ("'{}/my program'", "its file name: expected one of letters"),
    ("{}/mine " + "x" * 900, r"the command has 9\d\d characters: expected 900 at most"),
])
def test_a_command_that_cannot_be_typed_is_refused(shared: Shared, program: Path, given: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        made(shared, given.format(program.parent))


def test_its_status_is_that_which_the_shell_told_and_not_what_it_was_told() -> None:
    echo = f'# mine; echo "{own_program.ENDED}$?"\r\n'
    assert own_program.status_of(echo.encode()) is None
    assert own_program.status_of(f"{echo}{own_program.ENDED}139\r\nmoscope# ".encode()) == 139
