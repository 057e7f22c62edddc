# SPDX-License-Identifier: BSD-3-Clause
"""The parts into which a what-if run divides a line, what a name covers, and the gain with its error."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import synthetic_run

from analysis.database import connect
from analysis.maps.line_map import Area, Byte, LineMap
from analysis.whatif import lines
from moscope.errors import UserError
from moscope.runs.statistics.confidence import COUNT_ERROR
from moscope.runs.whatif import gain, main
from moscope.schema.constants import LINE


def line(*areas: Area, waited: tuple[int, ...] = ()) -> LineMap:
    found = LineMap({"waiting": 0}, 0, [Byte(n) for n in range(LINE)], list(areas))
    for at in waited:
        found.bytes[at].transactions = 1
    return found


def area(first: int, size: int, type_: str = "long") -> Area:
    return Area(first, size, f"field{first}", "", "", type_)


def test_each_field_is_a_part() -> None:
    found = lines.parts(line(area(0, 8), area(8, 8), area(16, 48)))
    assert found == [0] * 8 + [1] * 8 + [2] * 48


def test_a_long_field_is_divided_where_it_is_waited_for() -> None:
    assert lines.parts(line(area(0, 64), waited=(0, 8, 40))) == [0] * 8 + [1] * 32 + [2] * 24


def test_a_word_is_not_divided_but_memory_without_a_type_is() -> None:
    assert lines.parts(line(area(0, 8), area(8, 56), waited=(0, 4))) == [0] * 8 + [1] * 56
    assert lines.parts(line(area(0, 64, ""), waited=(4,))) == [0] * 4 + [1] * 60


def test_neighbours_that_the_same_code_of_the_same_cores_uses_alike_stay_together() -> None:
    one = line(*(area(8 * n, 8) for n in range(8)))
    some, writes = {0, 1, 2, 3}, "writes"
    for n, (users, cores) in enumerate((
            ({("work", "take", writes)}, some),  # a lock whose function is inlined where the data is used
            ({("work", writes)}, some), ({("work", writes)}, {0, 1, 3}),  # all cores use both; the sample lacks one
            ({("work", writes)}, {0}),  # one core's own
            ({("produce", writes), ("consume", "reads")}, {0, 1}), ({("produce", "reads"), ("consume", writes)}, {0, 1}))):
        one.bytes[8 * n].users, one.bytes[8 * n].cores = users, cores
    assert [lines.parts(one)[8 * n] for n in range(6)] == [0, 1, 1, 2, 3, 4]


def named(name: str, first: int, size: int, type_: str = "long", writers: tuple[int, ...] = (), kind: str = "user symbol") -> Area:
    return Area(first, size, name, kind, "", type_, transactions=bool(writers), writers=set(writers))


def first_bytes(*areas: Area, waited: tuple[int, ...] = ()) -> list[int]:
    found = lines.parts(line(*areas, waited=waited))
    return [at for at in range(LINE) if not at or found[at] != found[at - 1]]


@pytest.mark.parametrize("field", [named("p:pool.mutex", 0, 40, "pthread_mutex_t"), named("p:pool.guard", 0, 40, "std::shared_mutex")])
def test_a_lock_is_not_divided(field: Area) -> None:
    assert first_bytes(field, named("p:pool.count", 40, 24), waited=(0, 4, 8, 16, 40)) == [0, 40]


def test_a_lock_of_the_kernel_is_not_divided_into_its_fields() -> None:
    fields = [named(f"inode.{name}", 8 * n, 8, kind="slab") for n, name in enumerate(("i_rwsem.count", "i_rwsem.owner", "i_size"))]
    assert first_bytes(*fields, named("inode.i_lock", 24, 40, kind="slab"), waited=(0, 8, 16, 24)) == [0, 16, 24]


def test_an_array_of_structures_that_the_same_cores_write_is_not_divided() -> None:
    slots = [named(f"p:ring (Ring<Msg, 256>).slots[{n // 2}].{'body' if n % 2 else 'seq'}", 8 + 8 * n, 8, writers=(0,)) for n in range(7)]
    assert first_bytes(named("p:ring (Ring<Msg, 256>).tail", 0, 8, writers=(1,)), *slots) == [0, 8]


def test_an_array_of_structures_is_divided_into_the_elements_that_different_cores_write() -> None:
    fields = [named(f"p:stats[{n // 2}].{'bytes' if n % 2 else 'packets'}", 8 * n, 8, writers=(n // 2,)) for n in range(8)]
    assert first_bytes(*fields) == [0, 16, 32, 48]


def test_an_element_is_divided_into_the_fields_that_different_cores_write() -> None:
    fields = [named(f"p:queues[{n // 2}].{'tail' if n % 2 else 'head'}", 8 * n, 8, writers=(n % 2 + 2 * (n // 4),)) for n in range(8)]
    assert first_bytes(*fields) == list(range(0, LINE, 8))


@pytest.mark.parametrize("miss", ["true_sharing", "false_sharing"])
def test_an_element_with_one_used_field_and_a_gap_is_not_divided(miss: str) -> None:
    used = [named(f"p:bank[{n}].guard", 24 * n, 4, writers=(n,)) for n in range(2)]
    hit = [named(f"p:bank[{n}]{field}", 24 * n + first, size) for n in range(2)
           for field, first, size in (("+0x4", 4, 4), (".balance", 8, 8), (".ops", 16, 8))]
    one = line(*sorted([*used, *hit], key=lambda area: area.first), named("data of p", 48, 16))
    one.line[f"{miss}_stall"] = 9
    found = lines.parts(one)
    assert [at for at in range(1, LINE) if found[at] != found[at - 1]] == [24, 48]


def test_unused_elements_of_an_array_go_with_the_one_before() -> None:
    gap = [named(f"p:pool.gap[{n}]", 8 + n, 1, "char") for n in range(16)]
    used = [named(f"p:pool.slots[{n}]", 24 + 8 * n, 8, writers=(n,) if n < 2 else ()) for n in range(5)]
    assert first_bytes(named("p:pool.count", 0, 8), *gap, *used) == [0, 8, 24, 32]


@pytest.mark.parametrize(("name", "whole"), [
    ("packed:stats[2].packets", "packed:stats"), ("account.balance", "account"), ("_end+0x40", "_end"), ("page table", "page table"),
    ("server::workers[1].handled_", "server::workers"), ("p:calloc at stats.c:51", "p:calloc at stats.c:51"),
    ("p:new[] at pool.cc:7 (Pool)[2].head", "p:new[] at pool.cc:7 (Pool)"),
    ("p:new at a.cc:3 (Map<(anonymous namespace)::Key[2], int>)[2].head",
     "p:new at a.cc:3 (Map<(anonymous namespace)::Key[2], int>)"), ("libc.so.6:main_arena", "libc.so.6:main_arena"),
    ("python3.11:table[1].size", "python3.11:table"), ("libstdc++.so.6:std::cout+0x8", "libstdc++.so.6:std::cout")])
def test_parts_of_one_object_count_together(name: str, whole: str) -> None:
    assert lines.whole(name) == whole


def test_names_of_objects_may_have_dots_if_fields_are_known() -> None:
    rows = [{"name": name, "kind": "user symbol", "waiting": 1, "known": field is not None, "field": field} for name, field in (
        ("go:main.counters[1].n", "[1].n"), ("go:main.counters[900].n", None), ("go:main.total", ""), ("go:main.names+0x8", "+0x8"),
        ("heap of python3.13", "+0x40"), ("go:calloc at x.c:5 (pool).head", "[300].head"), ("p:stats[2].packets", None))]
    point: Any = SimpleNamespace(name="p", database=SimpleNamespace(rows=lambda *_: rows))
    assert {one.name: one.waiting for one in lines.subjects(point)} == {
        "go:main.counters": 2, "go:main.total": 1, "go:main.names": 1, "heap of python3.13": 1, "go:calloc at x.c:5 (pool)": 1,
        "p:stats": 1}


def test_variables_of_one_file_are_separate_objects() -> None:
    names = ("libc.so.6:main_arena", "libc.so.6:environ", "libcrypt.so.1:table[0]", "libcrypt.so.1:table[1]")
    rows = [{"name": name, "kind": "user symbol", "waiting": 1, "known": False} for name in names]
    point: Any = SimpleNamespace(name="p", database=SimpleNamespace(rows=lambda *_: rows))
    assert [(one.name, one.waiting) for one in lines.subjects(point)] == [("libcrypt.so.1:table", 2), ("libc.so.6:environ", 1),
                                                                         ("libc.so.6:main_arena", 1)]
    table = lines.find(point, "libcrypt.so.1:table")
    assert table and table.names == names[2:]
    with_parts = [{"name": name, "kind": "user symbol", "waiting": 1} for name in ("p:pool", "p:pool[1]", "p:pool+0x8", "p:pools")]
    point.database.rows = lambda *_: with_parts
    pool = lines.find(point, "p:pool")
    assert pool and pool.names == ("p:pool", "p:pool[1]", "p:pool+0x8"), "a name that lines have as a whole has its parts, too"
    point.database.rows = lambda *_: rows
    assert lines.find(point, "libc") is None and lines.find(point, "libc.so") is None


def test_a_name_without_its_program_is_found_if_only_one_program_has_it() -> None:
    names = ("falseshare:packed[3]", "falseshare:packed[4]", "falseshare:total", "libc.so.6:total", "a:ns::Pool<long>::size")
    rows = [{"name": name, "kind": "user symbol", "waiting": 1} for name in names]
    point: Any = SimpleNamespace(name="p", database=SimpleNamespace(rows=lambda query, *_: rows if query == lines.NAMES else []))
    packed, size = lines.find(point, "packed"), lines.find(point, "ns::Pool<long>::size")
    assert packed and packed.name == "falseshare:packed" and packed.names == names[:2]
    assert size and size.names == names[4:]
    assert lines.find(point, "total") is None and lines.find(point, "pack") is None


def beside_the_mutex(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A point with two lines `p:pool.mutex`, of which one has the field `config`."""
    names = [{"name": "p:pool.mutex", "kind": "user symbol", "waiting": 9}]
    fields = [{"name": f"p:pool.{field}", "of_line": "p:pool.mutex", "waiting": waiting}
              for field, waiting in (("mutex", 6), ("config.size", 2), ("config.rate", 1))]
    rows = {lines.NAMES: names, lines.FIELDS: fields, lines.LINES: [{"line": n, **names[0]} for n in (64, 128)]}
    maps = [line(named("p:pool.mutex", 0, 40), named("p:pool.config.size", 40, 8), named("p:pool.config.rate", 48, 8)), line()]
    for n, one in enumerate(maps, 1):
        one.line["line"] = 64 * n
    monkeypatch.setattr(lines, "maps_of", lambda *_: maps)
    return SimpleNamespace(name="p", database=SimpleNamespace(rows=lambda query, *_: rows[query]))


