# SPDX-License-Identifier: BSD-3-Clause
"""Locks of user programs, from hand-made transactions: acquisitions, holders, hand-offs, futexes."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from analysis import Point, Run, RunDirectoryError, tables, user_locks
from analysis.database import Database
from analysis.described import MISS_CLASS
from analysis.page import waiting
from moscope import jsonio

NS = 10**6
LINE, VA = 0x1000, 0x4BB000
TAKE, WAIT, GIVE = "bank:pthread_mutex_lock", "bank:__lll_lock_wait", "bank:__pthread_mutex_unlock_usercnt"
CONFIG: dict[str, Any] = {"cores_per_chip": 2, "hops": [[0, 2], [2, 0]]}
Row = dict[str, Any]


def access(core: int, issued: int, latency: int, function: str, kind: str = "rmw", byte: int = 0, user: bool = True, **more: Any) -> Row:
    """Times in ns."""
    return {"core": core, "issued": issued * NS, "latency": latency * NS, "exposed": latency * NS, "kind": kind, "line": LINE,
            "va": VA + byte, "function": function, "inlined": None, "name": "bank:total.mutex", "name_kind": "user symbol", "user": user,
            "walk": False, "buffer_wait": False, "pc": 1, **more}


@pytest.fixture
def made(tmp_path: Path) -> Any:
    """Locks of these transactions on two chips of two cores; the mutex is the line's bytes 0 to 39, then a counter."""
    def made(rows: list[Row], typed: bool = True, config: dict[str, Any] = CONFIG, running: int = 0) -> list[Row]:
        classes = {f"{c}_{part}": 0 for c in MISS_CLASS.names for part in ("stall", "count")}
        line = {"line": LINE, "use": 1, "name": "bank:total.mutex", "kind": "user symbol", "object": None, "field": None,
                "class": "true_sharing", "stall": 0, "spin": 9 * NS, "transfers": 6, "waiters": 3, **classes}
        pair = {"line": LINE, "use": 1, "writer": 1, "writer_function": None, "address_space": 0, "offset": 0, "waiter": 2,
                "waiter_function": TAKE, "kernel": False, "stall": 0, "spin": 9 * NS, "count": 1}
        transfer = {"line": LINE, "use": 1, "supplier": "L1Cache", "from_chip": 0, "to_chip": 0, "count": 1, "stall": 1}
        fields = [{"line": LINE, "use": 1, "first": first, "bytes": size, "name": f"bank:total.{name}", "kind": "user symbol",
                   "object": "bank 7", "type": kind if typed else None}
                  for first, size, name, kind in ((0, 40, "mutex", "pthread_mutex_t"), (40, 8, "changes", "long int"))]
        for name, table in (("lines", [line]), ("pairs", [pair]), ("transfers", [transfer]), ("fields", fields), ("transactions", rows)):
            parquet.write_table(pa.Table.from_pylist(table), tmp_path / f"{name}.parquet")
        core = {"window": 1000 * NS, "busy": {"kernel": 0, "user": running * NS}, "core": {"kernel": 0, "user": 0}}
        stats = {"cores": [core], "attribution": {"exposed": 1000 * NS, "spin": 9 * NS}}
        p = Point("p", {"cores": 4}, stats, Database({"p": tmp_path}), config=config)
        jsonio.validate(user_locks.document(p))
        table, found = tables.ALL["user_locks"](Run(tmp_path, {}, [p], [])), user_locks.locks(p)
        assert {len(column) for column in table.values()} == {len(found)} and table["name"] == [lock["name"] for lock in found]
        return found

    return made


CONTENDED = [
    access(0, 0, 10, TAKE), access(3, 20, 10, TAKE),                           # 3 asks while 0 holds
    access(3, 50, 5, "__get_user_nocheck_4", "load", user=False),              # and sleeps
    access(0, 60, 10, GIVE, "store", 8), access(3, 100, 10, WAIT),             # 0 gives it away at 70; 3 has it at 110
    access(3, 130, 10, GIVE, "store", 8), access(1, 200, 10, TAKE),
    access(1, 300, 10, "bank:change", byte=40)]                                # a counter of the same line


