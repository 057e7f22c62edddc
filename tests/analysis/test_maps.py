# SPDX-License-Identifier: BSD-3-Clause
"""The map of a line divides its waiting by byte and field, and each rule of advice holds where it should and nowhere else."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import synthetic_run
from pyarrow import parquet

from analysis import Point, load
from analysis.database import Database
from analysis.described import MISS_CLASS
from analysis.maps import LineMap, document, maps_of, text
from analysis.maps.advice import Advice, advice
from analysis.maps.text import cores, letters, waits, writes
from analysis.page import maps as page
from analysis.whatif.lines import find
from moscope import cli
from moscope.commands import report  # noqa: F401  registers itself
from moscope.errors import UserError
from moscope.naming.layout import SCHEMA

LINE = 0x1000
STATS, FLAG = "server:stats[0].packets", "server:limit"
Access = tuple[int, int, int, bool]  # byte, core, instruction, whether it writes
PAIR = {"writer": pa.uint64(), "writer_function": pa.string(), "writer_source": pa.string(), "waiter_source": pa.string(),
        "waiter_inlined": pa.string(), "writer_inlined": pa.string(), "offset": pa.uint8(), "accessed": pa.string()}


def pair(waiter: int, at: int, stall: int, writer: int | None = 1, count: int = 1, spin: int = 0) -> dict[str, Any]:
    return {"line": LINE, "use": 1, "writer": writer, "writer_function": f"f{writer}" if writer else None, "writer_source": None,
            "writer_inlined": None, "waiter": waiter, "waiter_function": f"f{waiter}", "waiter_source": f"a.c:{waiter}",
            "waiter_inlined": None, "kernel": False, "offset": at, "accessed": None, "stall": stall, "spin": spin, "count": count}


def made(folder: Path, fields: Sequence[tuple[int, int, str, str]], pairs: list[dict[str, Any]], accesses: Sequence[Access] = (),
         miss: str = "true_sharing", missed: Mapping[int, str] = MappingProxyType({})) -> LineMap:
    """The map of a line with these fields (first, bytes, name, type) and pairs. `missed`: the class of recorded accesses by byte."""
    stall, spin, count = (sum(one[part] for one in pairs) for part in ("stall", "spin", "count"))
    classes = {f"{c}_{part}": 0 for c in MISS_CLASS.names for part in ("stall", "count")} | {f"{miss}_stall": stall, f"{miss}_count": count}
    line = {"line": LINE, "use": 1, "name": "x", "kind": "user symbol", "object": None, "field": None, "class": miss, "stall": stall,
            "spin": spin, "transfers": count, "waiters": 3, **classes}
    nothing = pa.array([], pa.int64())
    laid = [{"line": LINE, "use": 1, "first": first, "bytes": size, "name": name, "kind": "user symbol", "object": None, "type": kind}
            for first, size, name, kind in fields]
    tables = {"lines": pa.Table.from_pylist([line]), "transfers": pa.table({"line": nothing, "use": nothing}),
              "pairs": pa.table({name: pa.array([one[name] for one in pairs], PAIR.get(name)) for name in pairs[0]}),
              "fields": pa.Table.from_pylist(laid, SCHEMA)}
    for name, table in tables.items():
        parquet.write_table(table, folder / f"{name}.parquet")
    if accesses:
        parquet.write_table(pa.Table.from_pylist([
            {"line": LINE, "name": "x", "name_kind": "user symbol", "va": 0x7000 + at, "core": core, "pc": pc,
             "kind": "store" if written else "load", "class": missed.get(at, "cold"), "buffer_wait": False}
            for at, core, pc, written in accesses]),
            folder / "episodes.parquet")
    point = Point("p", {"cores": 2}, {"attribution": {"exposed": stall, "spin": spin}}, Database({"p": folder}))
    (found,) = maps_of(point, "x", "user symbol")
    assert sum(byte.stall for byte in found.bytes) == stall and sum(byte.spin for byte in found.bytes) == spin
    assert sum(area.waiting for area in found.areas) == stall + spin and sum(area.bytes for area in found.areas) == 64
    assert sum(area.transactions for area in found.areas) == count == sum(byte.transactions for byte in found.bytes)
    return found


def kinds(line: LineMap) -> list[str]:
    return [one.kind for one in advice(line)]


TWO = ((0, 8, "a", "long"), (8, 8, "b", "long"), (16, 48, "rest", ""))


def test_each_byte_has_its_own_waiting_transactions_code_and_cores(tmp_path: Path) -> None:
    line = made(tmp_path, TWO, [pair(1, 0, 60, count=6), pair(2, 12, 30, spin=10, count=3)], [(0, 0, 1, True), (12, 3, 2, False)])
    assert [(b.at, b.waiting, b.transactions, b.written) for b in line.bytes if b.waiting] == [(0, 60, 6, True), (12, 40, 3, False)]
    assert [(area.name, area.waiting, area.readers, area.writers) for area in line.used] == [("a", 60, set(), {0}), ("b", 40, {3}, set())]
    assert [code.source for code in line.used[0].writes] == ["a.c:1"] and not line.used[1].writes
    assert (line.sample, line.complete) == (2, False)
    assert (waits(line)[:16], writes(line)[:16], letters(line)[:17]) == (
        "6...........4...", "w...............", "aaaaaaaabbbbbbbb.")


@pytest.mark.parametrize(("whole", "said"), [(25_000, "0.2 %"), (1_000_000, "<0.1 %"), (50, "100.0 %")])
def test_a_small_share_is_not_printed_as_nothing_and_one_transaction_is_singular(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, whole: int, said: str) -> None:
    line = made(tmp_path, TWO, [pair(1, 0, 50)], [(0, 0, 1, True)])
    line.whole = whole
    monkeypatch.setattr(text, "maps_of", lambda *_: [line])
    monkeypatch.setattr(text, "show_chains", lambda *_: None)
    text.show(Point("p", {}, {}, Database({})), "x", "user symbol")
    printed = capsys.readouterr().out
    assert f" {said} of all waiting (0.0 us), 1 transaction, mostly" in printed
    assert "Cores are those of 1 recorded transaction (" in printed


def test_a_writer_without_transactions_of_its_own_has_unknown_bytes(tmp_path: Path) -> None:
    accesses = [(0, 0, 1, True), (8, 1, 2, True)]
    line = made(tmp_path, TWO, [pair(1, 0, 50, writer=9, count=6), pair(2, 8, 50, writer=1, count=2), pair(2, 8, 1, None)], accesses,
                miss="false_sharing")
    assert [(code.function, code.count) for code in line.unplaced] == [("f9", 6)]
    (note,) = text.unplaced(line)
    assert note.startswith("f9 wrote unknown bytes of this line") and "for 75 % of the transactions" in note
    found = advice(line)[0]
    assert found.kind == "false_sharing" and found.text.endswith(" The data that f9 writes in this line must also move to another line.")
    assert not made(tmp_path, TWO, [pair(1, 0, 50, writer=2), pair(2, 8, 50, writer=1)], accesses).unplaced


def test_a_device_is_a_writer_with_unknown_bytes(tmp_path: Path) -> None:
    line = made(tmp_path, TWO, [{**pair(1, 0, 50, None, count=3), "writer_function": "a device"}, pair(2, 8, 50, None)], miss="cold")
    assert text.unplaced(line) == ["a device wrote unknown bytes of this line. It is the last writer for 100 % of the "
                                   "transactions that follow a write."]
    assert "No other core takes this line away" not in advice(line)[0].text


def test_a_writer_on_the_source_line_of_a_waiter_has_unknown_bytes_too(tmp_path: Path) -> None:
    here = {"writer_function": "f1", "writer_source": "a.c:1"}  # those of the waiter, which is another instruction
    line = made(tmp_path, TWO, [{**pair(1, 0, 50, writer=9), **here}, pair(2, 8, 50, writer=None)])
    assert [(code.function, code.source) for code in line.unplaced] == [("f1", "a.c:1")] and len(text.unplaced(line)) == 1


def test_a_writer_that_spinning_cores_alone_wait_for_is_not_listed_with_unknown_bytes(tmp_path: Path) -> None:
    line = made(tmp_path, TWO, [pair(1, 0, 0, writer=9, count=0, spin=5)])
    assert line.unplaced == [] and text.unplaced(line) == [] and advice(line) == []


def test_fields_of_the_allocation_that_the_line_is_named_after_are_listed_by_their_path(tmp_path: Path) -> None:
    site = "s:new at a.cc:3 (Node<std::pair<int, (anonymous namespace)::Key> >)"
    fields = ((0, 8, f"{site}[1].next", "Node *"), (8, 8, f"{site}.value", ""), (16, 48, "s:new at a.cc:4 (Other).value", ""))
    line = made(tmp_path, fields, [pair(1, 0, 60), pair(2, 8, 20), pair(2, 16, 10)])
    line.line.update(name=f"{site}.value", kind="heap")
    assert list(text.table(line).columns[2].cells) == [r"[1].next (Node *)", ".value", "s:new at a.cc:4 (Other).value"]
    line.line.update(kind="user symbol")
    assert next(iter(text.table(line).columns[2].cells)).startswith(site)


def test_false_sharing_within_one_field_is_advised_to_be_laid_apart(tmp_path: Path) -> None:
    accesses = [(0, 0, 1, True), (8, 1, 1, True)]
    line = made(tmp_path, ((0, 64, "counters", "long"),), [pair(1, 0, 50), pair(1, 8, 50)], accesses, miss="false_sharing")
    (found,) = advice(line)
    assert found.kind == "false_sharing" and "bytes of counters (0 and 8)" in found.text
    of_words = made(tmp_path, ((0, 64, "counters", "long"),), [pair(1, 0, 50), pair(1, 8, 50)], accesses)
    assert kinds(of_words) == ["one_word"]


def test_without_fields_the_bytes_from_one_access_to_the_next_are_areas(tmp_path: Path) -> None:
    line = made(tmp_path, (), [pair(1, 4, 1), pair(1, 40, 1)])
    assert [(area.first, area.bytes, area.name) for area in line.areas] == [(0, 4, ""), (4, 36, "+0x4"), (40, 24, "+0x28")]


def test_memory_without_a_type_has_the_name_of_the_byte_with_the_longest_waiting(tmp_path: Path) -> None:
    fields = (0, 32, "kmalloc-96+0x40", ""), (32, 32, "kmalloc-96", "")
    pairs = [pair(1, 56, 90) | {"accessed": "kmalloc-96+0x18"}, pair(1, 40, 5) | {"accessed": "kmalloc-96+0x8"},
             pair(1, 60, 5) | {"accessed": "kmalloc-96.free pointer"}]
    line = made(tmp_path, fields, pairs, [(56, core, 1, True) for core in (0, 1)])
    assert [area.name for area in line.areas] == ["kmalloc-96+0x40", "kmalloc-96+0x18"]
    assert [one.text.split(". ")[0] for one in advice(line) if one.kind == "one_word"] == ["Several cores write kmalloc-96+0x18"]


def test_words_at_one_distance_in_two_objects_are_of_several_objects(tmp_path: Path) -> None:
    fields = (0, 32, "kmalloc-32", ""), (32, 32, "kmalloc-32", "")
    pairs = [pair(n, at, 50, writer=3 - n) | {"accessed": "kmalloc-32+0x8"} for n, at in ((1, 8), (2, 40))]
    line = made(tmp_path, fields, pairs, [(8, 0, 1, True), (40, 1, 2, True)], miss="false_sharing")
    assert advice(line)[0].text.startswith("Different cores write kmalloc-32+0x8 of several objects in this line. ")


def test_fields_that_different_cores_write_are_false_sharing(tmp_path: Path) -> None:
    pairs = [pair(1, 0, 50, writer=2), pair(2, 8, 50, writer=1)]
    line = made(tmp_path, TWO, pairs, [(0, 0, 1, True), (8, 1, 2, True)], miss="false_sharing")
    assert kinds(line) == ["false_sharing"] and "a and b" in advice(line)[0].text


@pytest.mark.parametrize("writers", [((0, 0), (8, 0)), ((0, 0), (0, 1), (8, 0), (8, 1))])
def test_fields_that_the_same_cores_write_are_not(tmp_path: Path, writers: tuple[tuple[int, int], ...]) -> None:
    pairs = [pair(1, 0, 50, writer=2), pair(2, 8, 50, writer=1)]
    line = made(tmp_path, TWO, pairs, [(at, core, 1 if at == 0 else 2, True) for at, core in writers])
    assert "false_sharing" not in kinds(line)


def test_without_recorded_cores_the_class_tells_false_sharing(tmp_path: Path) -> None:
    pairs = [pair(1, 0, 50, writer=2), pair(2, 8, 50, writer=1)]
    assert kinds(made(tmp_path, TWO, pairs, miss="false_sharing")) == ["false_sharing"]
    assert kinds(made(tmp_path, TWO, pairs, miss="upgrade")) == []


@pytest.mark.parametrize(("first", "second", "array"), [
    ("s:stats[0].packets", "s:stats[1].packets", "s:stats"), ("s:grid[7][2]", "s:grid[7][3]", "s:grid[7]"),
    ("s:grid[7][2]", "s:grid[8][2]", "s:grid"), ("s:stats[0].in[1]", "s:stats[0].out[1]", "s:stats[0].in[1]"), ("s:a", "s:b[1]", "s:a")])
def test_advice_on_elements_of_an_array_names_the_array(tmp_path: Path, first: str, second: str, array: str) -> None:
    fields = ((0, 8, first, "long"), (8, 8, second, "long"), (16, 48, "rest", ""))
    line = made(tmp_path, fields, [pair(1, 0, 50), pair(1, 8, 50)], [(0, 0, 1, True), (8, 1, 1, True)])
    found = advice(line)[0]
    assert found.fields[0] == array and (f"Elements of {array} that" in found.text) == (array not in (first, second))


@pytest.mark.parametrize(("function", "apart"), [("deposit", False), ("audit", True)])
def test_what_a_user_of_elements_writes_at_unknown_bytes_moves_with_its_element(tmp_path: Path, function: str, apart: bool) -> None:
    fields = ((0, 8, "s:bank[0].guard", "long"), (8, 8, "s:bank[1].guard", "long"), (16, 48, "rest", ""))
    here = {"writer_function": function, "waiter_function": "deposit"}
    line = made(tmp_path, fields, [{**pair(1, at, 50, writer=9), **here} for at in (0, 8)], [(0, 0, 1, True), (8, 1, 1, True)])
    assert [code.function for code in line.unplaced] == [function]
    assert advice(line)[0].text.endswith(" must also move to another line.") == apart


def test_the_note_on_a_writer_with_unknown_bytes_gives_the_programs_own_source_line(tmp_path: Path) -> None:
    here = {"writer_function": "p:deposit", "writer_source": "/usr/include/c++/12/bits/atomic_base.h:464",
            "writer_inlined": "std::atomic<int>::store called at bank.cc:7; leave called at bank.cc:10"}
    line = made(tmp_path, TWO, [{**pair(1, 0, 50, writer=9), **here}])
    (note,) = text.unplaced(line)
    assert note.startswith("p:deposit (bank.cc:7) wrote unknown bytes of this line")


def test_one_field_that_several_cores_write_is_advised_to_be_one_copy_per_core(tmp_path: Path) -> None:
    line = made(tmp_path, TWO, [pair(1, 0, 90), pair(1, 8, 10, writer=None)], [(0, 0, 1, True), (0, 1, 1, True)])
    assert "one_word" in kinds(line)
    assert "one_word" not in kinds(made(tmp_path, TWO, [pair(1, 0, 90)], [(0, 0, 1, True), (0, 0, 1, True)]))


@pytest.mark.parametrize(("type_", "what", "copies"), [
    ("long", "", True), ("", "", True), ("atomic_t", "", True), ("atomic<Node*>", ", a pointer", False),
    ("llist_node *", ", a pointer", False), ("list_head", ", a pointer", False), ("condition_variable", ", a condition variable", False),
    ("pthread_cond_t", ", a condition variable", False)])
def test_copies_of_one_word_are_advised_for_what_may_be_a_counter_alone(tmp_path: Path, type_: str, what: str, copies: bool) -> None:
    line = made(tmp_path, ((0, 8, "q.word", type_), (8, 56, "rest", "")), [pair(1, 0, 90)], [(0, 0, 1, True), (0, 1, 1, True)])
    (found,) = [one for one in advice(line) if one.kind == "one_word"]
    assert found.text.startswith(f"Several cores write q.word{what}. ") and ("add the copies up" in found.text) == copies


@pytest.mark.parametrize(("name", "type_"), [("queue.lock", ""), ("queue.guard", "pthread_mutex_t")])
def test_advice_on_a_lock_names_the_data_beside_it(tmp_path: Path, name: str, type_: str) -> None:
    line = made(tmp_path, ((0, 8, name, type_), (8, 8, "queue.head", "long"), (16, 48, "rest", "")),
                [pair(1, 0, 70), pair(2, 8, 30, writer=2)], [(0, 0, 1, True), (0, 1, 1, True), (8, 0, 2, True), (8, 1, 2, True)])
    (found,) = advice(line)
    assert found.kind == "lock" and found.fields == (name, "queue.head") and f"{name} is a lock" in found.text


def test_code_of_a_lock_is_no_lock(tmp_path: Path) -> None:
    line = made(tmp_path, ((0, 64, "libc.so.6:pthread_mutex_lock+0x40", ""),), [pair(1, 0, 90, writer=None)])
    assert kinds(line) == ["lock"]
    line.line["fetch"] = True
    assert kinds(line) == []


LOCKED = ((0, 8, "box.lock", "pthread_spinlock_t"), (8, 8, "box.data[0]", "long"), (16, 8, "box.data[1]", "long"), (24, 40, "rest", ""))


@pytest.mark.parametrize(("writer", "second", "expected"), [(1, "box.data[1]", ["lock"]), (2, "box.data[1]", ["false_sharing", "lock"]),
                                                            (1, "other.lock", ["false_sharing", "lock"])])
def test_data_that_only_takers_of_the_lock_beside_it_write_is_not_false_sharing(
        tmp_path: Path, writer: int, second: str, expected: list[str]) -> None:
    fields = [(first, size, second if name == "box.data[1]" else name, type_) for first, size, name, type_ in LOCKED]
    accesses = [(0, 0, 1, True), (0, 1, 1, True), (8, 0, 2, True), (16, writer, 3, True)]
    line = made(tmp_path, fields, [pair(1, 0, 70), pair(2, 8, 15, writer=2), pair(3, 16, 15, writer=3)], accesses)
    assert kinds(line) == expected


@pytest.mark.parametrize(("waiting", "named"), [(4, False), (6, True)])
def test_data_that_comes_with_its_lock_is_to_be_moved_only_if_cores_wait_for_it(tmp_path: Path, waiting: int, named: bool) -> None:
    accesses = [(0, 0, 1, True), (0, 1, 1, True), (8, 0, 2, True)]
    (found,) = advice(made(tmp_path, LOCKED, [pair(1, 0, 100 - waiting), pair(2, 8, waiting, writer=2)], accesses))
    assert found.kind == "lock" and ("box.data[0]" in found.text) == ("box.data[0]" in found.fields) == named


def test_a_count_that_takers_of_a_lock_wait_for_is_data_beside_it(tmp_path: Path) -> None:
    fields = ((0, 4, "queues.waiters", "atomic_t"), (4, 4, "queues.lock", "spinlock"), (8, 56, "rest", ""))
    pairs = [{**pair(n, at, 50, writer=n), "waiter_function": function} for n, at, function in (
        (1, 0, "futex_q_lock"), (2, 4, "_raw_spin_lock"))]
    (found,) = advice(made(tmp_path, fields, pairs, [(at, core, pc, True) for at, pc in ((0, 1), (4, 2)) for core in (0, 1)]))
    assert found.kind == "lock" and found.fields == ("queues.lock", "queues.waiters")
    assert "Its line also holds queues.waiters." in found.text


def test_memory_that_functions_of_locks_wait_for_and_write_holds_a_lock(tmp_path: Path) -> None:
    def by(function: str, *rest: int) -> dict[str, Any]:
        return {**pair(*rest), "waiter_function": function}
    take, give = "libc.so.6:pthread_mutex_lock", "libc.so.6:__pthread_mutex_unlock_usercnt"
    fields = ((0, 64, "server:malloc at server.c:33", ""),)
    accesses = [(0, core, pc, True) for core in (0, 1) for pc in (1, 2, 3)]
    (found,) = advice(made(tmp_path, fields, [by(take, 1, 0, 60), by(give, 2, 8, 30), by("server:insert", 3, 40, 10)], accesses))
    assert found.kind == "lock" and "server:malloc at server.c:33 holds a lock." in found.text
    assert "also holds data that server:insert writes." in found.text
    assert kinds(made(tmp_path, fields, [by("server:get_block", 1, 0, 60), by("server:clock", 2, 0, 30)], accesses)) == ["one_word"]
    apart = [(0, 0, 1, True), (8, 1, 2, True)]
    assert kinds(made(tmp_path, fields, [by(take, 1, 0, 60), by(give, 2, 8, 30)], apart, miss="false_sharing")) == ["lock"]


@pytest.mark.parametrize("miss", ["true_sharing", "false_sharing"])
def test_a_threads_kernel_stack_has_no_advice_to_give_each_thread_a_copy(tmp_path: Path, miss: str) -> None:
    line = made(tmp_path, ((0, 64, "kernel stack", ""),), [pair(1, 0, 60), pair(2, 8, 30)],
                [(0, 0, 1, True), (8, 1, 2, True)], miss=miss)
    line.line["kind"] = "kernel stack"
    assert kinds(line) == []


def test_ranges_of_cores_on_the_page_are_written_as_those_of_bytes() -> None:
    area: Any = SimpleNamespace(writers={0, 1, 2}, readers={5, 6})
    assert re.sub("<.*?>", " ", page._cores(area)).split() == ["write", "0–2", "read", "5–6"]


def test_advice_on_the_page_marks_the_names_of_its_fields_alone() -> None:
    names = ("a", "a&b", "count", "counter")
    said = page._said(Advice("", "A copy of a, a&b, count and counter.", names))
    assert said == ("<b>Advice:</b> A copy of <code>a</code>, <code>a&amp;b</code>, <code>count</code> and <code>counter</code>.")
    assert page._said(Advice("", "Less <data>.", ())) == "<b>Advice:</b> Less &lt;data&gt;."


def test_a_node_in_the_queue_of_a_lock_is_not_said_to_be_the_lock(tmp_path: Path) -> None:
    fields = ((0, 8, "osq_node.next", "ptr"), (8, 4, "osq_node.locked", "int"), (12, 52, "rest", ""))
    (found,) = advice(made(tmp_path, fields, [pair(1, 0, 20), pair(1, 8, 80)],
                           [(at, core, 1, True) for at in (0, 8) for core in (0, 1)]))
    assert found.kind == "lock" and found.fields == ("osq_node",)
    assert "osq_node is a lock" not in found.text and "osq_node is the node of a waiter" in found.text


@pytest.mark.parametrize(("readers", "shared"), [(70, True), (20, False)])
def test_a_lock_whose_readers_wait_most_is_not_to_be_held_shorter(tmp_path: Path, readers: int, shared: bool) -> None:
    reads = {**pair(1, 0, readers, writer=2), "waiter_function": "s:pthread_rwlock_rdlock"}
    writes = {**pair(2, 0, 90 - readers, writer=1), "waiter_function": "s:pthread_rwlock_wrlock"}
    line = made(tmp_path, ((0, 8, "table.guard", "pthread_rwlock_t"), (8, 56, "rest", "")), [reads, writes])
    (found,) = advice(line)
    assert found.kind == "lock" and ("readers share" in found.text) == shared == ("shorter time" not in found.text)


@pytest.mark.parametrize(("accesses", "name", "miss", "holds"), [
    ([(0, 3, 1, True), (0, 1, 2, False)], "page.seq", "true_sharing", True),
    ([(0, 3, 1, True), (0, 1, 2, False)], "page.seq", "false_sharing", False),
    ([(0, 3, 1, True), (0, 1, 2, False)], "page.seq", "capacity", False),
    ([(0, 3, 1, True), (0, 3, 2, False)], "page.seq", "upgrade", False),  # by the writer alone
    ([(0, 3, 1, True), (0, 1, 1, True), (0, 1, 2, False)], "page.seq", "true_sharing", False),
    ([(0, 3, 1, True), (0, 1, 2, False)], "page.lock", "true_sharing", False)])
def test_a_field_that_one_core_writes_for_others_is_advised_to_be_passed_on_less_often(
        tmp_path: Path, accesses: list[Access], name: str, miss: str, holds: bool) -> None:
    line = made(tmp_path, ((0, 8, name, "long"), (8, 56, "rest", "")), [pair(1, 0, 10), pair(2, 0, 80)], accesses, miss=miss)
    found = [one for one in advice(line) if one.kind == "one_writer"]
    assert bool(found) == holds and all(one.fields == (name,) and "One core writes page.seq" in one.text for one in found)


def test_a_written_field_moves_away_from_one_that_is_only_read_as_fields_read_after_that_one_are_not_in_the_map(tmp_path: Path) -> None:
    line = made(tmp_path, TWO, [pair(1, 0, 40), pair(2, 8, 60)], [(0, 0, 1, True), (8, 1, 2, False)], miss="false_sharing")
    (found,) = advice(line)
    assert (found.kind, found.fields, found.others) == ("read_mostly", ("a",), ("b",))
    assert found.text == "b is only read, but cores lose it at each write of a. Move a to another line."
    assert "read_mostly" not in kinds(made(tmp_path, TWO, [pair(1, 0, 99), pair(2, 8, 1)], [(0, 0, 1, True)]))
    assert kinds(made(tmp_path, TWO, [pair(1, 0, 40), pair(2, 8, 60)], [(0, 0, 1, True), (8, 1, 2, False)], miss="cold")) == ["not_shared"]


TICKET = ((0, 4, "next", ""), (4, 4, "owner", ""), (8, 8, "work", ""), (16, 8, "limit", ""), (24, 40, "rest", ""))
# The release, by instruction 9, always finds the line in its core's cache.
TICKET_PAIRS = [pair(1, 0, 25, writer=9), pair(2, 4, 30, writer=1), pair(3, 8, 15, writer=1), pair(4, 16, 30, writer=9)]
TICKET_ACCESSES = [(at, core, pc, at in (0, 8)) for core in (0, 1) for at, pc in ((0, 1), (4, 2), (8, 3), (16, 4))]


def test_a_field_that_misses_as_another_core_has_written_it_is_not_only_read_although_its_writer_has_unknown_bytes(tmp_path: Path) -> None:
    line = made(tmp_path, TICKET, TICKET_PAIRS, TICKET_ACCESSES, missed={4: "true_sharing", 16: "false_sharing"})
    assert [area.name for area in line.areas if area.written] == ["next", "owner", "work"] and writes(line)[4] == "w"
    (found,) = advice(line)
    assert found.kind == "read_mostly" and found.fields == ("limit",) and "all other fields that the same code" in found.text


def test_no_field_is_said_to_be_only_read_if_a_writer_has_unknown_bytes_and_no_class_of_a_field_is_recorded(tmp_path: Path) -> None:
    assert kinds(made(tmp_path, TICKET, TICKET_PAIRS, TICKET_ACCESSES)) == []
    placed = [{**one, "writer": 1} for one in TICKET_PAIRS]
    (found,) = advice(made(tmp_path, TICKET, placed, TICKET_ACCESSES))
    assert found.kind == "read_mostly" and found.fields == ("next", "work") and found.others == ("owner", "limit")


def test_an_inlined_function_that_takes_a_lock_makes_its_word_a_lock_whose_other_words_are_no_data(tmp_path: Path) -> None:
    inlined = [{**one, "waiter_inlined": "tick_lock called at a.c:9; loop called at a.c:20" if one["waiter"] in (1, 2) else None}
               for one in TICKET_PAIRS]
    first, _ = advice(made(tmp_path, TICKET, inlined, TICKET_ACCESSES, missed={4: "true_sharing", 16: "false_sharing"}))
    assert first.kind == "lock" and first.fields == ("next", "work") and "next holds a lock" in first.text


def test_advice_on_the_page_also_marks_the_field_that_stays(tmp_path: Path) -> None:
    fields = ((0, 8, "refs", "atomic_t"), (8, 56, "limits", ""))
    (found,) = advice(made(tmp_path, fields, [pair(1, 0, 40), pair(2, 8, 60)], [(0, 0, 1, True), (8, 1, 2, False)], miss="false_sharing"))
    assert "<code>limits</code> is only read, but cores lose it at each write of <code>refs</code>." in page._said(found)


@pytest.mark.parametrize(("writer", "alone"), [(None, True), (2, False)])
def test_a_line_that_caches_replace_needs_no_padding_also_if_other_cores_write_it(tmp_path: Path, writer: int | None, alone: bool) -> None:
    (found,) = advice(made(tmp_path, TWO, [pair(1, 0, 9, writer=writer)], miss="capacity"))
    assert found.kind == "not_shared" and ("No other core takes this line away" in found.text) == alone


def test_cores_are_listed_as_ranges() -> None:
    assert cores({0, 1, 2, 7, 9, 10}) == "0-2, 7, 9-10" and cores(()) == ""


def run_with_fields(folder: Path) -> Path:
    """A run whose hottest lines are parts of server:stats. The hottest one holds a field of another name."""
    synthetic_run.write_run(folder, cores=(4,))
    record, stats, found = synthetic_run.point("exim", "distro", 4)
    hottest, other = sorted(found["lines"], key=lambda row: -int(row["stall"]))[:2]
    hottest.update(name="server:stats[1].sent", kind="user symbol")
    other.update(name="server:stats[0].sent", kind="user symbol")
    field = {"line": hottest["line"], "use": hottest["use"], "first": 8, "bytes": 8, "name": "server:stats[1].received",
             "kind": "user symbol", "object": "", "type": "long"}
    synthetic_run.write_files(folder / "points/exim-distro-4", record, stats, found)
    parquet.write_table(pa.Table.from_pylist([field], SCHEMA), folder / "points/exim-distro-4/fields.parquet")
    return folder


@pytest.mark.parametrize(("asked", "shown", "said"), [
    ("server:stats", "server:stats[*].sent", "have the name server:stats[*].sent, after the byte"),
    ("server:stats[0].sent", "server:stats[0].sent", ""),
    ("server:stats[1].received", "server:stats[1].sent", "have the name server:stats[1].sent, after the byte")])
def test_a_line_is_found_by_its_object_and_by_each_of_its_fields(
        tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, asked: str, shown: str, said: str) -> None:
    folder = run_with_fields(tmp_path / "run")
    monkeypatch.setattr(document, "document", lambda _, name, kind: {"schema": "moscope.map/1", "name": name, "kind": kind})
    assert cli.main(["report", str(folder), "--line", asked, "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["name"] == shown and said in err and bool(said) == bool(err)


@pytest.mark.parametrize(("asked", "lines"), [
    ("server:stats", 2), ("server:stats[1]", 1), ("server:stats[1].sent", 1), ("server:stats[1].received", 1)])
def test_what_if_and_step_find_a_line_by_the_names_that_report_accepts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str,
                                                                      lines: int) -> None:
    from moscope.stepping import episode

    folder = run_with_fields(tmp_path / "run")
    subject = find(load(folder).points[0], asked)
    assert subject and subject.name == asked and len(subject.names) == lines
    recorded = episode.Episode(folder, "exim-distro-4", "server:stats[1].sent", "user symbol", [])
    monkeypatch.setattr(episode, "episodes_of", lambda *_: [recorded])
    assert episode.find(folder, asked) is recorded
    with pytest.raises(UserError, match="no name with an episode"):
        episode.find(folder, "server:statistics")


def test_of_a_name_with_two_kinds_the_one_with_the_most_waiting_is_shown_unless_another_is_asked_for(
        tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(4,))
    record, stats, found = synthetic_run.point("exim", "distro", 4)
    rows = sorted(found["lines"], key=lambda row: -int(row["stall"]))
    first, second = rows[0]["name"], rows[1]
    second.update(name=first, kind="heap")
    synthetic_run.write_files(folder / "points/exim-distro-4", record, stats, found)

    monkeypatch.setattr(document, "document", lambda _, name, kind: {"schema": "moscope.map/1", "name": name, "kind": kind})

    def asked(*more: str) -> tuple[int, str, str]:
        code = cli.main(["report", str(folder), "--line", str(first), "--json", *more])
        return code, *capfd.readouterr()

    code, out, err = asked()
    assert code == 0 and json.loads(out)["kind"] == "slab" and "--kind shows the others: heap" in err
    code, out, err = asked("--kind", "heap")
    assert (code, err) == (0, "") and json.loads(out)["kind"] == "heap"
    code, out, err = asked("--kind", "stack")
    assert code == 2 and out == "" and "--kind: no kind of" in err and "expected one of heap, slab" in err