def test_a_field_beside_the_one_that_names_the_line_is_moved_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    point = beside_the_mutex(monkeypatch)
    config, size = lines.find(point, "p:pool.config"), lines.find(point, "p:pool.config.size")
    assert config == lines.Subject("p:pool.config", ("p:pool.mutex",), 3, ("p:pool.config.size", "p:pool.config.rate"))
    assert lines.treated(point, config, lines.PADDED) == [{"line": 64, "groups": [0] * 40 + [1] * 16 + [0] * 8}]
    assert size and lines.treated(point, size, lines.PADDED) == [{"line": 64, "groups": [0] * 40 + [1] * 8 + [0] * 16}]
    assert lines.find(point, "p:pool.con") is None


def test_a_field_that_names_the_line_stands_for_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lines.find(beside_the_mutex(monkeypatch), "p:pool.mutex")
    assert found and not found.fields and found.waiting == 9


def test_a_field_alone_is_only_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    point = beside_the_mutex(monkeypatch)
    with pytest.raises(UserError, match=r"^--as: free: p:pool.config is a field of p:pool.mutex, .*: expected padded"):
        main._experiments(main.Asked(Path(), "p:pool.config", "free", None, None), point)
    (found,) = main._experiments(main.Asked(Path(), "p:pool.config", None, None, None), point)
    assert (found.how, found.groups) == ("padded", 2)


