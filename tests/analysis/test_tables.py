# SPDX-License-Identifier: BSD-3-Clause
"""Run directories become tables whose sums are those of the engine."""

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import synthetic_run
from pyarrow import parquet

from analysis import Point, Run, RunDirectoryError, load, tables
from analysis.database import Database
from analysis.described import CLASSES
from analysis.figures import ablation
from analysis.figures.hot_lines import split
from analysis.filters import of_protocol
from analysis.locks import OF_PATCHES, lock_of
from analysis.mosbench import names
from analysis.tables.differences import kernel_pairs, wait_per_operation
from analysis.tables.kinds import point_kinds
from analysis.tables.latency import point_latency
from analysis.tables.lines import hot_lines, what
from analysis.tables.locks import point_locks
from analysis.tables.names import hot_names
from analysis.tables.pairs import point_pairs
from analysis.tables.time_split import causes
from analysis.tables.transfers import matrix, of_name

HT_ASSIST = of_protocol("MOESI_HTAssist")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    return load(synthetic_run.write_run(tmp_path_factory.mktemp("tables") / "run", cores=(1, 48)))


def test_points_come_in_order_of_cores(run) -> None:  # type: ignore[no-untyped-def]
    assert [(p.workload, p.kernel, p.cores) for p in run.points] == [("exim", "distro", 1), ("exim", "distro", 48)]
    assert not run.problems


def test_causes_split_all_of_the_cores_time(run) -> None:  # type: ignore[no-untyped-def]
    for p in run.points:
        found = causes(p)
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-9)
        memory = sum(found[k] for k in (*CLASSES, "without_class"))
        assert memory == pytest.approx(p.record["cycles"]["memory"], abs=1e-6)


def test_shares_are_of_all_memory_stall_also_of_transactions_that_have_not_ended(run) -> None:  # type: ignore[no-untyped-def]
    p = run.points[-1]
    late = {**p.stats["cores"][0], "unreported": p.memory_stall_fs}
    changed = replace(p, stats={**p.stats, "cores": [late, *p.stats["cores"][1:]]}, made={})
    for one, other in zip(hot_names(p), hot_names(changed), strict=True):
        assert other["stall_share"] == pytest.approx(one["stall_share"] / 2)
        assert other["wait_share"] == pytest.approx(one["wait_share"] * p.waiting_fs / (p.waiting_fs + p.memory_stall_fs))


def test_spinning_is_taken_from_busy_time_and_core_stall_and_ranks_its_line(run) -> None:  # type: ignore[no-untyped-def]
    for p in run.points:
        found, cycles = causes(p), p.record["cycles"]
        assert found["spin"] == pytest.approx(p.record["spin_cycles"]) == p.spin_fs / p.cores / p.window_fs
        assert found["user"] + found["kernel"] + found["core"] + found["spin"] == pytest.approx(cycles["busy"] + cycles["core"])
    p = run.points[-1]
    line = next(one for one in hot_lines(p) if one["name"] == synthetic_run.SPUN_ON)
    assert line["spin_us"] > line["stall_us"] > 0 and ("spin", pytest.approx(p.spin_fs / p.waiting_fs)) in split(line)
    assert line["wait_share"] > 2 * line["stall_share"] and hot_names(p).index(
        next(one for one in hot_names(p) if one["name"] == synthetic_run.SPUN_ON)) < 4


def test_without_attribution_memory_stall_stays_whole() -> None:
    record, stats, _ = synthetic_run.point("exim", "distro", 12)
    del stats["attribution"], stats["cores"][0]["spin"]
    found = causes(synthetic_run.made(record, stats))
    assert found["memory"] == pytest.approx(record["cycles"]["memory"], abs=1e-6)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-9)


def test_every_column_of_a_table_is_as_long(run) -> None:  # type: ignore[no-untyped-def]
    for name, make in tables.ALL.items():
        table = make(run)
        assert len({len(column) for column in table.values()}) == 1, name
        # Of two kernels; of recorded transactions.
        assert len(table["cores"]) > 0 or name in ("differences", "user_locks"), name


