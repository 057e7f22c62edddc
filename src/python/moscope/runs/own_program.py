# SPDX-License-Identifier: BSD-3-Clause
"""`moscope run --program 'FILE ARG ..'`: runs a user's static Linux program instead of a workload.

The program needs no change: with `--begin T`, detailed simulation starts at a time. If it executes gem5's
pseudo-instructions, m5_work_begin(0, 0) starts detailed simulation, and each m5_work_end of another work item counts an
operation. Errors that can be detected in the file are reported before the boot.
"""

import re
import shlex
import struct
from dataclasses import dataclass
from pathlib import Path

from moscope.errors import UserError
from moscope.naming import elf
from moscope.workloads.registry import GUEST_FOLDER, Workload

WORK_BEGINS = "workbegin"
WORK_BEGIN_CODE = bytes((0x0F, 0x04, 0x5A, 0x00))
FOLDER = "programs"
# What the guest's shell takes as one line.
LONGEST_COMMAND = 900
RIGHT = "expected a static Linux program for x86-64 (gcc -static)"
ENDED = "moscope: program ended with status "
_MACHINE_X86_64 = 62


@dataclass(frozen=True)
class OwnProgram(Workload):
    path: Path = Path()

    @property
    def family(self) -> str:
        """None: its results are not checked."""
        return ""

    @property
    def guest_file(self) -> str:
        """Path in the guest, under /run/moscope."""
        return f"{FOLDER}/{self.name}"

    @property
    def program(self) -> str:
        return f"{GUEST_FOLDER}/{self.guest_file}"

    def command(self, cores: int, *more: str) -> str:
        line = " ".join([self.program, self.arguments(cores), *more]).rstrip()
        if len(line) > LONGEST_COMMAND:
            raise UserError(f"--program: the command has {len(line)} characters: expected {LONGEST_COMMAND} at most")
        return f'{line}; echo "{ENDED}$?"'


def parse(text: str, marked: bool) -> OwnProgram:
    """`marked`: the program itself must mark the start of detailed simulation."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"--program: {text}: {str(error).lower()}: expected a file and its arguments, quoted as for a shell") from None
    if not words:
        raise UserError("--program: is empty: expected a file and its arguments")
    path, arguments = Path(words[0]), words[1:]
    if not re.fullmatch(r"[A-Za-z0-9._+-]+", path.name) or path.name in (".", ".."):
        raise UserError(f"--program: {path}: its file name: expected one of letters, digits, dots, dashes and underscores")
    for word in arguments:
        if not (word.isascii() and (word.isprintable() or not word)):
            raise UserError(f"--program: {word!r}: expected arguments of printable ASCII characters, as they are typed at a console")
    check(path, marked)
    return OwnProgram(path.name, f"{path}", "operations", lambda cores: shlex.join(w.replace("{cores}", str(cores)) for w in arguments),
                      path=path.absolute())


def check(path: Path, marked: bool) -> None:
    """UserError for a program that cannot run, or never starts detailed simulation."""
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        raise UserError(f"--program: {path} is a folder: {RIGHT}") from None
    except OSError as error:
        raise UserError(f"--program: {path}: {error.strerror}: expected a file that can be read") from error
    if data[:2] == b"#!":
        raise UserError(f"--program: {path}: is a script: {RIGHT}")
    if data[:4] != b"\x7fELF" or len(data) < 64:
        raise UserError(f"--program: {path}: is no ELF file: {RIGHT}")
    kind, machine = struct.unpack_from("<HH", data, 16)
    if data[4:6] != b"\x02\x01" or machine != _MACHINE_X86_64:
        raise UserError(f"--program: {path}: is for another processor than x86-64: {RIGHT}")
    if kind not in (elf.ET_EXEC, elf.ET_DYN):
        raise UserError(f"--program: {path}: is an object file, not linked: {RIGHT}")
    try:
        headers = elf.program_headers(data)
    except elf.NotElf:
        raise UserError(f"--program: {path}: is cut short: {RIGHT}") from None
    if any(h[0] == elf.PT_INTERP for h in headers):
        raise UserError(f"--program: {path}: is dynamically linked, and the guest has no libraries: {RIGHT}")
    code = [data[offset : offset + size] for k, flags, offset, _, _, size, _, _ in headers if k == elf.PT_LOAD and flags & elf.PF_X]
    if not code:
        raise UserError(f"--program: {path}: holds no code: {RIGHT}")
    if marked and not any(WORK_BEGIN_CODE in part for part in code):
        raise UserError(f"--program: {path}: never says where detailed time begins: expected m5_work_begin(0, 0) in it (the instruction "
                        f"{WORK_BEGIN_CODE.hex(' ')}), or --begin with a time or a text of its output")


def status_of(console: bytes) -> int | None:
    """The exit status of the program; None if it has not ended, or was stopped."""
    found = re.findall(re.escape(ENDED).encode() + rb"(\d+)", console)
    return int(found[-1]) if found else None