def test_a_mutex_has_its_holders_hold_times_and_hand_offs(made: Any) -> None:
    (lock,) = made(CONTENDED)
    assert lock["name"] == "bank:total.mutex" and lock["type"] == "pthread_mutex_t" and lock["virtual_address"] == VA
    assert lock["acquisitions"] == 3 and lock["repeated"] == 1 and lock["cores"] == 3
    assert lock["held_known"] == 2 and lock["held"] == 45 * NS, "the median of 10 to 70 and 110 to 140"
    assert lock["waited_longest"] == 90 * NS and lock["waiters"] == pytest.approx((10 + 90 + 10) / 1000)
    assert lock["handoffs"] == 2 and lock["hops"] == 2, "from chip 0 to chip 1 and back"
    assert lock["stall"] == 65 * NS and lock["spin"] == 9 * NS


def test_futex_waits_and_the_kernels_futex_code_belong_to_the_lock_that_the_core_accessed_last(made: Any) -> None:
    queue = access(3, 40, 7, "futex_q_lock", user=False, va=1 << 47 | 8, line=0x2000, name="futex_queues.waiters", name_kind="boot memory")
    (lock,) = made([*CONTENDED, queue, {**queue, "core": 2}])  # core 2 has accessed no lock
    assert lock["futex_waits"] == 1 and lock["futex_stall"] == 7 * NS


def test_sleeps_on_another_word_of_a_rwlock_are_its_futex_waits(made: Any) -> None:
    sleep = access(0, 20, 5, "__get_user_nocheck_4", "load", 8, user=False)
    assert [lock["futex_waits"] for take in ("bank:pthread_rwlock_wrlock", TAKE)
            for lock in made([access(0, 0, 10, take), sleep], typed=False)] == [1, 0]


def test_a_lock_without_a_type_is_known_by_the_functions_that_change_it(made: Any) -> None:
    (lock,) = made([{**row, "name": "heap of bank", "name_kind": "heap"} for row in CONTENDED[:-1]], typed=False)
    assert lock["name"] == "heap of bank" and lock["type"] == "" and lock["acquisitions"] == 3


def test_attempts_of_a_spin_lock_are_one_acquisition(made: Any) -> None:
    spin = [access(0, 0, 10, "bank:work"), access(1, 20, 10, "bank:work"), access(1, 40, 10, "bank:work"),
            access(0, 60, 10, "bank:work", "store"), access(1, 80, 10, "bank:work")]
    (lock,) = made(spin)
    assert lock["acquisitions"] == 2 and lock["held"] == 60 * NS and lock["waited_longest"] == 70 * NS


def test_without_the_runs_machine_hand_offs_have_no_distance(made: Any) -> None:
    (lock,) = made(CONTENDED, config={})
    assert lock["handoffs"] == 2 and lock["hops"] is None


def test_attempts_that_fail_in_a_function_named_like_a_lock_are_no_acquisitions(made: Any) -> None:
    take, give = "bank:spin_lock", "bank:spin_unlock"
    (lock,) = made([access(0, 0, 10, take), access(1, 20, 10, take), access(2, 25, 10, take), access(1, 40, 10, take),
                    access(0, 60, 10, give, "store"), access(1, 80, 10, take), access(1, 100, 10, give, "store")])
    assert lock["acquisitions"] == 2 and lock["repeated"] == 1 and lock["handoffs"] == 1, "core 2 asked and never got it"
    assert lock["held_known"] == 2 and lock["held"] == 40 * NS and lock["waited_longest"] == 70 * NS


def test_an_operation_that_no_waiting_code_follows_as_it_does_another_of_its_function_is_a_release(made: Any) -> None:
    take, give = ({"function": "libc.so.6:malloc", "pc": pc} for pc in (0x20, 0x10))
    (lock,) = made([row for at in range(0, 4000, 1000)
                    for row in (access(0, at, 10, **take), access(1, at + 20, 10, **take), access(0, at + 60, 10, **give),
                                access(1, at + 80, 10, "libc.so.6:__lll_lock_wait_private"), access(1, at + 140, 10, **give))])
    assert lock["acquisitions"] == lock["held_known"] == 8 and lock["repeated"] == 4 and lock["held"] == 60 * NS


