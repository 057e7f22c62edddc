# SPDX-License-Identifier: BSD-3-Clause
"""Call chains in the kernel: ORC tables, frame pointers, saved registers, and the user program's part."""

import struct
from typing import Any

import pytest

from moscope.naming.image import UnwindTables
from moscope.naming.unwind import orc
from moscope.naming.unwind.chains import Sample, Unwinder
from moscope.naming.unwind.state import SAVED, SAVED_BYTES, Frame, Stack

BASE = 0xFFFFFFFF81000000
TABLE = 0xFFFFFFFF82000000
STACK = 0xFFFFC90000010000
OUTER, MIDDLE, INNER, ENTRY = (BASE + n * 0x100 for n in range(4))
OLD, NEW = b"Linux version 6.1.0 (a compiler)", b"Linux version 6.12.3 (a compiler)"
SP, BP, PREVIOUS = orc.SP, orc.BP, orc.PREVIOUS


def tables(rows: list[tuple[int, int, int, int, int, str]], new: bool) -> UnwindTables:
    """Rows: address, stack register and offset, register and offset of rbp, kind."""
    places, entries = b"", b""
    for n, (address, stack_register, stack_offset, base_register, base_offset, kind) in enumerate(rows):
        places += struct.pack("<i", address - (TABLE + 4 * n))
        kinds: Any = orc.TYPES_NOW if new else orc.TYPES
        bits = stack_register | base_register << 4 | kinds.index(kind) << 8
        entries += orc.ENTRY.pack(stack_offset, base_offset, bits)
    return UnwindTables(TABLE, places, entries)


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def sample(rip: int, stack: bytes, user: bytes = b"", **registers: int) -> Sample:
    return Sample(0, 0, 0, 0, Frame({"rip": rip, "rsp": STACK, "rbp": 0, **registers}, exact=True), False, Stack(STACK, stack), user)


def saved(**values: int) -> bytes:
    return words(*(values.get(name, 0) for name in SAVED))


ROWS = [(OUTER, SP, 8, 0, 0, "call"), (MIDDLE, SP, 24, PREVIOUS, -16, "call"), (INNER, BP, 16, PREVIOUS, -16, "call"),
        (ENTRY, SP, 0, 0, 0, "registers")]


@pytest.mark.parametrize(("banner", "new"), [(OLD, False), (NEW, True)])
def test_orc_tables_lead_through_frames_with_and_without_rbp_to_the_saved_registers(banner: bytes, new: bool) -> None:
    # INNER keeps rbp as a frame pointer; MIDDLE keeps a register; OUTER nothing; then the registers of a user program.
    base = STACK + 32
    stack = words(1, 2, 3, 4, base + 0x1000, MIDDLE + 5) + words(7, 0x5555, OUTER + 9) + words(ENTRY + 3)
    stack += saved(rip=0x401000, cs=0x33, rsp=0x7FFF0000, rbp=0)
    found = Unwinder(orc.of(tables(ROWS, new), banner), 0, lambda address, cr3: None).chain(sample(INNER + 4, stack, rbp=base))
    assert found[:4] == [INNER + 4, MIDDLE + 4, OUTER + 8, ENTRY + 2]


def test_the_users_part_of_a_chain_follows_even_where_the_kernels_part_breaks_off() -> None:
    user = words(0, 0)
    stack = words(1, 2, 3) + saved(rip=0x401000, cs=0x33, rsp=0x7FFF0000, rbp=0)
    found = Unwinder(orc.of(tables(ROWS, False), OLD), 0, lambda address, cr3: None).chain(sample(0xFFFFFFFFC0001234, stack, user))
    assert found == [0xFFFFFFFFC0001234, 0x401000]


def test_in_the_entry_code_the_users_part_follows_from_the_registers_not_yet_saved() -> None:
    user = words(0, 0x7FFF1000, 0x402000)  # the frame of the interrupted function, by rbp
    pushed = words(0x401000, 0x33, 0x202, 0x7FFF0000, 0x2B)
    kept = dict.fromkeys(("rbx", "r12", "r13", "r14", "r15"), 0)
    start = ENTRY + 0x50
    found = Unwinder(None, 0, lambda address, cr3: None).chain(sample(start, pushed, user, rbp=0x7FFF0008, **kept))
    assert found == [start, 0x401000, 0x401FFF]


def test_a_chain_leads_from_an_interrupts_own_stack_to_the_interrupted_code() -> None:
    task = STACK - 0x8000
    rows = [*ROWS[:3], (ENTRY, orc.SP_INDIRECT, 8, 0, 0, "call")]  # ENTRY switched stacks and called OUTER
    own = words(ENTRY + 3, task)  # the last word links to the stack before
    inner = Frame({"rip": OUTER + 4, "rsp": STACK, "rbp": 0}, exact=True)
    outer = Stack(task, words(MIDDLE + 5, 0, 0, 0))
    one = Sample(0, 0, 0, 0, inner, False, Stack(STACK, own, outer), b"")
    found = Unwinder(orc.of(tables(rows, False), OLD), 0, lambda address, cr3: None).chain(one)
    assert found == [OUTER + 4, ENTRY + 2, MIDDLE + 4]


def test_an_image_that_was_moved_is_looked_up_where_it_was_linked() -> None:
    slide = 0x1C00000
    stack = words(OUTER + slide + 9)
    rows = [(OUTER, SP, 8, 0, 0, "call")]
    found = Unwinder(orc.of(tables(rows, False), OLD), slide, lambda address, cr3: None).chain(sample(OUTER + slide + 1, stack))
    assert found == [OUTER + slide + 1, OUTER + slide + 8]


def test_without_tables_frame_pointers_lead_through_an_interrupt() -> None:
    # INNER was interrupted in MIDDLE: the entry's frame pointer marks the saved registers.
    marked = STACK + 16
    stack = words(marked | 1, ENTRY + 3)  # the frame of INNER
    interrupted = STACK + 16 + SAVED_BYTES
    stack += saved(rip=MIDDLE + 7, cs=0x10, rsp=interrupted, rbp=interrupted)
    stack += words(0, OUTER + 5)
    found = Unwinder(None, 0, lambda address, cr3: None).chain(sample(INNER + 4, stack, rbp=STACK))
    assert found == [INNER + 4, ENTRY + 2, MIDDLE + 7, OUTER + 4]


def test_a_stack_of_nonsense_ends() -> None:
    for seed in range(200):
        stack = struct.pack("<64Q", *((seed * 0x9E3779B97F4A7C15 * (n + 1)) % 2**64 for n in range(64)))
        for tables_of in (orc.of(tables(ROWS, False), OLD), None):
            Unwinder(tables_of, 0, lambda address, cr3: None).chain(sample(INNER + 1, stack, stack, rbp=STACK + 8 * (seed % 64)))
