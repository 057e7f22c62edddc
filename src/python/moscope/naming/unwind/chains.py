# SPDX-License-Identifier: BSD-3-Clause
"""Call chains of samples: code addresses from the waiting instruction to the outermost known caller.

The kernel's code is unwound with its ORC tables; without tables, with frame pointers. A user program is unwound with .eh_frame, or
also with frame pointers. If a chain breaks in the kernel, the user program's part still follows, because its registers are at the
end of the kernel's stack. The entry code has its own stack, on which not all registers have been saved yet.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from moscope.guest.addresses import KERNEL_HALF, USER_TOP
from moscope.naming.unwind import orc
from moscope.naming.unwind.cfi import Cfi
from moscope.naming.unwind.state import BY_ENCODING, KEPT, PUSHED, SAVED, SAVED_BYTES, Frame, Stack, by_frame_pointer
from moscope.schema import stacks
from moscope.schema.emit import arrow

DEEPEST = 128
KERNEL_STACK = 16 << 10  # StackSamples::kKernelStack
RECORD = arrow.dtype(stacks.STACK_SAMPLE)
USER = stacks.STACK_SAMPLE["flags"].bit("user")


@dataclass(frozen=True)
class Sample:
    line: int
    core: int
    address_space: int
    waiting: int
    frame: Frame
    user: bool
    kernel_stack: Stack
    user_stack: bytes


@dataclass
class Unwinder:
    """Unwinds samples. `linked`: gives the unwind tables of a user program's code and the link address, by address and CR3."""

    kernel: orc.Orc | None
    slide: int
    linked: Callable[[int, int], tuple[Cfi, int] | None]
    _known: dict[tuple[int, int], tuple[Cfi, int] | None] = field(default_factory=dict)

    def chain(self, sample: Sample) -> list[int]:
        """Addresses within the functions, innermost first."""
        if sample.user:
            return list(self._walk_user(sample.frame, Stack(sample.frame.rsp, sample.user_stack), sample.address_space))
        found = list(self._walk_kernel(sample.frame, sample.kernel_stack))
        frame = _program(sample) if sample.user_stack else None
        if frame:
            found += self._walk_user(frame, Stack(frame.rsp, sample.user_stack), sample.address_space)
        return found[:DEEPEST]

    def _walk_kernel(self, frame: Frame | None, stack: Stack) -> Iterator[int]:
        for _ in range(DEEPEST):
            if frame is None or frame.rip < KERNEL_HALF:
                return
            yield frame.within
            before = frame
            if self.kernel:
                frame = self.kernel.caller(frame, stack, self.slide)
            elif (base := frame.registers.get("rbp", 0)) & 1:  # the kernel's entry code sets this bit as a mark of saved registers
                saved = stack.words(base & ~1, SAVED)
                frame = Frame({name: saved[name] for name in SAVED}, exact=True) if saved else None
            else:
                frame = by_frame_pointer(frame, stack)
            if frame is not None and frame.rsp <= before.rsp and not frame.exact and not stack.leaves(before.rsp, frame.rsp):
                return

    def _walk_user(self, frame: Frame | None, stack: Stack, space: int) -> Iterator[int]:
        for _ in range(DEEPEST):
            if frame is None or not 0 < frame.rip < USER_TOP:
                return
            yield frame.within
            before = frame
            key = frame.within, space
            if key not in self._known:
                self._known[key] = self.linked(*key)
            found = self._known[key]
            frame = found[0].caller(frame, stack, found[1]) if found and found[0].covers(found[1]) else by_frame_pointer(frame, stack)
            if frame is not None and frame.rsp <= before.rsp:
                return


def _program(sample: Sample) -> Frame | None:
    """The frame of the user program that entered the kernel, from the end of a stack. Registers that were not saved yet still
    have the program's values."""
    stack = sample.kernel_stack.outermost
    saved = stack.words(stack.end - SAVED_BYTES, SAVED)
    if not saved:
        pushed = stack.words(stack.end - 8 * len(PUSHED), PUSHED)
        saved = {name: sample.frame.registers[name] for name in KEPT} | pushed if pushed else None
    return Frame({name: saved[name] for name in saved if name not in ("orig_rax", "cs", "flags", "ss")}, exact=True) if saved else None


def user(sample: Sample) -> tuple[Frame, Stack] | None:
    """The user program's registers and stack; None if they are unknown."""
    frame = sample.frame if sample.user else _program(sample) if sample.user_stack else None
    return (frame, Stack(frame.rsp, sample.user_stack)) if frame else None


def _kernel_stack(start: int, data: bytes) -> Stack:
    """A stack of the kernel. An interrupt's own stack ends with the stack pointer of the interrupted code; the bytes of that
    code's stack follow."""
    first = Stack(start, data[:KERNEL_STACK - start % KERNEL_STACK])
    link = first.word(first.end - 8) if len(first.data) < len(data) else None
    return first if link is None else Stack(start, first.data, Stack(link, data[len(first.data):]))


def samples(packed: bytes) -> Iterator[Sample]:
    """The samples that the engine has packed."""
    import numpy

    at = 0
    while at < len(packed):
        head: Any = numpy.frombuffer(packed, RECORD, 1, at)[0]
        at += RECORD.itemsize
        kernel_bytes, user_bytes = int(head["kernel_bytes"]), int(head["user_bytes"])
        registers = dict(zip(BY_ENCODING, head["registers"].tolist(), strict=True)) | {"rip": int(head["pc"])}
        kernel = packed[at:at + kernel_bytes]
        user = packed[at + kernel_bytes:at + kernel_bytes + user_bytes]
        at += kernel_bytes + user_bytes
        yield Sample(int(head["line"]), int(head["core"]), int(head["address_space"]), int(head["waiting"]), Frame(registers, exact=True),
                     bool(head["flags"] & USER), _kernel_stack(registers["rsp"], kernel), user)