def test_a_spin_lock_that_locked_operations_take_and_store_has_only_the_former_as_attempts(made: Any) -> None:
    def inlined(last: str) -> Row:
        return {"inlined": f"{last} called at bank.cc:6; Guard::pass called at bank.cc:12"}
    take, again = inlined("std::__atomic_base<int>::exchange"), inlined("std::atomic_flag::test_and_set")
    for give in (inlined("std::atomic_flag::clear"), inlined("std::__atomic_base<int>::store")):
        (lock,) = made([row for at in range(0, 4000, 1000)
                        for row in (access(0, at, 10, "bank:work", pc=0x10, **take), access(1, at + 20, 10, "bank:work", pc=0x10, **take),
                                    access(1, at + 40, 10, "bank:work", pc=0x20, **again), access(0, at + 60, 10, "bank:work", **give),
                                    access(1, at + 80, 10, "bank:work", pc=0x20, **again), access(1, at + 140, 10, "bank:work", **give))])
        assert lock["acquisitions"] == lock["held_known"] == 8 and lock["repeated"] == 4 and lock["held"] == 60 * NS


def test_a_hold_ends_with_its_first_release_where_the_lock_was_taken_again_within_the_cache(made: Any) -> None:
    (lock,) = made([access(0, 0, 10, TAKE), access(0, 60, 10, GIVE), access(0, 900, 10, GIVE)])
    assert lock["acquisitions"] == 1 and lock["held"] == 60 * NS


def test_a_release_whose_last_operation_hit_does_not_extend_to_the_next_one(made: Any) -> None:
    (lock,) = made([access(0, 0, 10, TAKE), access(0, 60, 10, GIVE, "load", 16), access(0, 72, 10, GIVE, "store", 8),
                    access(0, 900, 10, GIVE, "load", 16), access(0, 912, 10, GIVE, "store", 8)])
    assert lock["acquisitions"] == 1 and lock["held"] == 72 * NS


def test_a_hold_in_which_other_data_took_the_line_late_is_not_known_as_the_lock_may_have_been_taken_again(made: Any) -> None:
    take, give = access(0, 0, 10, TAKE), access(0, 600, 10, GIVE)
    holds = [(lock["held"], lock["held_known"]) for at in (100, 500)
             for lock in made([take, access(1, at, 10, "bank:change", "store", 40), give])]
    assert holds == [(600 * NS, 1), (None, 0)]
    (lock,) = made([take, access(1, 500, 10, TAKE), give])
    assert lock["held"] == 600 * NS, "an attempt on the lock takes the line within a hold"


def test_a_failed_attempt_while_the_lock_was_taken_again_within_its_cache_is_no_acquisition(made: Any) -> None:
    take, give = "bank:spin_lock", "bank:spin_unlock"
    (lock,) = made([access(0, 0, 10, take), access(0, 60, 10, give, "store"), access(1, 80, 10, take),
                    access(0, 100, 10, give, "store"), access(1, 120, 10, take)])
    assert lock["acquisitions"] == 2 and lock["handoffs"] == 1 and lock["held"] == 60 * NS and lock["waited_longest"] == 50 * NS


def test_readers_of_a_rwlock_hold_it_together(made: Any) -> None:
    take, give = "bank:pthread_rwlock_rdlock", "bank:pthread_rwlock_unlock"
    (lock,) = made([access(0, 0, 10, take), access(1, 20, 10, take), access(0, 60, 10, give), access(1, 900, 10, take)], typed=False)
    assert lock["acquisitions"] == 3 and lock["waited_longest"] == 10 * NS


