# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's own unwind tables (Linux, Documentation/arch/x86/orc-unwinder.rst; arch/x86/include/asm/orc_types.h): for each range of
instructions, where the caller's stack pointer and rbp are."""

import re
import struct
from bisect import bisect_right
from dataclasses import dataclass

from moscope.naming.image import UnwindTables
from moscope.naming.unwind.state import SAVED, Frame, Stack

ENTRY = struct.Struct("<hhH")
PREVIOUS, BP, SP, BP_INDIRECT, SP_INDIRECT = 1, 4, 5, 8, 9
OTHERS = {2: "rdx", 3: "rdi", 6: "r10", 7: "r13"}
CALL, REGISTERS, PARTIAL = "call", "registers", "partial"
TYPES = (CALL, REGISTERS, PARTIAL)  # up to Linux 6.3, where a separate bit marks the end of the stack
TYPES_NOW = ("", "end", CALL, REGISTERS, PARTIAL)  # from 6.4 on
BANNER = re.compile(rb"Linux version (\d+)\.(\d+)")


@dataclass(frozen=True)
class Rule:
    stack_register: int
    stack_offset: int
    base_register: int
    base_offset: int
    kind: str


class Orc:
    """The tables of a kernel. Addresses are link addresses."""

    def __init__(self, places: bytes, first: int, entries: bytes, new: bool) -> None:
        """`places`: the section of instruction addresses, which lies at `first`; `new`: of Linux 6.4 or later."""
        count = min(len(places) // 4, len(entries) // ENTRY.size)
        self._starts = [first + 4 * n + offset for n, offset in enumerate(struct.unpack_from(f"<{count}i", places))]
        self._entries, self._new = entries, new
        self._rules: dict[int, Rule | None] = {}

    def __len__(self) -> int:
        return len(self._starts)

    def rule(self, address: int) -> Rule | None:
        n = bisect_right(self._starts, address) - 1
        if n not in self._rules:
            self._rules[n] = self._decoded(n) if n >= 0 else None
        return self._rules[n]

    def _decoded(self, n: int) -> Rule | None:
        stack_offset, base_offset, rest = ENTRY.unpack_from(self._entries, n * ENTRY.size)
        stack_register, base_register = rest & 15, rest >> 4 & 15
        if self._new:
            number = rest >> 8 & 7
            kind = TYPES_NOW[number] if number < len(TYPES_NOW) else ""
        else:
            number = rest >> 8 & 3
            kind = "end" if rest >> 10 & 1 else TYPES[number] if number < len(TYPES) else ""
        return Rule(stack_register, stack_offset, base_register, base_offset, kind) if kind in TYPES and stack_register else None

    def caller(self, frame: Frame, stack: Stack, slide: int) -> Frame | None:
        """The caller's frame; None at the end of the stack, and if the tables have no answer."""
        rule = self.rule(frame.within - slide)
        top = _stack_pointer(rule, frame, stack) if rule else None
        if rule is None or top is None:
            return None
        if rule.kind == REGISTERS:
            saved = stack.words(top, SAVED)
            return Frame({name: saved[name] for name in saved if name not in ("orig_rax", "flags", "ss")}, exact=True) if saved else None
        if rule.kind == PARTIAL:
            saved = stack.words(top, ("rip", "cs", "flags", "rsp", "ss"))
            if not saved:
                return None
            known = {name: value for name, value in frame.registers.items() if name not in ("rip", "rsp")}
            return Frame(known | {"rip": saved["rip"], "cs": saved["cs"], "rsp": saved["rsp"]}, exact=True)
        rip = stack.word(top - 8)
        if not rip:
            return None
        base = frame.registers.get("rbp")
        if rule.base_register == PREVIOUS:
            base = stack.word(top + rule.base_offset)
        elif rule.base_register == BP and base is not None:
            base = stack.word(base + rule.base_offset)
        return frame.caller(rip, top, {} if base is None else {"rbp": base})


def _stack_pointer(rule: Rule, frame: Frame, stack: Stack) -> int | None:
    """The caller's stack pointer, or the address of saved registers."""
    register, offset = rule.stack_register, rule.stack_offset
    if register in (SP, SP_INDIRECT):
        base: int | None = frame.rsp
    elif register in (BP, BP_INDIRECT):
        base = frame.registers.get("rbp")
    else:
        base = frame.registers.get(OTHERS.get(register, ""))
    if base is None:
        return None
    if register == SP_INDIRECT:
        pointer = stack.word(base)
        return None if pointer is None else pointer + offset
    return stack.word(base + offset) if register == BP_INDIRECT else base + offset


def of(tables: UnwindTables | None, banner: bytes) -> Orc | None:
    """The tables of a kernel; None if it has none. `banner` contains the kernel's version."""
    version = BANNER.search(banner)
    return Orc(tables.places, tables.first, tables.entries, (int(version[1]), int(version[2])) >= (6, 4)) if tables and version else None