def test_two_kernels_are_compared_where_both_have_the_most_cores(tmp_path: Path) -> None:
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(12, 48), kernels=("pk", "stock", "upstream")))
    (first, second), = kernel_pairs(run)
    assert (first.kernel, second.kernel, first.cores, second.cores) == ("pk", "stock", 48, 48)
    rows = wait_per_operation(first, second)
    _, name, one, other = next(row for row in rows if row[0] == "line")
    line = next(x for x in hot_names(first) if x["name"] == name)
    assert one == pytest.approx((line["stall_us"] + line["spin_us"]) / first.record["ops"]) and one != other
    gaps = [abs(a - b) for *_, a, b in rows]
    assert gaps == sorted(gaps, reverse=True) and {kind for kind, *_ in rows} == {"line", "function"}


def renamed(tmp_path: Path, name: str) -> list[tuple[str, str, float, float]]:
    """Waiting per operation on pk and stock, where the hottest line of the second has this name."""
    for kernel, gain in (("pk", 1.0), ("stock", 1.8)):
        documents = synthetic_run.point("exim", kernel, 48, gain)
        if kernel == "stock":
            documents[2]["lines"][0]["name"] = name
        synthetic_run.write_point(tmp_path, documents)
    (first, second), = kernel_pairs(load(tmp_path))
    return wait_per_operation(first, second)


def test_a_line_of_one_kernel_counts_as_zero_in_the_other(tmp_path: Path) -> None:
    found = {name: (a, b) for kind, name, a, b in renamed(tmp_path, "another") if kind == "line"}
    assert found["mount_lock"][1] == 0 < found["mount_lock"][0] and found["another"][0] == 0 < found["another"][1]


def test_a_lock_is_one_line_in_both_kernels_at_any_byte(tmp_path: Path) -> None:
    found = {name: (a, b) for kind, name, a, b in renamed(tmp_path, "mount_lock+0x4") if kind == "line"}
    assert all(found["mount_lock"]) and "mount_lock+0x4" not in found


def test_kernel_settings_are_ordered_stock_mixes_pk(tmp_path: Path) -> None:
    kernels = ("pk", "pk-14", "pk-2", "stock+2,7", "stock", "stock+14", "distro")
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(48,), kernels=kernels))
    (panel,) = ablation.panels(run)
    assert [p.kernel for p in panel] == ["stock", "stock+2,7", "stock+14", "pk-2", "pk-14", "pk"]
    assert not ablation.panels(load(synthetic_run.write_run(tmp_path / "two", cores=(48,), kernels=("stock", "pk"))))


def test_the_hottest_line_is_first_with_its_writer_and_waiter(run) -> None:  # type: ignore[no-untyped-def]
    first = hot_lines(run.points[-1])[0]
    assert first["name"] == "mount_lock" and first["class"] == "true_sharing"
    assert first["stall_share"] == pytest.approx(0.31, abs=1e-3)
    assert first["writer"] == "lock_mount_hash" and first["waiter"] == "lookup_mnt"


def test_a_lines_parts_add_up_to_its_share(run) -> None:  # type: ignore[no-untyped-def]
    for line in hot_lines(run.points[-1]):
        assert sum(share for _, share in split(line)) == pytest.approx(line["wait_share"], rel=2e-3)


def test_object_and_field_are_not_repeated_if_the_name_has_them() -> None:
    assert what({"object": "dentry", "field": "d_lockref", "name": "dentry.d_lockref of /spool"}) == ""
    assert what({"object": "rq", "field": "__lock", "name": "runqueues[3]"}) == "rq, __lock"


def test_transfers_of_the_lines_of_a_name_add_up() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 12)
    first, second = (line["line"] for line in found["lines"][:2])
    found["lines"][1]["name"] = "mount_lock"
    found["transfers"] = [{"supplier": supplier, "from_chip": sender, "to_chip": to, "count": count, "stall": 1, "line": line, "use": use}
                          for line, use, supplier, sender, to, count in ((first, 1, "L1Cache", 1, 0, 3), (first, 1, "Directory", 0, 1, 2),
                                                                         (second, 5, "L1Cache", 1, 0, 4), (second, 5, "L3Cache", 0, 0, 0))]
    rows = of_name(synthetic_run.made(record, stats, found), "mount_lock", "slab")
    assert {(r["supplier"], r["from_chip"], r["to_chip"]): (r["count"], r["stall"]) for r in rows} == {
        ("L1Cache", 1, 0): (7, 2), ("Directory", 0, 1): (2, 1)}
    assert matrix(rows) == ([0, 1], [("cores of chip 1", [7, 0]), ("memory of node 0", [0, 2])])