def test_a_line_made_local_goes_to_the_chip_that_waits_most_or_to_the_lowest_of_equal_ones() -> None:
    waits = [(1, 2, 5), (1, 7, 9), (2, 3, 4), (2, 0, 4), (3, 0, 1)]  # line, chip, stall
    transfers = pa.table({"point": ["p"] * 5, "line": [w[0] for w in waits], "stall": [w[2] for w in waits],
                          "to_chip": pa.array([w[1] for w in waits], pa.uint8())})  # as the engine writes it
    found = connect().register("transfers", transfers).execute(lines.CHIPS, ["p"]).fetchall()
    assert {line: chip for line, chip, _ in found} == {1: 7, 2: 0, 3: 0}


def test_memory_of_a_program_is_made_local_by_page_and_the_kernels_by_line() -> None:
    row = {"line": 4096, "name": "heap of p", "kind": "heap", "va": 0x7000, "address_space": 0x1000}
    waits = {"line": 4096, "chip": 3, "stall": 9}
    assert lines._local(row, waits) == {"line": 4096, "va": 0x7000, "address_space": 0x1000, "node": 3, "stall": 9}
    assert lines._local(row | {"kind": "slab"}, waits) == {"line": 4096, "groups": [0] * LINE, "node": 3}
    assert "groups" in lines._local(row | {"va": None}, waits), "a run of another version"
    assert "groups" in lines._local(row | {"va": 0}, waits), "where the program has it is not known"


