# SPDX-License-Identifier: BSD-3-Clause
"""The source line that a reader looks for, where an instruction was inlined from a library or a header."""

import pyarrow as pa
import pytest

from analysis.database import Database
from analysis.described import MISS_CLASS
from analysis.places import after_writes, callers, places
from analysis.tables.base import NO_WRITER
from analysis.tables.names import SOURCES
from moscope.naming.own_code import said

STD = "/usr/include/c++/12/bits"
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
    ("server:_M_run", f"{STD}/atomic_base.h:377", [f"__invoke_impl<main::<lambda()>, > called at {STD}/invoke.h:96"],
     f"{STD}/atomic_base.h:377"),
    ("server:_M_run", "pool.cc:9", ["push called at pool.cc:30", f"operator() called at {STD}/invoke.h:61",
                                    f"__invoke_impl<main::<lambda()>, > called at {STD}/invoke.h:96",
                                    f"__invoke<main::<lambda()> > called at {STD}/std_thread.h:259"],
     "pool.cc:9, in push called at pool.cc:30"),
    ("server:_M_run", f"{STD}/atomic_base.h:377", ["store called at pool.cc:9", f"operator() called at {STD}/invoke.h:61",
                                                   "start called at pool.cc:40"],
     "pool.cc:9, in store, in start called at pool.cc:40"),
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
    found = [{"function": "server:work", "source": "main.c:9"}]
    kernel, unknown = {"function": "dput", "source": "fs/dcache.c:886"}, {"function": "server:copy", "source": ""}
    itself = {"function": "server:work", "source": "main.c:3"}
    library = {"function": "libc.so.6:pthread_mutex_lock", "source": "nptl/pthread_mutex_lock.c:48"}
    header = {"function": "server:std::__atomic_base<long>::operator++", "source": f"{STD}/atomic_base.h:618"}
    waits = [{**place, "share": 0.3} for place in (kernel, unknown, library, header)]
    assert callers([], found) == callers(waits, found) == callers([*waits, {**itself, "share": 0.02}], found) == found
    assert callers([*waits, {**itself, "share": 0.2}], found) == []


@pytest.mark.parametrize(("table", "hottest"), [("lines", [(640, 1), (576, 1)]), ("names", [("even", "slab"), ("odd", "slab")])])
def test_listing_only_the_hottest_does_not_change_their_places(table: str, hottest: list[tuple[object, object]]) -> None:
    classes = {f"{c}_{what}": 0 for c in MISS_CLASS.names for what in ("stall", "count")}
    lines = [{"line": 64 * n, "use": 1, "name": ("odd", "even", "rare")[2 if n < 3 else n % 2 == 0], "kind": "slab", "stall": 10 * n,
              "spin": 0, "transfers": 1, "waiters": 1, **classes} for n in range(11)]
    pairs = [{"line": 64 * n, "use": 1, "writer": 7, "writer_function": "f", "writer_source": f"w.c:{n % 3}", "writer_inlined": None,
              "waiter": 9, "waiter_function": "g", "waiter_source": f"r.c:{k}", "waiter_inlined": "i called at r.c:1", "stall": n + k,
              "spin": 0, "count": 1 + k, "offset": 0, "accessed": None} for n in range(11) for k in range(7)]
    none = pa.table({name: pa.array([], pa.uint64()) for name in ("line", "use", "stall", "count")})
    database = Database({"p": {"lines": pa.Table.from_pylist(lines), "pairs": pa.Table.from_pylist(pairs), "transfers": none}})
    every, some = places(database, "p", table), places(database, "p", table, 2)
    assert sorted(some) == sorted(hottest) and len(every) > 2
    assert some == {key: every[key] for key in some}
    assert [place["source"] for place in some[hottest[0]]["waited_at"]] == [f"r.c:{k}" for k in (6, 5, 4, 3, 2)]


def test_waiting_after_a_write_by_a_device_follows_a_write() -> None:
    classes = {f"{c}_{what}": 0 for c in MISS_CLASS.names for what in ("stall", "count")}
    line = {"line": 64, "use": 1, "name": "n", "kind": "device ring", "stall": 100, "spin": 0, "transfers": 1, "waiters": 1, **classes}
    pairs = [{"line": 64, "use": 1, "writer": None, "writer_function": function, "writer_source": None, "writer_inlined": None,
              "waiter": 9, "waiter_function": "g", "waiter_source": None, "waiter_inlined": None, "stall": stall, "spin": 0, "count": 1,
              "offset": 0, "accessed": None} for function, stall in (("a device", 40), (None, 60))]
    none = pa.table({name: pa.array([], pa.uint64()) for name in ("line", "use", "stall", "count")})
    database = Database({"p": {"lines": pa.Table.from_pylist([line]), "pairs": pa.Table.from_pylist(pairs), "transfers": none}})
    assert after_writes(database, "p", "names") == {("n", "device ring"): pytest.approx(0.4)}


@pytest.mark.parametrize("table", ["lines", "names"])
def test_code_without_source_lines_has_its_share_of_all_waiting_and_of_all_writes(table: str) -> None:
    """Code without a source line is listed by function; what no other core wrote is no write."""
    classes = {f"{c}_{what}": 0 for c in MISS_CLASS.names for what in ("stall", "count")}
    lines = [{"line": 64, "use": 1, "name": "n", "kind": "slab", "stall": 100, "spin": 0, "transfers": 1, "waiters": 1, **classes}]
    of = [("main.c:9", "f", 1, 30, 2), (None, "memcpy", 1, 60, 6), (None, None, None, 10, 92)]
    pairs = [{"line": 64, "use": 1, "writer": writer, "writer_function": function, "writer_source": source, "writer_inlined": None,
              "waiter": 9, "waiter_function": function or "g", "waiter_source": source, "waiter_inlined": None, "stall": stall, "spin": 0,
              "count": count, "offset": 0, "accessed": None} for source, function, writer, stall, count in of]
    none = pa.table({name: pa.array([], pa.uint64()) for name in ("line", "use", "stall", "count")})
    database = Database({"p": {"lines": pa.Table.from_pylist(lines), "pairs": pa.Table.from_pylist(pairs), "transfers": none}})
    (found,) = places(database, "p", table).values()
    shares = {role: [(one["function"], one["source"], one["share"]) for one in listed] for role, listed in found.items()}
    assert shares["waited_at"] == [("memcpy", "", 0.6), ("f", "main.c:9", 0.3), ("g", "", 0.1)]
    assert shares["written_at"] == [("memcpy", "", 0.75), ("f", "main.c:9", 0.25)]
    pairs_by_source = database.by_name(SOURCES, "p")["n", "slab"]
    assert [(one["writer"], one["waiter"], one["waiter_source"]) for one in pairs_by_source] == [
        ("memcpy", "memcpy", None), ("f", "f", "main.c:9"), (NO_WRITER, "g", None)]
    assert list(after_writes(database, "p", table).values()) == [pytest.approx(0.9)]