def test_a_foreign_protocols_suppliers_are_called_by_their_roles() -> None:
    kinds = (("Keeper", "home", "node"), ("Private", "cache", "core"), ("LastCache", "cache", "chip"), ("Copier", "dma", "node"))
    rows = [{"supplier": kind, "supplier_role": role, "supplier_per": per, "from_chip": 2, "to_chip": 0, "count": n}
            for n, (kind, role, per) in enumerate(kinds, 1)]
    assert matrix(rows) == ([0], [("Copier of chip 2", [4]), ("Last of chip 2", [3]), ("cores of chip 2", [2]), ("memory of node 2", [1])])


def test_cores_of_a_name_are_those_that_accessed_any_of_its_lines() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 12)
    for line, waiters in zip(found["lines"][1:4], (0b0011, 0b1010, 1 << 47), strict=True):
        line["waiters"] = waiters
    p = synthetic_run.made(record, stats, found)
    name = next(one for one in hot_names(p) if one["name"] == found["lines"][1]["name"])
    assert (name["cores"], name["lines"]) == (4, 4)
    table = tables.ALL["names"](Run(Path(), {}, [p], []))
    assert table["cores_accessing"][table["name"].index(name["name"])] == 4


def test_the_table_of_transfers_has_their_stall(run) -> None:  # type: ignore[no-untyped-def]
    table = tables.ALL["transfers"](run)
    rows = [row for p in run.points for row in synthetic_run.point("exim", "distro", p.cores)[2]["transfers"]]
    for column, key, unit in (("count", "count", 1), ("stall_us", "stall", synthetic_run.US)):
        assert sum(table[column]) == pytest.approx(sum(row[key] for row in rows) / unit) != 0
    assert len(table["stall_us"]) == len(rows) and sum(tables.ALL["transfers_by_name"](run)["count"]) == sum(table["count"])


def test_pairs_add_up_over_lines(run) -> None:  # type: ignore[no-untyped-def]
    p = run.points[-1]
    assert sum(one["waiting"] for one in point_pairs(p)) == sum(waiting for one in hot_names(p) for *_, waiting in one["pairs"])
    assert (point_pairs(p)[0]["writer"], point_pairs(p)[0]["waiter"]) == ("lock_mount_hash", "lookup_mnt")
    assert any(one["writer"] == "no other core wrote last" for one in point_pairs(p))


# Name and kind of a line; the lock and its form.
LOCKS = """
vfsmount_lock                                  | kernel symbol    | vfsmount_lock | lock
tasklist_lock+0x4                              | kernel symbol    | tasklist_lock | lock
anon_vma.rwsem.owner                           | slab             | anon_vma.rwsem | semaphore
shmem_inode_info.vfs_inode.i_lseek_mutex.count | slab             | shmem_inode_info.vfs_inode.i_lseek_mutex | mutex
dentry.d_lockref.count                         | slab             | dentry.d_lockref | lock and count
super_block.s_umount.count                     | kernel object    | super_block.s_umount | semaphore
runqueues.__lock                               | per-CPU variable | runqueues.__lock | lock
rcu_state.node[1].lock                         | kernel symbol    | rcu_state.node[1].lock | lock
sighand_struct.siglock                         | slab             | sighand_struct.siglock | lock
osq_node.locked                                | per-CPU variable | osq_node | queue of waiters
qnodes[0].mcs.locked                           | per-CPU variable | qnodes[0] | queue of waiters
ticketlock:ticket_lock                         | user symbol      | ticketlock:ticket_lock | lock
ticketlock:mcs_nodes+0x40                      | user symbol      | ticketlock:mcs_nodes | queue of waiters
s:Pool<unsigned long>::lock                    | user symbol      | s:Pool<unsigned long>::lock | lock
s:main()::queue.mutex+0x4                      | stack            | s:main()::queue.mutex | mutex
s:calloc at s.c:51 (worker)[2].lock+0x4        | heap             | s:calloc at s.c:51 (worker)[2].lock | lock
s:new at lock.cc:9 (Table).mutex               | heap             | s:new at lock.cc:9 (Table).mutex | mutex
s:calloc at lock.c:51 (worker)[2].packets      | heap             | none
s:malloc at lock.c:9                           | heap             | none
heap of lock                                   | heap             | none
file_lock.fl_list                              | slab             | none
runqueues.clock_task                           | per-CPU variable | none
task_struct.blocked.sig[0]                     | slab             | none
task_struct.rcu_read_lock_nesting              | slab             | none
node0_receive_buffers                          | kernel symbol    | node0_receive_buffers | lock
unlock_mount                                   | kernel code      | none
_raw_spin_lock                                 | kernel code      | none
super_block.s_remove_count                     | kernel object    | none
struct page._refcount                          | struct page      | none
"""


