# SPDX-License-Identifier: BSD-3-Clause
"""Processes of the guest and the areas of their address spaces (Linux, include/linux/maple_tree.h for the tree
of areas in 6.1 and later; a linked list in earlier versions).
"""

from bisect import bisect_right, insort
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter

from moscope.naming.btf import Unreadable
from moscope.naming.files import Files
from moscope.naming.guest import LONGEST_LIST, PAGE, Guest

THREAD_SIZE = 16 << 10
TABLE_MASK = 0x000FFFFFFFFFF000  # the bits of CR3 that are the table's address
NODE_MASK = 0xFF  # a maple node's address has its type in bits 3 to 6
MOST_NODES = 100_000
NAME_BYTES = 15  # of a task's name, TASK_COMM_LEN less the zero that ends it
START = attrgetter("start")
# Members of mm_struct that tell one layout of an address space from another. A copy that fork made differs in none of them.
LAYOUT = ("exe_file", "map_count", "total_vm", "start_brk", "brk", "start_stack")


@dataclass(frozen=True)
class Process:
    """A process. `exe` is the path of its program; `mm` is 0 once the process may have ended."""

    name: str
    pid: int
    exe: str
    mm: int
    page_table: int


@dataclass(frozen=True)
class Area:
    """A part of an address space; `what` is `file`, `heap`, `stack`, `anonymous` or a name in brackets."""

    start: int
    end: int
    offset: int
    what: str
    file: str


