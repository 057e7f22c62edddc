# SPDX-License-Identifier: BSD-3-Clause
"""Threads of user programs that do not run, with their stacks and their registers. On entry from the program, the kernel saves
the registers at the end of each task's stack (Linux, arch/x86/include/asm/processor.h, task_pt_regs)."""

import struct
from collections.abc import Iterable, Iterator

from moscope.guest.addresses import USER_TOP
from moscope.naming.btf import Unreadable
from moscope.naming.guest import Guest
from moscope.naming.tasks import THREAD_SIZE
from moscope.naming.unwind.activations import Thread
from moscope.naming.unwind.state import SAVED, SAVED_BYTES, Frame, Stack

USER_CODE = 0x33  # the code segment of 64-bit programs (Linux, arch/x86/include/asm/segment.h)
KEPT = 16 << 10  # bytes of a stack from rsp on: enough for the frames of all but the deepest calls
NOT_REGISTERS = ("orig_rax", "cs", "flags", "ss")


def parked(guest: Guest, tasks: Iterable[int]) -> Iterator[tuple[int, Thread]]:
    """(page table, thread) of tasks that no core runs. The saved registers of a running task would be outdated: they are those of
    its last entry into the kernel."""
    for task in tasks:
        try:
            found = _parked(guest, task)
        except Unreadable:
            continue
        if found:
            yield found


def _parked(guest: Guest, task: int) -> tuple[int, Thread] | None:
    mm = guest.get(task, "task_struct", "mm")
    if not mm or guest.get(task, "task_struct", "on_cpu"):
        return None
    end = guest.get(task, "task_struct", "stack") + THREAD_SIZE
    values = struct.unpack(f"<{len(SAVED)}Q", guest.read(end - SAVED_BYTES, SAVED_BYTES))
    saved = dict(zip(SAVED, values, strict=True))
    if saved["cs"] != USER_CODE or not 0 < saved["rip"] < USER_TOP:
        return None
    table = guest.physical(guest.get(mm, "mm_struct", "pgd"))
    frame = Frame({name: value for name, value in saved.items() if name not in NOT_REGISTERS}, exact=True)
    return table, Thread(frame, Stack(frame.rsp, guest.memory.read_virtual(table, frame.rsp, KEPT)))