def test_the_locks_listed_for_patches_are_variables_that_the_patches_define(root: Path) -> None:
    patches = "".join(p.read_text() for p in (root / "kernels" / "patches").glob("*.patch"))
    assert all(f"__SPIN_LOCK_UNLOCKED({name}.lock)" in patches for name in OF_PATCHES)


@pytest.mark.parametrize("row", LOCKS.strip().splitlines(), ids=lambda row: row.split()[0])
def test_locks_are_known_by_their_names(row: str) -> None:
    name, kind, *lock = (cell.strip() for cell in row.split("|"))
    assert lock_of(name, kind) == (None if lock == ["none"] else tuple(lock))


def test_a_lock_is_the_sum_of_its_fields_with_its_waiters() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 48)
    changed = {"anon_vma.rwsem": "anon_vma.rwsem.owner", "inode.i_rwsem of /dev/shm/mainlog": "anon_vma.rwsem.count",
               "files_struct.count": "busy_lock+0x30"}
    for line in found["lines"]:
        line["name"] = changed.get(line["name"], line["name"])
        line["kind"] = "user symbol" if line["name"] == "busy_lock+0x30" else line["kind"]
    arrow = synthetic_run.arrow(found)
    code = [line["name"] == "busy_lock+0x30" for line in found["lines"]]  # a function of the program
    arrow["lines"] = arrow["lines"].append_column("fetch", pa.array(code))
    got = {one["lock"]: one for one in point_locks(Point("p", record, stats, Database({"p": arrow})))}
    assert {"mount_lock", "anon_vma.rwsem", "super_block.s_inode_list_lock"} <= got.keys() and "busy_lock" not in got
    waited = sum(line["stall"] + line["spin"] for line in found["lines"] if line["name"].startswith("anon_vma.rwsem."))
    lock = got["anon_vma.rwsem"]
    assert lock["lines"] == 8 and lock["stall_us"] + lock["spin_us"] == pytest.approx(waited / 1e9)
    assert lock["wait_share"] == pytest.approx(waited / (stats["attribution"]["exposed"] + stats["attribution"]["spin"]))
    assert [f for f, _ in lock["waiters"]] == ["down_write", "anon_vma_clone"]  # 7 of 11 parts, and 4
    assert list(got) == sorted(got, key=lambda name: -got[name]["wait_share"])