def test_code_that_reads_the_lock_after_its_locked_operation_waits_until_the_last_such_read(made: Any) -> None:
    take, give = "libc.so.6:pthread_rwlock_rdlock", "libc.so.6:pthread_rwlock_unlock"
    rows = [access(1, 20, 10, take), access(1, 100, 10, take, "load", 8), access(1, 150, 10, give)]
    (lock,) = made(rows)
    assert (lock["acquisitions"], lock["waited_longest"], lock["held"]) == (1, 90 * NS, 50 * NS)
    (lock,) = made([*rows[:1], access(1, 50, 10, "bank:change", byte=40), *rows[1:]])
    assert (lock["waited_longest"], lock["held"]) == (10 * NS, 130 * NS), "the core has done other work before the read"


def test_a_read_right_before_an_attempt_is_no_wait_of_the_acquisition_before(made: Any) -> None:
    take = "bank:spin_lock"
    (lock,) = made([access(0, 0, 10, take), access(0, 300, 10, take, "load"), access(0, 315, 10, take)])
    assert lock["acquisitions"] == 2 and lock["waited_longest"] == 10 * NS


def test_an_attempt_that_does_not_wait_is_no_part_of_the_next_acquisition(made: Any) -> None:
    (lock,) = made([access(0, 0, 10, TAKE), access(1, 20, 10, "bank:pthread_mutex_trylock"), access(0, 60, 10, GIVE),
                    access(1, 900, 10, TAKE)])
    assert lock["acquisitions"] == 2 and lock["waited_longest"] == 10 * NS


def test_attempts_that_nothing_shows_to_have_failed_are_acquisitions_whose_release_hit(made: Any) -> None:
    (lock,) = made([access(core, 200 * n + 50 * core, 10, "bank:work") for n in range(4) for core in (0, 1)])
    assert lock["acquisitions"] == 8 and lock["repeated"] == 0 and lock["waited_longest"] == 10 * NS
    assert lock["waiters"] == pytest.approx(8 * 10 / 1000) and lock["held_known"] == 0


def test_a_spinning_core_waits_for_a_holder_that_writes_data_on_the_locks_line(made: Any) -> None:
    rows = [access(0, 0, 10, "bank:work"), access(1, 20, 10, "bank:work"),
            access(0, 60, 10, "bank:work", "store", 40), access(1, 68, 10, "bank:work")]
    (lock,) = made(rows)
    assert lock["acquisitions"] == 2 and lock["repeated"] == 1 and lock["waited_longest"] == (78 - 20) * NS
    (lock,) = made([*rows[:-1], access(1, 600, 10, "bank:work")])
    assert lock["acquisitions"] == 3 and lock["waited_longest"] == 10 * NS, "a core that does not attempt again at once has not waited"


def test_a_core_that_spins_by_reading_waits_for_a_holder_that_writes_data_on_the_locks_line(made: Any) -> None:
    take = "libc.so.6:pthread_spin_lock"
    rows = [access(0, 0, 10, take), access(1, 20, 10, take), access(0, 31, 5, "bank:work", "load", 40),
            access(0, 400, 10, "bank:work", "store", 40), access(1, 412, 10, take, "load"), access(1, 425, 10, take)]
    (lock,) = made(rows)
    assert lock["acquisitions"] == 2 and lock["repeated"] == 1 and lock["waited_longest"] == (435 - 20) * NS
    (lock,) = made([*rows, access(1, 100, 10, "bank:other", "load", line=0x3000, va=VA + 0x2000)])
    assert lock["acquisitions"] == 3 and lock["waited_longest"] == 10 * NS, "a core that does other work has not waited"


def test_a_core_that_accesses_other_data_between_two_attempts_has_not_waited(made: Any) -> None:
    rows = [access(0, 0, 10, "bank:work"), access(1, 20, 10, "bank:work"), access(0, 60, 10, "bank:work", "store"),
            access(1, 80, 10, "bank:work")]
    other = access(1, 50, 10, "bank:other", "load", line=0x3000, va=VA + 0x2000)
    assert [(lock["acquisitions"], lock["waited_longest"]) for lock in made(rows)] == [(2, 70 * NS)]
    assert [(lock["acquisitions"], lock["waited_longest"]) for lock in made([*rows, other])] == [(2, 10 * NS)]