def test_lines_of_a_run_without_virtual_addresses_are_made_local_by_line() -> None:
    p = synthetic_run.made(*synthetic_run.point("exim", "stock", 4))
    (made,) = lines.treated(p, lines.Subject("mount_lock", ("mount_lock",), 1), lines.LOCAL)
    assert made["groups"] == [0] * LINE


def point(*ops: int, instructions: int = 5) -> dict[str, object]:
    return {"ops": sum(ops), "windows": [{"ops": n, "instructions": instructions, "ticks": 10**12} for n in ops]}


def test_a_gain_is_a_fraction_of_the_first_rate_with_the_errors_of_both() -> None:
    before, after = gain.rate(point(10, 10), "operations"), gain.rate(point(14, 16), "operations")
    found = gain.gain(before, after)
    assert found is not None and found.value == pytest.approx(0.5)
    assert found.error is not None and after.stderr is not None
    assert before.stderr == pytest.approx(before.value * COUNT_ERROR / 20) and after.stderr == pytest.approx(1000)
    assert found.error == pytest.approx(math.hypot(before.stderr * 1.5, after.stderr) / before.value)


def test_a_rate_of_instructions_has_no_counting_error() -> None:
    assert gain.rate(point(0, 0), "instructions").stderr == 0


def test_a_point_whose_windows_are_parts_of_its_work_gives_a_gain_without_an_error() -> None:
    known, unknown = point(10, 12), point(14, 16) | {"stderr_per_s": None}
    for one, other in ((known, unknown), (unknown, known)):
        found = gain.gain(gain.rate(one, "operations"), gain.rate(other, "operations"))
        assert found is not None and found.error is None
    assert gain.rate(unknown, "instructions").document() == {"per_s": 5000, "stderr_per_s": None}


def test_a_single_window_has_no_error_and_nothing_counted_no_gain() -> None:
    found = gain.gain(gain.rate(point(10), "operations"), gain.rate(point(12), "operations"))
    assert found == gain.Gain(pytest.approx(0.2), None)
    assert gain.gain(gain.rate(point(0), "operations"), gain.rate(point(12), "operations")) is None
    assert gain.measure_of(point(0)) == "instructions"