def test_shares_of_functions_are_of_all_waiting_for_a_name_and_of_all_writes_to_it() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 48)
    name = found["lines"][0]["name"]
    one = {**next(pair for pair in found["pairs"] if pair["line"] == found["lines"][0]["line"]), "spin": 0}
    found["pairs"] = [{**one, "writer_function": f"w{n}", "waiter_function": f"f{n}", "stall": found["lines"][0]["stall"] // 40, "count": 5}
                      for n in range(40)]
    point = synthetic_run.made(record, stats, found)
    first = next(row for row in hot_names(point) if row["name"] == name)
    for role in ("waiters", "writers"):
        assert len(first[role]) == 10 and [share for _, share in first[role]] == [pytest.approx(1 / 40)] * 10
    lock = next(row for row in point_locks(point) if row["lock"] == name)
    assert [share for _, share in lock["waiters"]] == [pytest.approx(1 / 40)] * 10


def test_tables_are_data_frames(run) -> None:  # type: ignore[no-untyped-def]
    import pyarrow
    from pyarrow import compute

    for name, make in tables.ALL.items():
        table = make(run)
        frame = pyarrow.table(table)
        assert frame.column_names == list(table) and frame.num_rows == len(table["cores"]), name
    lines = pyarrow.table(tables.ALL["lines"](run)).filter(compute.field("cores") == 48).sort_by([("wait_share", "descending")])
    assert lines["name"][0].as_py() == hot_lines(run.points[-1])[0]["name"]


def test_a_latency_beyond_any_window_is_set_aside() -> None:
    from analysis import Point

    counts = [0] * 64
    counts[6], counts[44] = 10, 3
    buckets, beyond = point_latency(Point("p", {}, {"attribution": {"latency_log2_ns": counts}}))
    assert buckets[-1] == (32.0, 64.0, 10) and beyond == 3


def test_requests_by_outcome_are_those_that_the_homes_took(run) -> None:  # type: ignore[no-untyped-def]
    table = tables.ALL["filter_outcomes"](run)
    p = run.points[-1]
    rows = [(node, n) for cores, node, n in zip(table["cores"], table["node"], table["requests"], strict=True) if cores == p.cores]
    for node, controller in enumerate(p.machine["controllers"]):
        assert HT_ASSIST is not None
        deciding = [n for t, n in controller["transitions"].items() if HT_ASSIST.outcome(t) is not None]
        assert sum(n for at, n in rows if at == node) == sum(deciding) > 0
    assert len(rows) == 5 * len(p.machine["controllers"])


def test_csv_holds_what_the_tables_hold(whole: Path) -> None:
    with open(whole / "tables" / "lines.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows[0].keys() == tables.ALL["lines"](load(whole)).keys()
    assert any(r["name"] == "mount_lock" and r["cores"] == "48" for r in rows)


def test_a_folder_without_a_run_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="neither run.json nor a finished point"):
        load(tmp_path)
    with pytest.raises(RunDirectoryError, match=r"test_tables.py: is a file: expected the folder that"):
        load(Path(__file__))
    with pytest.raises(RunDirectoryError, match="no such folder"):
        load(tmp_path / "none")


def test_a_damaged_point_does_not_affect_others(tmp_path: Path) -> None:
    synthetic_run.write_run(tmp_path / "run", cores=(1, 12))
    (tmp_path / "run/points/exim-distro-12/point.json").write_text("{")
    run = load(tmp_path / "run")
    assert [p.cores for p in run.points] == [1]
    assert any("exim-distro-12/point.json cannot be read" in problem for problem in run.problems)


def test_a_point_without_a_number_of_cores_does_not_affect_others(tmp_path: Path) -> None:
    synthetic_run.write_run(tmp_path / "run", cores=(1, 12))
    for name in ("run.json", "points/exim-distro-12/point.json"):
        file = tmp_path / "run" / name
        file.write_text(re.sub(r'"cores": ?12,', '"cores": "twelve",', file.read_text()))
    run = load(tmp_path / "run")
    assert [p.cores for p in run.points] == [1]
    assert 'exim-distro-12/point.json is left out: its cores are "twelve", not a number' in run.problems
    shutil.rmtree(tmp_path / "run/points")
    run = load(tmp_path / "run")
    assert [p.cores for p in run.points] == [1] and any("run.json is left out" in problem for problem in run.problems)


def test_an_unreadable_run_json_is_not_reported_as_missing(tmp_path: Path) -> None:
    synthetic_run.write_run(tmp_path / "run", cores=(1,))
    (tmp_path / "run/run.json").write_text("{")
    problems = load(tmp_path / "run").problems
    assert any("run.json cannot be read" in problem for problem in problems)
    assert not any("is missing" in problem for problem in problems)


def test_a_point_that_is_not_in_run_json_is_left_out_and_reported(tmp_path: Path) -> None:
    synthetic_run.write_run(tmp_path / "run", cores=(1, 12))
    file = tmp_path / "run/run.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps(record | {"points": [p for p in record["points"] if p["cores"] == 1]}))
    run = load(tmp_path / "run")
    assert [p.cores for p in run.points] == [1]
    assert any("points/exim-distro-12 is left out" in problem for problem in run.problems)


def test_run_json_alone_gives_points(tmp_path: Path) -> None:
    synthetic_run.write_run(tmp_path / "run", cores=(1, 12))
    shutil.rmtree(tmp_path / "run/points")
    run = load(tmp_path / "run")
    assert [p.cores for p in run.points] == [1, 12]
    assert any("folders of the points are missing" in problem for problem in run.problems)
    assert [one["name"] for one in hot_names(run.points[1])[:2]] == [synthetic_run.SPUN_ON, "mount_lock"]


def test_the_synthetic_run_satisfies_the_schema(tmp_path: Path) -> None:
    from moscope import jsonio
    if not jsonio.schema_file("moscope.run/1").is_file():
        pytest.skip("moscope.run/1 has no schema here")
    synthetic_run.write_run(tmp_path / "run", cores=(1,))
    document = json.loads((tmp_path / "run/run.json").read_text())
    assert document["schema"] == "moscope.run/1"
    jsonio.validate(document)


@pytest.mark.parametrize("on_line", ["true_sharing", "secondary"])
def test_a_name_is_secondary_if_most_of_its_waiting_is_on_lines_without_another_class(on_line: str) -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 12)
    none = {f"{c}_{part}": 0 for c in CLASSES for part in ("stall", "count")}
    line = {**found["lines"][0], **none, "spin": 0}
    found["lines"] = [{**line, "line": 64, "stall": 300, "secondary_stall": 300, "secondary_count": 9, f"{on_line}_count": 9},
                      {**line, "line": 128, "stall": 100, "true_sharing_stall": 100, "true_sharing_count": 1}]
    assert [one["class"] for one in hot_names(synthetic_run.made(record, stats, found))] == [on_line]