class Tasks:
    """The processes of a guest. They remain known after they have ended, so that their lines still have a program."""

    def __init__(self, guest: Guest, files: Files) -> None:
        self._guest, self._files = guest, files
        self.processes: dict[int, Process] = {}
        self.stacks: dict[int, str] = {}
        self.threads: list[int] = []  # the task structures of user programs
        self._pointers: dict[int, list[int]] = {}  # of the threads of each page table, lowest first
        self._areas: dict[tuple[int, int], list[Area]] = {}  # by structure and page table, because structures are reused
        self._seen: dict[int, bytes] = {}  # by task: its pid and mm, which differ when the structure belongs to another process
        self._alive: set[int] = set()  # the mm structures of the processes that were seen last
        self._pids: dict[str, set[int]] = {}  # the processes that have had a name
        self._layouts: dict[tuple[int, int], bytes] = {}  # LAYOUT by structure and page table
        self._observed: dict[bytes, list[Area]] = {}  # areas by LAYOUT

    def observe(self) -> None:
        """Records new processes, and changed address spaces. For others, it reads only what shows that they are still the same."""
        guest = self._guest
        self._alive.clear()
        first, mm = guest.needed("init_task"), guest.offset("task_struct", "mm")
        link, pid = guest.offset("task_struct", "tasks"), guest.offset("task_struct", "pid")
        low, high = min(link, mm, pid), max(link, mm, pid) + 8
        task = first
        for _ in range(LONGEST_LIST):
            raw = guest.read(task + low, high - low)
            identity = raw[pid - low : pid - low + 4] + raw[mm - low : mm - low + 8]
            if task != first and self._seen.get(task) != identity:
                self._process(task)
                self._seen[task] = identity
            if space := int.from_bytes(identity[4:], "little"):
                with suppress(Unreadable):
                    self._layout(space)
            task = int.from_bytes(raw[link - low : link - low + 8], "little") - link
            if task == first:
                return

    def _layout(self, mm: int) -> None:
        """Keeps the areas of an address space for the time after its processes have ended."""
        guest = self._guest
        self._alive.add(mm)
        members = [guest.member("mm_struct", name) for name in ("pgd", *LAYOUT)]
        first, end = min(at for at, _ in members), max(at + size for at, size in members)
        raw = guest.read(mm + first, end - first)
        pgd, *parts = (raw[at - first : at - first + size] for at, size in members)
        key, layout = (mm, guest.physical(int.from_bytes(pgd, "little"))), b"".join(parts)
        if self._layouts.get(key) != layout and key[1] in self.processes:
            if layout not in self._observed:
                self._observed[layout] = list(self._all_areas(self.processes[key[1]]))
            self._layouts[key] = layout

    def refresh(self) -> None:
        """Walks the list of tasks. A list that the guest is changing ends the walk early."""
        self._areas.clear()
        self.stacks.clear()
        self.threads.clear()
        self._pointers.clear()
        self._seen.clear()
        self._alive.clear()
        guest = self._guest
        try:
            first = guest.needed("init_task")
            self._thread(first)
            for leader in guest.list(first + guest.offset("task_struct", "tasks"), "task_struct", "tasks"):
                if leader == first:
                    continue
                self._process(leader)
                head = guest.get(leader, "task_struct", "signal") + guest.offset("signal_struct", "thread_head")
                for thread in guest.list(head, "task_struct", "thread_node"):
                    self._thread(thread)
                    self.threads.append(thread)
                    with suppress(Unreadable):
                        self._pointer(thread)
        except Unreadable:
            pass
        with suppress(Unreadable):
            self._idle()

    def _idle(self) -> None:
        """Records the idle task of each core; the list of tasks contains only that of the first core."""
        guest = self._guest
        queues = guest.image.per_cpu.address("runqueues")
        cores = guest.number(guest.needed("nr_cpu_ids"), 4)
        if queues is None:
            return
        for offset in guest.numbers(guest.needed("__per_cpu_offset"), cores):
            if task := guest.get((queues + offset) % (1 << 64), "rq", "idle"):
                self._thread(task)

    def _thread(self, task: int) -> None:
        guest = self._guest
        name = guest.get_text(task, "task_struct", "comm")
        self.stacks[guest.get(task, "task_struct", "stack")] = f"{name} {guest.get(task, 'task_struct', 'pid')}"

    def _pointer(self, task: int) -> None:
        guest = self._guest
        table = guest.physical(guest.get(guest.get(task, "task_struct", "mm"), "mm_struct", "pgd"))
        insort(self._pointers.setdefault(table, []), guest.get(task, "task_struct", "thread.fsbase"))

    def thread_pointer(self, process: Process, address: int) -> int:
        """The lowest FS base of the process's threads above an address, below which that thread's variables lie; 0 if there is none."""
        pointers = self._pointers.get(process.page_table, [])
        at = bisect_right(pointers, address)
        return pointers[at] if at < len(pointers) else 0

    def _process(self, task: int) -> None:
        guest = self._guest
        mm = guest.get(task, "task_struct", "mm")
        if not mm:
            return
        table = guest.physical(guest.get(mm, "mm_struct", "pgd"))
        file = guest.get(mm, "mm_struct", "exe_file")
        try:
            exe = self._files.file(file) if file else ""
        except Unreadable:
            exe = ""
        self._alive.add(mm)
        name, pid = guest.get_text(task, "task_struct", "comm"), guest.get(task, "task_struct", "pid")
        self._pids.setdefault(name, set()).add(pid)
        self.processes[table] = Process(name, pid, exe, mm, table)

    def process(self, cr3: int) -> Process | None:
        return self.processes.get(cr3 & TABLE_MASK)

    def running(self, name: str) -> bool:
        """Whether a process that has had this name had not ended when the tasks were last read. Also true if none has had it, because
        a program may have another name from its start, as a script that `env` starts."""
        pids = self._pids.get(name[:NAME_BYTES])
        return pids is None or any(one.pid in pids and one.mm in self._alive for one in self.processes.values())

    def stack_of(self, address: int) -> str | None:
        """The process whose kernel stack contains an address."""
        base = address & -THREAD_SIZE
        return self.stacks.get(base)

    def area(self, process: Process, address: int) -> Area | None:
        """The area of a process's address space that contains an address."""
        areas = self.areas(process)
        i = bisect_right(areas, address, key=START) - 1
        return areas[i] if i >= 0 and address < areas[i].end else None

    def areas(self, process: Process) -> list[Area]:
        """The areas of a process's address space, lowest first; once the process is gone, those that were observed last."""
        key = process.mm, process.page_table
        if key not in self._areas and process.mm not in self._alive and key in self._layouts:
            return self._observed[self._layouts[key]]
        if key not in self._areas:
            try:
                self._areas[key] = list(self._all_areas(process))
            except Unreadable:
                self._areas[key] = []
        return self._areas[key]

    def _all_areas(self, process: Process) -> Iterator[Area]:
        guest, mm = self._guest, process.mm
        if guest.physical(guest.get(mm, "mm_struct", "pgd")) != process.page_table:
            return  # the structure belongs to another process by now
        brk = guest.get(mm, "mm_struct", "start_brk"), guest.get(mm, "mm_struct", "brk")
        stack = guest.get(mm, "mm_struct", "start_stack")
        for area in self._area_structures(mm):
            start = guest.get(area, "vm_area_struct", "vm_start")
            end = guest.get(area, "vm_area_struct", "vm_end")
            file = guest.get(area, "vm_area_struct", "vm_file")
            if file:
                offset = guest.get(area, "vm_area_struct", "vm_pgoff") * PAGE
                yield Area(start, end, offset, "file", self._files.file(file))
                continue
            special = self._special(area)
            what = special or ("stack" if start <= stack < end else "heap" if start < brk[1] and end > brk[0] else "anonymous")
            yield Area(start, end, 0, what, "")

    def _special(self, area: int) -> str:
        """The name of a mapping that the kernel made itself: [vdso], [vvar]."""
        guest = self._guest
        if guest.get(area, "vm_area_struct", "vm_ops") != guest.symbol("special_mapping_vmops"):
            return ""
        mapping = guest.get(area, "vm_area_struct", "vm_private_data")
        return guest.text(guest.get(mapping, "vm_special_mapping", "name"), 32)

    def _area_structures(self, mm: int) -> Iterator[int]:
        guest = self._guest
        try:
            root = guest.get(mm, "mm_struct", "mm_mt.ma_root")
        except Unreadable:
            area = guest.get(mm, "mm_struct", "mmap")
            while area:
                yield area
                area = guest.get(area, "vm_area_struct", "vm_next")
            return
        if root & 3 == 2:
            yield from self._maple(root, (1 << 64) - 1)
        elif root:
            yield root

    def _maple(self, root: int, top: int) -> Iterator[int]:
        """All entries of a maple tree, lowest first. The pivots show where the used slots of a node end."""
        guest = self._guest
        kinds = {v: k for k, v in guest.types.enumeration("maple_type").items()}
        left = [(root, top)]
        for _ in range(MOST_NODES):
            if not left:
                return
            encoded, last = left.pop()
            kind, node = kinds.get(encoded >> 3 & 15, ""), encoded & ~NODE_MASK
            layout = "maple_arange_64" if kind == "maple_arange_64" else "maple_range_64"
            slots_at, slot_type = guest.types.find(guest.types.named(layout), "slot")
            pivots_at = guest.offset(layout, "pivot")
            count = guest.types.array(guest.types.resolve(slot_type))[1]
            slots = guest.numbers(node + slots_at, count)
            pivots = guest.numbers(node + pivots_at, count - 1)
            below = []
            for i, slot in enumerate(slots):
                end = pivots[i] if i < count - 1 and pivots[i] else last
                if slot and kind != "maple_leaf_64":
                    below.append((slot, end))
                elif slot > PAGE and not slot & 3:
                    yield slot
                if end >= last:
                    break
            left += reversed(below)
        raise Unreadable("a maple tree does not end")
