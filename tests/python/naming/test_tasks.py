# SPDX-License-Identifier: BSD-3-Clause
"""The address spaces of processes, also of those whose kernel structures another process has taken over."""

from collections.abc import Iterator
from typing import cast

import pytest

from moscope.naming.files import Files
from moscope.naming.guest import Guest
from moscope.naming.tasks import Area, Process, Tasks

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