def test_lines_of_one_name_are_added_up() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 48)
    chosen = [line for line in found["lines"] if line["stall"] and line["name"] != synthetic_run.SPUN_ON][2:5]
    for line in chosen:
        line["name"] = "struct page._refcount"
    p = synthetic_run.made(record, stats, found)
    alone = [one for one in hot_lines(p) if one["name"] == "struct page._refcount"]
    together = next(one for one in hot_names(p) if one["name"] == "struct page._refcount")
    assert together["lines"] == 3 == len(alone)
    assert together["stall_share"] == pytest.approx(sum(one["stall_share"] for one in alone))
    assert together["class"] == "false_sharing"
    own = {line["line"] for line in chosen}
    assert sum(waiting for *_, waiting in together["pairs"]) == sum(pair["stall"] + pair["spin"] for pair in found["pairs"]
                                                                    if pair["line"] in own)
    assert sum(share for _, share in split(together)) == pytest.approx(together["wait_share"], rel=2e-3)


def test_two_kinds_of_one_name_are_two_names() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 12)
    one, other = found["lines"][0], found["lines"][1]
    other.update(name=one["name"], kind="kernel symbol")
    got = {x["kind"]: x for x in hot_names(synthetic_run.made(record, stats, found)) if x["name"] == one["name"]}
    assert {kind: x["address"] for kind, x in got.items()} == {"slab": f"{one['line']:#x}", "kernel symbol": f"{other['line']:#x}"}
    assert {kind: x["stall"] for kind, x in got.items()} == {"slab": one["stall"], "kernel symbol": other["stall"]}


def test_a_line_during_several_uses_of_its_page_is_one_line_of_each_name() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 12)
    again = {**found["lines"][0], "use": 99}
    found["lines"] += [again, {**again, "use": 100, "name": "page table", "kind": "page table"}]
    p = synthetic_run.made(record, stats, found)
    got = {one["name"]: one for one in hot_names(p)}
    assert (got["mount_lock"]["lines"], got["page table"]["lines"]) == (1,
                                                                        1) and got["mount_lock"]["stall"] == 2 * got["page table"]["stall"]
    kinds = {one["kind"]: one["lines"] for one in point_kinds(p)}
    assert kinds == {"slab": 1 + 4 * (len(synthetic_run.LINES) - 1), "page table": 1}


