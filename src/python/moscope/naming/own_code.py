# SPDX-License-Identifier: BSD-3-Clause
"""Which source files are code of the program or kernel itself, and which are of compilers, libraries and a kernel's headers; and so
which source line a reader looks for."""

import re
from collections.abc import Sequence

# As their debug information names them.
FOREIGN = re.compile(r"/usr/|/build/|/rustc/|/opt/|\.\./|\./|\?|.*/\.cargo/registry/|library/(alloc|core|std)/src/")
OF_PROGRAM = ":"  # in a function of a program, `server:work`; functions of the kernel have none
INLINED = " (inlined)"  # at the end of a function in a call chain, which then has no program in its name
KERNEL_HEADER = re.compile(r"(arch/\w+/)?include/")


def is_own(place: str, kernel: bool = False) -> bool:
    """Of `FILE:LINE`. In the kernel, all files count but headers, whose functions are inlined everywhere."""
    return not (KERNEL_HEADER if kernel else FOREIGN).match(place)


def shown(function: str, source: str, inlined: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """What a reader looks for: the innermost line of the program's or the kernel's own code, and the functions inlined there, innermost
    first, each with `FILE:LINE` of its call; without one for that of a library or a header, which hides its own calls."""
    called = [(name, place) for name, _, place in (call.partition(" called at ") for call in inlined)]
    for n, place in enumerate((source, *(place for _, place in called))):
        if is_own(place, OF_PROGRAM not in function):
            return place, [(called[n - 1][0], ""), *called[n:]] if n else called
    return source, called


def said(function: str, source: str, inlined: Sequence[str]) -> str:
    """In words: `stats.c:17, in count called at stats.c:24`."""
    place, within = shown(function, source, inlined)
    return ", in ".join([place, *(f"{name} called at {at}" if at else name for name, at in within)])
