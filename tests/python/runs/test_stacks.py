# SPDX-License-Identifier: BSD-3-Clause
"""The source line of the program from which a call chain reaches the code that waits."""

from typing import cast

import pytest

from moscope.naming.dwarf.sources import Source
from moscope.naming.namer import Namer
from moscope.runs import stacks

STD = "/usr/include/c++/12/bits"
KERNEL = 1 << 63
# By address: a function, and its source line unless it is of a library of the system.
CODE: dict[int, tuple[str, Source | None]] = {
    1: ("libc.so.6:__lll_lock_wait", None),
    2: ("server:std::mutex::lock", Source(f"{STD}/std_mutex.h:100")),
    3: ("server:core::sync::atomic::atomic_store", Source("/rustc/59807616/library/core/src/sync/atomic.rs:3875")),
    4: ("server:work", Source(f"{STD}/atomic_base.h:618", ("fetch_add called at main.cc:9",))),
    5: ("server:main", Source("main.cc:30")),
    KERNEL + 1: ("futex_wait", None), KERNEL + 2: ("asm_sysvec_apic_timer_interrupt", None)}


class Named:
    """What is asked of a Namer."""

    def code(self, pc: int, cr3: int = 0) -> str:
        return CODE[pc][0]

    def own_source(self, pc: int, cr3: int) -> Source | None:
        return CODE[pc][1]


@pytest.mark.parametrize(("chain", "at"), [
    ([KERNEL + 1, 1, 2, 5], ("server:main", "main.cc:30", "")),
    ([3, 5], ("server:main", "main.cc:30", "")),
    ([2, 4, 5], ("server:work", f"{STD}/atomic_base.h:618", "fetch_add called at main.cc:9")),
    ([1, 2, 3], ("", "", "")),
    ([KERNEL + 1, KERNEL + 2, 5], ("", "", ""))])
def test_the_place_is_the_innermost_line_of_the_programs_own_code(chain: list[int], at: tuple[str, str, str]) -> None:
    assert stacks._at(cast(Namer, Named()), chain, 0) == at
