# SPDX-License-Identifier: BSD-3-Clause
"""`moscope run --program 'FILE ARG ..'`: runs a user's Linux program instead of a workload.

The program needs no change: with `--begin T`, detailed simulation starts after a given time. If it executes gem5's
pseudo-instructions, m5_work_begin(0, 0) starts detailed simulation, and each m5_work_end of another work item counts an operation.
Everything that the program needs is put into the guest: its shared libraries, a script's interpreter, Debian packages, files,
standard input. Errors that can be detected in the files are reported before the boot.
"""

import re
import shlex
import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path

from moscope import readable
from moscope.config.machine import Machine
from moscope.errors import UserError
from moscope.guest import debian, libraries
from moscope.guest.packages import Say
from moscope.naming import elf
from moscope.naming.tasks import NAME_BYTES
from moscope.workloads.registry import GUEST_FOLDER, Workload

WORK_BEGINS = "workbegin"
WORK_BEGIN_CODE = bytes((0x0F, 0x04, 0x5A, 0x00))
FOLDER, TAKEN, STDIN = "programs", "work", "stdin"
# The longest line that the guest's shell accepts.
LONGEST_COMMAND = 900
RIGHT = "expected a Linux program for x86-64, or a script"
UNMARKED = "does not mark the start of detailed simulation: expected --begin with a time, threads, call:FUNCTION, or text from its output"
ENDED = "moscope: program ended with status "
PLAIN_NAME = re.compile(r"[A-Za-z0-9._+-]+\Z")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# Interpreters of scripts that come from packages; the shell itself is the guest's busybox.
OF_PACKAGES = {"python3": "python3", "python": "python3", "perl": "perl", "bash": "bash"}
SHELLS = {"sh", "ash"}
IN_GUEST = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/games")
_MACHINE_X86_64 = 62


@dataclass(frozen=True)
class Asked:
    """The options that describe the user's program, as run.json keeps them."""

    text: str
    packages: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()  # NAME=VALUE
    stdin: str | None = None
    take: str | None = None


@dataclass(frozen=True)
class OwnProgram(Workload):
    path: Path | None = None  # a file of this system; None: the program is in a package
    place: str = ""  # its path in the guest
    around: tuple[str, str] = ("", "")  # text before and after the program in the shell's line
    along: dict[str, Path] = field(default_factory=dict)  # files for the guest, by their paths there

    @property
    def family(self) -> str:
        """Empty: the results of a user's program are not checked."""
        return ""

    @property
    def program(self) -> str:
        return self.place

    def command(self, cores: int, *more: str) -> str:
        line = " ".join([self.program, self.arguments(cores), *more]).rstrip()
        line = f"{self.around[0]}{line}{self.around[1]}"
        if len(line) > LONGEST_COMMAND:
            raise UserError(f"--program: the command has {len(line)} characters: expected at most {LONGEST_COMMAND}")
        return f'{line}; echo "{ENDED}$?"'


def parse(asked: Asked, marked: bool, say: Say = print) -> OwnProgram:
    """`marked`: the program itself must mark the start of detailed simulation."""
    try:
        words = shlex.split(asked.text)
    except ValueError as error:
        raise UserError(f"--program: {asked.text}: {str(error).lower()}: "
                        "expected a file and its arguments, quoted as for a shell") from None
    if not words:
        raise UserError("--program: is empty: expected a file and its arguments")
    arguments = words[1:]
    for word in arguments:
        if not (word.isascii() and (word.isprintable() or not word)):
            raise UserError(f"--program: {word!r}: expected arguments of printable ASCII characters, as they are typed at a console")
    along = _taken(asked)
    packaged = debian.files(asked.packages, say) if asked.packages else {}
    place = _packaged(words[0], packaged)
    path = None if place else _file(words[0])
    folders: list[str] = []
    if path is not None:
        content = check(path, marked)
        place = f"{GUEST_FOLDER}/{FOLDER}/{path.name}"
        along[f"{FOLDER}/{path.name}"] = path.absolute()  # absolute, because it is read later, perhaps in another folder
        if content[:2] == b"#!":
            packaged |= _interpreter(path, content, packaged, say)
        else:
            found = libraries.of(path)
            folders = found.folders
            along |= {name: file for name, file in found.files.items() if name not in packaged}
    elif marked:
        raise UserError(f"--program: {words[0]}: {UNMARKED}")
    return OwnProgram(Path(words[0]).name, asked.text, "operations",
                      lambda cores: shlex.join(w.replace("{cores}", str(cores)) for w in arguments),
                      path=path and path.absolute(), place=place, around=_around(asked, folders), along={**packaged, **along})


def _around(asked: Asked, folders: list[str]) -> tuple[str, str]:
    """The parts of the shell's line before and after the program: change of folder, variables, standard input."""
    variables = [*asked.variables, *([f"LD_LIBRARY_PATH={':'.join(folders)}"] if folders else [])]
    for one in variables:
        if not (VARIABLE.match(one) and one.isascii() and one.isprintable()):
            raise UserError(f"--env: {one}: expected NAME=VALUE of printable ASCII characters")
    before = f"cd {GUEST_FOLDER}/{TAKEN} && " if asked.take else ""
    before += "".join(f"{name}={shlex.quote(value)} " for name, _, value in (one.partition("=") for one in variables))
    return before, f" < {GUEST_FOLDER}/{STDIN}" if asked.stdin else ""


