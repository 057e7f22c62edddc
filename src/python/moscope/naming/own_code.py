# SPDX-License-Identifier: BSD-3-Clause
"""Which source files belong to the program or the kernel itself, and which to compilers, libraries and a kernel's headers; and
from this, which source line is useful for a reader."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

# Paths of files that are not the program's own, as debug information names them.
FOREIGN = re.compile(r"/usr/|/build/|/rustc/|/opt/|\.\./|\./|\?|.*/\.cargo/registry/|library/(alloc|core|std)/src/")
OF_SYSTEM = re.compile(r"/(usr/)?lib\w*/(.*/)?[^/]+\.so(\.\d+)*\Z")  # paths of system libraries
OF_PROGRAM = ":"  # in the name of a program's function, `server:work`; names of kernel functions have none
WITHOUT_SYMBOLS = " (no symbols)"  # at the end of the name of a program's code without symbols, which is its file's
INLINED = " (inlined)"  # at the end of an inlined function in a call chain; such a function is named without its program
WORTH_SHOWING = 0.05  # of all writing of a name or waiting for it: the least share of a source line that says where most of it is
WORTH_A_WRITER = 0.2  # of the waiting for a name: below this portion after a write by another core or a device, writers are not named
ALMOST_ALL = 0.9  # of the waiting: a larger share is not given
KERNEL_HEADER = re.compile(r"(arch/\w+/)?include/")


def is_own(place: str, kernel: bool = False) -> bool:
    """Whether `FILE:LINE` is own code. In the kernel, this is every file except headers, whose functions are inlined everywhere."""
    return not (KERNEL_HEADER if kernel else FOREIGN).match(place)


def is_program(function: str) -> bool:
    """Whether the name of a function that was not inlined is that of a program's code. All other code is the kernel's."""
    return OF_PROGRAM in function or function.endswith(WITHOUT_SYMBOLS)


def shown(function: str, source: str, inlined: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """The source line that is useful for a reader: the innermost line of the program's or the kernel's own code. Also the
    functions inlined there, innermost first, each with `FILE:LINE` of its call. A function of a library or a header hides its own
    calls and has no line; in a program, functions that a library calls (a thread's function, by std::thread) are left out."""
    called = [(name, place) for name, _, place in (call.partition(" called at ") for call in inlined)]
    in_program = OF_PROGRAM in function
    for n, place in enumerate((source, *(place for _, place in called))):
        if is_own(place, not in_program):
            calls = [(name, at) for name, at in called[n:] if not in_program or is_own(at)]
            return place, [(called[n - 1][0], ""), *calls] if n else calls
    return source, [] if in_program else called


def said(function: str, source: str, inlined: Sequence[str]) -> str:
    """In words: `stats.c:17, in count called at stats.c:24`."""
    place, within = shown(function, source, inlined)
    return ", in ".join([place, *(f"{name} called at {at}" if at else name for name, at in within)])


def merged(places: Iterable[Mapping[str, Any]], text: Callable[[Mapping[str, Any]], str]) -> list[dict[str, Any]]:
    """Merges places with the same text and adds their shares; the largest share comes first. An example is several lines of a
    library's function that was inlined at one line of the program."""
    made: dict[str, dict[str, Any]] = {}
    for one in places:
        held = made.setdefault(text(one), {**one, "share": 0})
        held["share"] += one["share"]
    return sorted(made.values(), key=lambda one: -one["share"])


def has_writers(name: Mapping[str, Any]) -> bool:
    """Whether the writers of a name of lines are worth naming. `after_writes` is None or absent where it is not known."""
    after_writes = name.get("after_writes")
    return bool(name["writers"]) and (after_writes is None or float(after_writes) >= WORTH_A_WRITER)


def of_pair(share: float | None) -> float | None:
    """The share of a pair of the waiting for a name, if it is worth giving; runs of earlier versions do not have it."""
    return share if share is not None and share < ALMOST_ALL else None
