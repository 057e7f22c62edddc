# SPDX-License-Identifier: BSD-3-Clause
"""What an unwinder knows about one frame: registers, and the bytes of the stacks."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

# Registers by their number in debug information (System V ABI for x86-64, figure 3.36).
BY_NUMBER = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)))
# By their number in instructions (AMD64 manual 24594, section 1.4).
BY_ENCODING = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *BY_NUMBER[8:])
KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15")  # registers that a function preserves
# Registers that Linux saves of a user program, or of interrupted kernel code (struct pt_regs).
SAVED = ("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip", "cs",
         "flags", "rsp", "ss")
SAVED_BYTES = 8 * len(SAVED)
PUSHED = SAVED[-5:]  # those that the processor pushes by itself


@dataclass(frozen=True)
class Stack:
    """The bytes of a stack from address `start` on. `interrupted`: for an interrupt's own stack, the stack of the code that it
    interrupted."""

    start: int
    data: bytes
    interrupted: "Stack | None" = None

    def word(self, address: int) -> int | None:
        found = self.words(address, ("one",))
        return found["one"] if found else None

    def words(self, address: int, names: tuple[str, ...]) -> dict[str, int] | None:
        """Consecutive words, by name; None unless all are known."""
        at = address - self.start
        if not 0 <= at <= len(self.data) - 8 * len(names):
            return self.interrupted.words(address, names) if self.interrupted else None
        return dict(zip(names, struct.unpack_from(f"<{len(names)}Q", self.data, at), strict=True))

    @property
    def end(self) -> int:
        return self.start + len(self.data)

    @property
    def outermost(self) -> "Stack":
        return self.interrupted.outermost if self.interrupted else self

    def leaves(self, inner: int, outer: int) -> bool:
        """Whether a chain changes to the interrupted stack between two stack pointers."""
        return self.interrupted is not None and self.start <= inner < self.end and self.interrupted.start <= outer


@dataclass
class Frame:
    """Registers that are known, `rip` and `rsp` among them. `exact`: the instruction at `rip` was interrupted; else it is the one after
    a call."""

    registers: dict[str, int] = field(default_factory=dict)
    exact: bool = False

    @property
    def rip(self) -> int:
        return self.registers["rip"]

    @property
    def rsp(self) -> int:
        return self.registers["rsp"]

    @property
    def within(self) -> int:
        """An address in the function: that of the instruction, or of the last byte of the call."""
        return self.rip if self.exact else self.rip - 1

    def caller(self, rip: int, rsp: int, restored: Mapping[str, int] | None = None) -> "Frame":
        """The frame that called this one; registers that calls do not keep are unknown."""
        kept = {name: self.registers[name] for name in KEPT if name in self.registers}
        return Frame(kept | dict(restored or {}) | {"rip": rip, "rsp": rsp})


def by_frame_pointer(frame: Frame, stack: Stack) -> Frame | None:
    """Code that keeps rbp as a frame pointer: the caller's rbp, then the return address."""
    base = frame.registers.get("rbp", 0)
    if base < frame.rsp:
        return None
    saved = stack.words(base, ("rbp", "rip"))
    return frame.caller(saved["rip"], base + 16, {"rbp": saved["rbp"]}) if saved and saved["rip"] else None