def _taken(asked: Asked) -> dict[str, Path]:
    """The files of the folder and the standard input that the user gives."""
    found: dict[str, Path] = {}
    if asked.stdin:
        found[STDIN] = _readable("--stdin", Path(asked.stdin).absolute())
    if asked.take:
        folder = Path(asked.take).absolute()
        if not folder.is_dir():
            raise UserError(f"--take: {folder}: is not a folder: expected a folder")
        taken = {f"{TAKEN}/{path.relative_to(folder)}": path.absolute() for path in sorted(folder.rglob("*")) if path.is_file()}
        if not taken:
            raise UserError(f"--take: {folder}: is empty: expected a folder with files")
        found |= taken
    return found


def _readable(option: str, path: Path) -> Path:
    if why := readable.fault(path):
        raise UserError(f"{option}: {path}: {why}: expected a readable file")
    return path


def _packaged(word: str, packaged: dict[str, Path]) -> str:
    """The path in the guest of a program from a package; empty if there is none."""
    places = [word] if word.startswith("/") else [f"{folder}/{word}" for folder in IN_GUEST] if "/" not in word else []
    return next((place for place in places if place in packaged), "")


def _file(word: str) -> Path:
    """A file of this system: by its path, or a program on the PATH. The path is absolute: errors say where it was searched for."""
    path = Path(word)
    if "/" not in word and not path.exists():
        path = Path(found) if (found := shutil.which(word)) else path
    if not PLAIN_NAME.match(path.name) or path.name in (".", ".."):
        raise UserError(f"--program: {path}: its file name: expected only letters, digits and . _ + -")
    if "/" not in str(path) and not path.exists():
        raise UserError(f"--program: {word}: is neither in {Path.cwd()} nor on the PATH: {RIGHT}")
    return path.absolute()


def _interpreter(path: Path, content: bytes, packaged: dict[str, Path], say: Say) -> dict[str, Path]:
    """The files of a script's interpreter, unless the guest has them already."""
    line = content.partition(b"\n")[0][2:].decode(errors="replace").split()
    if line and line[0].endswith("/env"):
        line = [f"{IN_GUEST[0]}/{word}" for word in line[1:] if not word.startswith("-")]
    name = line[0].rsplit("/", 1)[-1] if line else ""
    if name in SHELLS or any(f"{folder}/{name}" in packaged for folder in IN_GUEST):
        return {}
    package = OF_PACKAGES.get(re.sub(r"\.\d+$", "", name))
    if package is None:
        what = f"needs the interpreter {name}, whose package moscope does not know" if name else "names no interpreter"
        raise UserError(f"--program: {path}: {what}: expected --with and the Debian package that has its interpreter")
    return debian.files([package], say)


def check(path: Path, marked: bool) -> bytes:
    """The file's content. UserError for a program that cannot run, or never starts detailed simulation."""
    if why := readable.fault(path):
        raise UserError(f"--program: {path}: {why}: {RIGHT}")
    data = path.read_bytes()
    if data[:2] == b"#!":
        if marked:
            raise UserError(f"--program: {path}: {UNMARKED}")
        return data
    if data[:4] != b"\x7fELF" or len(data) < 64:
        raise UserError(f"--program: {path}: is not an ELF file: {RIGHT}")
    kind, machine = struct.unpack_from("<HH", data, 16)
    if data[4:6] != b"\x02\x01" or machine != _MACHINE_X86_64:
        raise UserError(f"--program: {path}: is for another processor than x86-64: {RIGHT}")
    if kind not in (elf.ET_EXEC, elf.ET_DYN):
        raise UserError(f"--program: {path}: is an object file that is not linked: {RIGHT}")
    try:
        headers = elf.program_headers(data)
    except elf.NotElf:
        raise UserError(f"--program: {path}: is cut short: {RIGHT}") from None
    code = [data[offset : offset + size] for k, flags, offset, _, _, size, _, _ in headers if k == elf.PT_LOAD and flags & elf.PF_X]
    if not code:
        raise UserError(f"--program: {path}: contains no code: {RIGHT}")
    if marked and not any(WORK_BEGIN_CODE in part for part in code):
        raise UserError(f"--program: {path}: does not mark the start of detailed simulation: expected m5_work_begin(0, 0) in it (the "
                        f"instruction {WORK_BEGIN_CODE.hex(' ')}), or --begin with a time, threads, call:FUNCTION, or text from its output")
    return data


def check_memory(work: OwnProgram, machine: Machine) -> None:
    """UserError for a program that the kernel cannot load, because its segments are larger than the machine's memory."""
    path = work.path or work.along.get(work.place)
    try:
        needed = sum(segment.size for segment in elf.from_file(path).segments) if path else 0
    except (OSError, elf.NotElf):
        return  # a script
    present = machine.memory_per_node.bytes * machine.chips
    if needed > present:
        raise UserError(f"--program: {path}: its segments take {-(-needed >> 20)}MiB, and the machine has {present >> 20}MiB: expected "
                        f"--memory-per-node above {-(-needed // machine.chips >> 20)}MiB")


def status_of(console: bytes) -> int | None:
    """The exit status of the program; None if it has not ended, or was stopped."""
    found = re.findall(re.escape(ENDED).encode() + rb"(\d+)", console)
    return int(found[-1]) if found else None


def may_have_crashed(console: bytes, name: str) -> bool:
    """Whether the kernel has begun a message about a process of this name, as it does before it ends one for a fault:
    `misc[129]: segfault at 0 ip ..`, `traps: misc[129] general protection fault ..`."""
    return bool(re.search(rb"^\[ *\d+\.\d+\] (traps: )?" + re.escape(name[:NAME_BYTES].encode()) + rb"\[\d+\]", console, re.MULTILINE))
