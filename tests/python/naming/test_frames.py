# SPDX-License-Identifier: BSD-3-Clause
"""Names of variables on the stack, against the addresses that the program itself prints."""

import shutil
import subprocess
from pathlib import Path

import pytest

from moscope.naming.frames import Frames
from moscope.naming.unwind.activations import Thread
from moscope.naming.unwind.state import BY_ENCODING, Frame, Stack
from moscope.naming.user import Program

SOURCE = Path(__file__).parent / "unwind/locals.c"
SPACE, RED_ZONE = 0x1000, 128
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
# What the debug information of optimised code leaves out: gcc's the address of an array whose size only the call knows, clang's that
# of an array whose place another one takes later.
LEFT_OUT = {"gcc": "of_unknown_size()::some[2].bytes[3]", "clang": "blocks()::first[1]"}
LONG = {"gcc": "long int", "clang": "long"}
OPTIONS = {"not optimised": ["-O0", "-pie", "-fPIE"], "optimised": ["-O2", "-no-pie"], "static": ["-O2", "-static"],
           "with frame pointers": ["-O1", "-fno-omit-frame-pointer", "-pie", "-fPIE"], "DWARF 4": ["-O2", "-gdwarf-4", "-no-pie"]}


def built(tmp_path: Path, compiler: str, *options: str) -> tuple[Program, dict[str, int], Thread, int]:
    """The program, what it says of its variables, its thread, and how far it was moved."""
    path = tmp_path / "locals"
    subprocess.run([compiler, "-fno-optimize-sibling-calls", "-pthread", *options, str(SOURCE), "-o", str(path)], check=True)
    said = [line.split(" ") for line in subprocess.run([path], check=True, capture_output=True, text=True).stdout.splitlines()]
    rip, *registers = (int(value, 16) for value in next(line for line in said if line[0] == "registers")[1:])
    stack = bytes.fromhex(next(line for line in said if line[0] == "stack")[1])
    frame = Frame(dict(zip(BY_ENCODING, registers, strict=True)) | {"rip": rip}, exact=True)
    program = Program("locals", path)
    moved = int(next(line for line in said if line[0] == "main")[1], 16) - (program.symbols.address("main") or 0)
    variables = {" ".join(line[1:-1]): int(line[-1], 16) for line in said if line[0] == "at"}
    return program, variables, Thread(frame, Stack(frame.rsp, stack)), moved


def frames_of(program: Program, moved: int, *threads: Thread) -> Frames:
    found = Frames(lambda address, cr3: (program, address - moved) if program.covers(address - moved) else None)
    found.parked([(SPACE, thread) for thread in threads])
    return found


@pytest.mark.skipif(not COMPILERS, reason="needs a compiler")
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_variable_of_a_call_has_the_name_of_function_and_field(options: list[str], compiler: str, tmp_path: Path) -> None:
    program, variables, thread, moved = built(tmp_path, compiler, "-g", *options)
    found = frames_of(program, moved, thread)
    named = {name: found.at(at, SPACE) for name, at in variables.items()}
    wanted = {name: name for name in variables}
    if "-O0" not in options:
        left_out = LEFT_OUT[compiler]
        wanted[left_out] = f"frame of {left_out.partition('::')[0]}"
    assert {name: one and one.name for name, one in named.items()} == wanted and len(wanted) == 10
    one = named["run_workers()::stats[2].packets"]
    assert one and (one.program, one.field, one.type, one.end - one.first) == ("locals", "[2].packets", LONG[compiler], 8 * 32)
    assert found.at(one.first, SPACE | 0xFFF) is not None and found.at(one.first, 0x2000) is None
    assert found.at(thread.frame.rsp - RED_ZONE - 1, SPACE) is None


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_without_debug_information_the_frame_has_the_name_of_the_function(tmp_path: Path) -> None:
    program, variables, thread, moved = built(tmp_path, "gcc", "-O2", "-g0")
    found = frames_of(program, moved, thread)
    for name, at in variables.items():
        one = found.at(at, SPACE)
        outer = {"by_value()::passed.words[2]": "blocks", "inlined()::inner[3]": "by_value"}
        function = outer.get(name) or name.removeprefix("frame of ").partition("()")[0]
        assert one and one.name == f"frame of {function}()" and one.field.startswith("+0x") and not one.end, name


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_a_byte_of_different_frames_at_different_times_has_no_name(tmp_path: Path) -> None:
    program, variables, thread, moved = built(tmp_path, "gcc", "-g", "-O2", "-no-pie")
    found = frames_of(program, moved, thread)
    at = variables["run_workers()::stats[2].packets"]
    main = program.symbols.address("main")
    assert main and found.at(at, SPACE) is not None
    # At the end, the thread is in a call of main whose frame begins below.
    later = Frame({"rip": main, "rsp": at & -16, "rbp": 0}, exact=True)
    words = [(main + 1).to_bytes(8, "little")] * 32
    found.parked([(SPACE, Thread(later, Stack(later.rsp, b"".join(words))))])
    assert found.at(at - 8 if at % 16 else at, SPACE) is None
    assert found.at(variables["main()::done[1]"], SPACE) is not None, "seen at the beginning only"


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_a_return_address_that_no_call_precedes_ends_the_stack(tmp_path: Path) -> None:
    program, variables, thread, moved = built(tmp_path, "gcc", "-g", "-O2", "-no-pie")
    code = range(program.symbols.address("run_workers") or 0, (program.symbols.address("run_workers") or 0) + 0x100)
    stack = bytearray(thread.stack.data)
    for at in range(0, len(stack), 8):
        if int.from_bytes(stack[at:at + 8], "little") in code:
            stack[at:at + 8] = (code.start + 1).to_bytes(8, "little")
    found = frames_of(program, moved, Thread(thread.frame, Stack(thread.stack.start, bytes(stack))))
    assert found.at(variables["blocks()::outer"], SPACE) is not None
    assert found.at(variables["run_workers()::stats[2].packets"], SPACE) is None
