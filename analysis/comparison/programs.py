# SPDX-License-Identifier: BSD-3-Clause
"""Names that two versions of a user's program have in common, where their files have different names. The names of its functions,
variables and memory contain the name of the file (docs/naming.md)."""

import re
from collections.abc import Callable

from analysis.run_directory import Point

FOLDER = "/run/moscope/programs/"  # where `run --program` puts the program in the guest
LONGEST = 15  # of the name of a process in Linux
OF_PROCESS = ("heap", "stack", "anonymous memory")  # kinds of memory with names such as `heap of server`
Renamed = Callable[[str, str], str]


def of(p: Point) -> str:
    """The name of the program that `run --program` measured; empty for another workload."""
    name, command = str(p.record.get("workload") or ""), str(p.record.get("command") or "")
    return name if name and f"{FOLDER}{name}" in re.split(r"[\s';]+", command) else ""


def renamed(a: str, b: str) -> Renamed:
    """A function that gives the name of a line or function of program `b`, with its kind, as program `a` has it."""
    if not (a and b) or a == b:
        return lambda name, kind: name
    own, process = re.compile(rf"{re.escape(b)}(?=:(?!:)| \(no symbols\))"), f" of {b[:LONGEST]}"

    def in_a(name: str, kind: str) -> str:
        if kind in OF_PROCESS and name.endswith(process):
            return f"{name.removesuffix(process)} of {a[:LONGEST]}"
        return f"{a}{name[len(b):]}" if own.match(name) else name

    return in_a
