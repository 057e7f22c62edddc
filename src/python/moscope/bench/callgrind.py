# SPDX-License-Identifier: BSD-3-Clause
"""Instruction counts of engine calls under valgrind's callgrind (Valgrind manual, "Callgrind: a call-graph generating
cache and branch prediction profiler", and its chapter on the file format).

Callgrind begins a new part of the profile before each engine call. Fibers switch stacks, so it cannot see where a call
ends: a part also holds the Python code up to the next call, which is the same for a short and a long load.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from moscope.errors import SimulatorBug, UserError

# The engine's entries that the loads of `bench memory` use.
ENTRIES = ("moscope::run_experiment*", "moscope::run_random_test*")
# Objects whose instructions are those of Python, not of the simulator.
INTERPRETER = re.compile(r"python|ld-linux|/moscope/_engine")
# The end of Python's traceback for errors that the user has to correct.
USER_ERROR = f"{UserError.__module__}.{UserError.__name__}: "


@dataclass
class Profile:
    """Instructions by function, without those of its callees, and calls by (caller, callee)."""

    own: Counter[str] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __sub__(self, other: "Profile") -> "Profile":
        difference = Profile(Counter(self.own), Counter(self.calls))
        difference.own.subtract(other.own)
        difference.calls.subtract(other.calls)
        return difference

    @property
    def instructions(self) -> int:
        return self.own.total()


def parse(text: str) -> Profile:
    """One part of a profile in callgrind's format, with line positions and one event (Ir)."""
    profile, functions, objects = Profile(), dict[str, str](), dict[str, str]()
    function = callee = ""
    ours = True  # not a function of the interpreter or of the loader
    inclusive = False  # the line after `calls=` counts the callee's instructions

    def name(value: str, names: dict[str, str] = functions) -> str:
        number, _, given = value.partition(" ")
        if given:
            names[number] = given
        return names.get(number, number)

    for line in text.splitlines():
        if line.startswith("ob="):
            ours = not INTERPRETER.search(name(line[3:], objects))
        elif line.startswith("cob="):
            name(line[4:], objects)
        elif line.startswith("fn="):
            function = name(line[3:])
        elif line.startswith("cfn="):
            callee = name(line[4:])
        elif line.startswith("calls="):
            profile.calls[function, callee] += int(line[6:].split()[0])
            inclusive = True
        elif line[:1] in "0123456789+-*" and line:
            if ours and not inclusive:
                profile.own[function] += int(line.split()[1])
            inclusive = False
    return profile


def missing_valgrind() -> list[str]:
    """The Debian package that counting needs, if this machine lacks it."""
    return [] if shutil.which("valgrind") else ["valgrind"]


def count(module: str, argument: str, say: Callable[[str], None],
          entries: tuple[str, ...] = ENTRIES) -> tuple[list[str], list[Profile]]:
    """Runs `python -m module argument` under callgrind: the lines of its standard output and one profile per call of `entries`.

    SimulatorBug if the process fails, UserError if it ends with one.
    """
    from moscope import bootstrap

    bootstrap.install_packages(bootstrap.Relay(say), missing_valgrind)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "profile"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--compress-strings=yes",
                   *(f"--dump-before={entry}" for entry in entries),
                   sys.executable, "-P", "-m", module, argument]
        # Huge pages in the allocator and random hashes would make the counts depend on the host.
        environment = {k: v for k, v in os.environ.items() if k != "GLIBC_TUNABLES"} | {"PYTHONHASHSEED": "0"}
        got = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if got.returncode != 0:
            lines = [line for line in got.stderr.splitlines() if not re.match(r"==\d+==", line)]
            if lines and lines[-1].startswith(USER_ERROR):
                raise UserError(lines[-1].removeprefix(USER_ERROR))
            raise SimulatorBug(f"bench instructions: {lines[-1] if lines else 'valgrind ended with ' + str(got.returncode)}")
        parts = sorted(Path(folder).glob("profile.*"), key=lambda path: int(path.suffix[1:]))
        parts = [*parts[1:], out]  # without the part before the first call; the last part has no number
        return got.stdout.splitlines(), [parse(path.read_text(encoding="utf-8")) for path in parts]