def test_waits_longer_than_the_cores_can_have_waited_are_not_reported(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (lock,) = made(CONTENDED, running=880)
    assert lock["waiters"] == pytest.approx(0.11)
    (lock,) = made(CONTENDED, running=900)
    assert (lock["acquisitions"], lock["waiters"], lock["waited"], lock["waited_longest"]) == (3, None, None, None)
    row = {**lock, "waited_ns": None, "waited_longest_ns": None, "held_ns": 45, "futex_us": 0.0}
    monkeypatch.setattr(waiting, "point_user_locks", lambda p: [row])
    cells = re.findall("<td[^>]*>(.*?)</td>", waiting.user_locks(Point("p", {}, {})))
    assert cells[2:7] == ["", "3", "", "", "45"]
    (_, _, counts, _) = user_locks.text({"point": "p", "locks": [lock]})
    assert "3 acquisitions by 3 cores, held 45 ns (median of 2 known holds); how long cores waited is not known" in counts


def test_cores_can_wait_in_all_time_but_that_of_user_code_outside_spin_loops() -> None:
    core = {"window": 100, "busy": {"kernel": 20, "user": 30}, "core": {"user": 10}, "spin": {"busy": {"user": 5}, "core": {"user": 2}}}
    assert Point("p", {}, {"cores": [core, core]}).waitable_fs == 2 * (100 - 30 - 10 + 5 + 2)
    assert Point("p", {}, {"cores": [{"window": 9, "busy": {}, "spin": None}, {}]}).waitable_fs == 9, "a changed file"
    assert Point("p", {}, {"cores": None}).waitable_fs == 0


def test_glibcs_code_for_all_readers_of_a_rwlock_does_not_mean_that_an_attempt_has_failed(made: Any) -> None:
    full = {"inlined": "__pthread_rwlock_rdlock_full64 called at nptl/pthread_rwlock_rdlock.c:26"}
    (lock,) = made([access(core, at, 10, "libc.so.6:pthread_rwlock_rdlock", **full) for at, core in ((0, 0), (300, 1), (600, 0))],
                   typed=False)
    assert lock["acquisitions"] == 3 and lock["waited_longest"] == 10 * NS


def test_counts_of_a_condition_variable_are_no_lock(made: Any) -> None:
    fetch = {"inlined": "__condvar_fetch_add_wseq_acquire called at nptl/pthread_cond_wait.c:401"}
    assert made([access(0, 0, 10, "bank:__condvar_acquire_lock"), access(1, 90, 10, "bank:pthread_cond_wait", **fetch)], typed=False) == []
    lock_again = {"inlined": "std::sys::sync::mutex::futex::Mutex::lock called at condvar.rs:12"}
    assert len(made([access(0, 0, 10, "bank:std::sys::sync::condvar::futex::Condvar::wait", **lock_again)], typed=False)) == 1


def test_a_lock_that_one_core_took_once_comes_last_and_the_text_counts_it_in_the_singular(made: Any) -> None:
    once = access(0, 0, 500, "ld.so:lock_thread", line=0x2000, name="thread", name_kind="heap")
    twice = [access(1, at, 5, TAKE, line=0x3000, name="twice", name_kind="heap") for at in (0, 200)]
    found = made([once, *twice], typed=False)
    assert [lock["name"] for lock in found] == ["twice", "thread"]
    lines = list(user_locks.text({"point": "p", "locks": found[1:]}))
    assert lines[0] == "p: 1 lock of user programs" and lines[2].strip().startswith("1 acquisition by 1 core, ")


def test_a_counter_that_locked_operations_change_is_no_lock(made: Any) -> None:
    assert made([access(0, 0, 10, "bank:count", byte=40), access(1, 20, 10, "bank:count", byte=40)]) == []


def test_locks_of_transactions_with_other_columns_are_refused_and_no_table_has_them(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"core": [1]}), tmp_path / "transactions.parquet")
    p = Point("p", {"cores": 4}, {}, Database({}))
    p.database._folders["p"] = tmp_path
    assert not user_locks.known(p)
    with pytest.raises(RunDirectoryError, match=r"transactions.parquet: cannot be used \(.*\): expected a run of this version"):
        user_locks.document(p)
