# SPDX-License-Identifier: BSD-3-Clause
"""The source line that a reader looks for, where an instruction was inlined from a library or a header."""

import pytest

from analysis.places import callers
from moscope.naming.own_code import said

RUST = "/rustc/59807616/library/core/src/sync/atomic.rs"


@pytest.mark.parametrize(("function", "source", "inlined", "words"), [
    ("server:work", "stats.c:17", [], "stats.c:17"),
    ("server:work", "stats.c:17", ["count called at stats.c:24"], "stats.c:17, in count called at stats.c:24"),
    ("server:work", "/usr/include/c++/12/bits/atomic_base.h:377", ["std::atomic<long>::operator++ called at pool.cc:9",
                                                                  "push called at pool.cc:30"],
     "pool.cc:9, in std::atomic<long>::operator++, in push called at pool.cc:30"),
    ("rust:work", f"{RUST}:3923", [f"core::sync::atomic::atomic_add called at {RUST}:3136",
                                   "<AtomicU64 as Add>::fetch_add called at rust.rs:42"],
     "rust.rs:42, in <AtomicU64 as Add>::fetch_add"),
    ("libc.so.6:malloc", "./malloc/malloc.c:30", [], "./malloc/malloc.c:30"),  # all is foreign
    ("server:work", "include/stats.h:3", ["add called at main.c:7"], "include/stats.h:3, in add called at main.c:7"),
    ("dget_parent", "include/linux/seqlock.h:429", ["do_read_seqcount_retry called at include/linux/seqlock.h:449",
                                                    "read_seqcount_retry called at fs/dcache.c:1183"],
     "fs/dcache.c:1183, in read_seqcount_retry"),
    ("wake_up", "arch/x86/include/asm/atomic.h:184", ["arch_spin_lock called at kernel/sched/core.c:47"],
     "kernel/sched/core.c:47, in arch_spin_lock"),
])
def test_the_innermost_line_of_own_code_comes_first(function: str, source: str, inlined: list[str], words: str) -> None:
    assert said(function, source, inlined) == words


def test_callers_are_shown_unless_the_program_waits_itself() -> None:
    found = [{"source": "main.c:9"}]
    assert callers([], found) == callers([{"function": "dput"}], found) == found
    assert callers([{"function": "dput"}, {"function": "server:work"}], found) == []