def test_a_point_without_tables_is_reported(tmp_path: Path) -> None:
    synthetic_run.write_run(tmp_path / "run", cores=(1, 12))
    (tmp_path / "run/points/exim-distro-12/pairs.parquet").unlink()
    (tmp_path / "run/points/exim-distro-1/lines.parquet").write_text("{")
    run = load(tmp_path / "run")
    assert "exim-distro-12/pairs.parquet is missing" in run.problems
    assert any("exim-distro-1/lines.parquet cannot be read" in problem for problem in run.problems)
    assert [hot_lines(p) for p in run.points] == [[], []]


@pytest.mark.parametrize("name, column", [("lines", "waiters"), ("pairs", "writer"), ("transfers", "to_chip")])
def test_a_table_with_other_columns_is_reported(name: str, column: str, tmp_path: Path) -> None:
    file = synthetic_run.write_run(tmp_path / "run", cores=(1, 12)) / "points" / "exim-distro-12" / f"{name}.parquet"
    parquet.write_table(parquet.read_table(file).drop_columns([column]), file)
    run = load(tmp_path / "run")
    assert any(f"exim-distro-12/{name}.parquet cannot be read" in problem and f'"{column}"' in problem for problem in run.problems)
    assert [bool(hot_lines(p)) for p in run.points] == [True, False]


@pytest.mark.parametrize("name, column", [("lines", "use"), ("pairs", "stall"), ("transfers", "to_chip")])
def test_a_table_with_a_column_of_another_type_is_reported(name: str, column: str, tmp_path: Path) -> None:
    file = synthetic_run.write_run(tmp_path / "run", cores=(1,)) / "points" / "exim-distro-1" / f"{name}.parquet"
    table = parquet.read_table(file)
    parquet.write_table(table.set_column(table.column_names.index(column), column, table[column].cast("string")), file)
    run = load(tmp_path / "run")
    assert run.problems == [f'exim-distro-1/{name}.parquet cannot be read (column "{column}" holds text, not whole numbers)']


@pytest.mark.parametrize("miss", CLASSES)
def test_a_run_that_lacks_a_miss_class_has_zero_misses_of_the_class(miss: str, tmp_path: Path) -> None:
    file = synthetic_run.write_run(tmp_path / "run", cores=(12,)) / "points" / "exim-distro-12" / "lines.parquet"
    parquet.write_table(parquet.read_table(file).drop_columns([f"{miss}_stall", f"{miss}_count"]), file)
    run = load(tmp_path / "run")
    assert not run.problems and {one["classes"][miss] for one in hot_names(run.points[0])} == {0}
    assert run.points[0].database.rows(f"SELECT sum({miss}_stall + {miss}_count) AS sum FROM lines") == [{"sum": 0}]
    assert set(names.waits(file.parent).shared) == {name for name, *_ in synthetic_run.LINES}


@pytest.mark.parametrize("folder", ["kernel=pk/cores=24/name=x", "run[1]", "run?", "*"])
def test_the_path_of_a_run_does_not_change_its_tables(run: Run, folder: str, tmp_path: Path) -> None:
    for beside in ("run1", "run2"):
        synthetic_run.write_run(tmp_path / beside, cores=(1, 48), kernels=("pk",))
    found = load(synthetic_run.write_run(tmp_path / folder, cores=(1, 48)))
    assert not found.problems
    for name in ("lines", "functions", "pairs", "kinds", "transfers_by_name"):
        assert tables.ALL[name](found) == tables.ALL[name](run), name


def _luminance(color: str) -> float:
    parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_what_it_is_written_on(theme: int) -> None:
    from analysis import style
    pairs = [(cause, style.role_on(cause), 4.5) for cause in (*style.causes(), "heat")]
    pairs += [("page", "ink", 7.0), ("page", "muted", 4.5)]
    for ground, text, least in pairs:
        a, b = sorted(_luminance(style.PALETTE[role][theme]) for role in (ground, text))
        assert (b + 0.05) / (a + 0.05) >= least, (ground, text)


def test_no_colour_has_two_roles() -> None:
    from analysis import style
    lights = [light for light, _ in style.PALETTE.values()]
    assert len(set(lights)) == len(lights)
