# SPDX-License-Identifier: BSD-3-Clause
"""The address spaces of processes, also of those whose kernel structures another process has taken over."""

from collections.abc import Iterator
from typing import cast

import pytest

from moscope.naming.btf import Unreadable
from moscope.naming.files import Files
from moscope.naming.guest import Guest
from moscope.naming.tasks import LAYOUT, Area, Process, Tasks

HEAP = Area(0x1000, 0x2000, 0, "heap", "")


def test_an_address_lies_in_the_area_that_covers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Area(0x3000, 0x5000, 0, "stack", "")
    monkeypatch.setattr(Tasks, "_all_areas", lambda self, process: iter([HEAP, stack]))
    tasks, process = Tasks(cast(Guest, None), cast(Files, None)), Process("exim", 1, "", 0x8000, 0x10000)
    found = {at: tasks.area(process, at) for at in (0, 0xFFF, 0x1000, 0x1FFF, 0x2000, 0x2FFF, 0x3000, 0x4FFF, 0x5000)}
    assert found == {0: None, 0xFFF: None, 0x1000: HEAP, 0x1FFF: HEAP, 0x2000: None, 0x2FFF: None, 0x3000: stack, 0x4FFF: stack,
                     0x5000: None}


def test_a_reused_mm_structure_gives_each_process_its_own_areas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever process is asked about first."""
    ended, running = (Process("exim", pid, "", mm=0x8000, page_table=table) for pid, table in ((1, 0x10000), (2, 0x20000)))

    def areas_of_the_running(self: Tasks, process: Process) -> Iterator[Area]:
        if process.page_table == running.page_table:
            yield HEAP

    monkeypatch.setattr(Tasks, "_all_areas", areas_of_the_running)
    tasks = Tasks(cast(Guest, None), cast(Files, None))
    assert tasks.areas(ended) == []
    assert tasks.areas(running) == [HEAP]


class FakeGuest:
    """A kernel with one user process, whose address space a test can change and end. Each member of a structure has 8 bytes."""

    TASK, MM, AREA, TABLE = 0x2000, 0x8000, 0x9000, 0x10000
    MEMBERS = ("tasks", "pid", "mm", "comm", "pgd", "mmap", "vm_start", "vm_end", "vm_file", "vm_next", "vm_ops", *LAYOUT)

    def __init__(self) -> None:
        at = {name: 8 * n for n, name in enumerate(self.MEMBERS)}
        init, task = 0x1000, self.TASK
        self.words = {init + at["tasks"]: task + at["tasks"], task + at["tasks"]: init + at["tasks"], task + at["pid"]: 7,
                      task + at["mm"]: self.MM, self.MM + at["pgd"]: self.TABLE, self.MM + at["mmap"]: self.AREA,
                      self.MM + at["map_count"]: 1, self.AREA + at["vm_start"]: 0x4000, self.AREA + at["vm_end"]: 0x5000}
        self.at, self.init, self.name = at, init, "misc"

    def needed(self, name: str) -> int:
        return self.init

    def symbol(self, name: str) -> int:
        return 1

    def physical(self, address: int) -> int:
        return address

    def member(self, structure: str, path: str) -> tuple[int, int]:
        if path not in self.at:
            raise Unreadable(path)
        return self.at[path], 8

    def offset(self, structure: str, path: str) -> int:
        return self.member(structure, path)[0]

    def get(self, address: int, structure: str, path: str) -> int:
        return self.words.get(address + self.offset(structure, path), 0)

    def get_text(self, address: int, structure: str, path: str) -> str:
        return self.name

    def read(self, address: int, size: int) -> bytes:
        return b"".join(self.words.get(at, 0).to_bytes(8, "little") for at in range(address, address + size, 8))

    def execute(self, name: str) -> None:
        """The process executes another program, in a new address space."""
        mm, self.name = self.MM + 0x4000, name
        self.words |= {self.TASK + self.at["mm"]: mm, mm + self.at["pgd"]: self.TABLE + 0x1000}

    def end(self) -> None:
        """The process ends, and its memory has other contents."""
        self.words = {self.init + self.at["tasks"]: self.init + self.at["tasks"]}


def observed(guest: FakeGuest) -> Tasks:
    tasks = Tasks(cast(Guest, guest), cast(Files, None))
    tasks.observe()
    return tasks


def test_a_process_that_has_ended_keeps_the_areas_that_it_had_when_it_was_observed() -> None:
    guest = FakeGuest()
    tasks = observed(guest)
    guest.end()
    tasks.observe()
    process = tasks.process(guest.TABLE)
    assert process is not None and tasks.areas(process) == [Area(0x4000, 0x5000, 0, "anonymous", "")]


def test_areas_that_a_process_has_mapped_since_are_observed_too() -> None:
    guest = FakeGuest()
    tasks = observed(guest)
    guest.words[guest.AREA + guest.at["vm_end"]] = 0x6000
    guest.words[guest.MM + guest.at["total_vm"]] = 1
    tasks.observe()
    guest.end()
    tasks.observe()
    process = tasks.process(guest.TABLE)
    assert process is not None and tasks.areas(process) == [Area(0x4000, 0x6000, 0, "anonymous", "")]


def test_the_areas_of_a_process_are_read_again_only_if_they_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = observed(FakeGuest())
    monkeypatch.delattr(Tasks, "_all_areas")
    tasks.observe()


def test_a_process_runs_until_an_observation_does_not_find_it() -> None:
    guest = FakeGuest()
    tasks = observed(guest)
    assert tasks.running("misc")
    guest.end()
    tasks.observe()
    assert not tasks.running("misc")


def test_a_process_runs_on_if_it_executes_a_program_of_another_name() -> None:
    guest = FakeGuest()
    tasks = observed(guest)
    guest.execute("python3")
    tasks.observe()
    assert tasks.running("misc") and tasks.running("python3")
    guest.end()
    tasks.observe()
    assert not tasks.running("misc") and not tasks.running("python3")


def test_a_program_that_no_process_has_been_called_after_is_not_taken_for_one_that_has_ended() -> None:
    assert observed(FakeGuest()).running("script.py")


def test_the_variables_of_a_thread_lie_below_the_lowest_thread_pointer_above_them() -> None:
    guest = FakeGuest()
    guest.at["thread.fsbase"] = 8 * len(guest.at)
    tasks = observed(guest)
    process = tasks.process(guest.TABLE)
    assert process is not None and tasks.thread_pointer(process, 0x5000) == 0
    for pointer in (0x9000, 0, 0x7000):
        guest.words[guest.TASK + guest.at["thread.fsbase"]] = pointer
        tasks._pointer(guest.TASK)
    assert [tasks.thread_pointer(process, at) for at in (0x6FF8, 0x7000, 0x8FF8, 0x9000)] == [0x7000, 0x9000, 0x9000, 0]
