# SPDX-License-Identifier: BSD-3-Clause
"""The frames of a user program's stack: the call that each byte belongs to.

A frame is accepted only if unwind tables give its end, and if its return address follows a call instruction: memory that is no
stack any more ends the walk.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from moscope.guest.addresses import USER_TOP
from moscope.naming.unwind.cfi import Cfi
from moscope.naming.unwind.chains import DEEPEST
from moscope.naming.unwind.state import Frame, Stack

RED_ZONE = 128  # bytes below rsp that a function may use (System V ABI for x86-64, section 3.2.2)
LARGEST = 64 << 20  # limit for the size of a frame; stacks are smaller
LONGEST_CALL = 7  # bytes of CALL r/m64
CALL, INDIRECT = 0xE8, 0xFF


class Code(Protocol):
    """The code of a program's file."""

    @property
    def unwinding(self) -> Cfi | None: ...

    def code(self, address: int, size: int) -> bytes: ...


@dataclass(frozen=True)
class Thread:
    """A thread in user mode: its registers, and its stack from rsp on."""

    frame: Frame
    stack: Stack


@dataclass(frozen=True, eq=False)
class Activation:
    """A call of a function that has not returned; its frame is [low, top). `link`: the link address of its current instruction;
    `inner`: the call that it has made, whose parameters may be in this frame."""

    frame: Frame
    low: int
    top: int
    program: Code
    link: int
    stack: Stack
    inner: "Activation | None"

    @property
    def key(self) -> tuple[int, int, int]:
        return self.low, self.top, self.frame.within


def activations(thread: Thread, linked: Callable[[int], tuple[Code, int] | None]) -> Iterator[Activation]:
    """The calls of a thread, innermost first. `linked`: gives the program and the link address of an instruction."""
    frame, stack, low = thread.frame, thread.stack, thread.frame.rsp - RED_ZONE
    inner: Activation | None = None
    for _ in range(DEEPEST):
        found = linked(frame.within) if 0 < frame.rip < USER_TOP else None
        tables = found[0].unwinding if found else None
        if found is None or tables is None or inner and not called(found[0], found[1] + 1):
            return
        program, link = found
        top = tables.top(frame, link)
        if top is None or not low < top < low + LARGEST:
            return
        inner = Activation(frame, low, top, program, link, stack, inner)
        yield inner
        caller = tables.caller(frame, stack, link)
        if caller is None:
            return
        frame, low = caller, top


def called(program: Code, address: int) -> bool:
    """Whether a call instruction ends at a link address."""
    code = program.code(address - LONGEST_CALL, LONGEST_CALL)
    if len(code) < LONGEST_CALL:
        return False
    return code[-5] == CALL or any(code[-n] == INDIRECT and code[1 - n] >> 3 & 7 == 2 for n in (2, 3, 4, 6, 7))
