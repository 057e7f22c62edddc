# SPDX-License-Identifier: BSD-3-Clause
"""Exports say what the run recorded; each is read back."""

import csv
import gzip
import io
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from analysis import Point, RunDirectoryError, exports
from analysis.database import Database
from analysis.described import DEVICE, MISS_CLASS, SEGMENT
from analysis.exports import c2c
from analysis.exports.base import Frame, frames
from moscope import paths

NS, US = 10**6, 10**9
LINE = 0x1000
FAR, NEAR, CLEAN, MEMORY, OWN = ("Private", 7, 1), ("Private", 1, 0), ("Last", 1, 1), ("Keeper", 0, 0), ("own", None, None)


def access(core: int, issued: int, latency: int, kind: str = "load", at: int = 0, supplier: Any = FAR, writer: int | None = 7,
           **more: Any) -> dict[str, Any]:
    """A transaction; times in ns."""
    return {"core": core, "issued": issued * NS, "latency": latency * NS, "exposed": latency * NS, "kind": kind, "line": LINE,
            "va": LINE + at, "pc": 0x400000 + at, "name": "server:x", "class": "true_sharing", "function": "server:add", "source": "a.c:3",
            "inlined": None,
            "process": "server", "writer": writer, "writer_function": "server:add", "writer_source": "a.c:3", "supplier": supplier[0],
            "supplier_number": supplier[1], "supplier_chip": supplier[2], "hops": 1, "buffer_wait": False, "walk": False, "user": True,
            "secondary_miss": False,
            **dict.fromkeys(SEGMENT.names, 0), "link": latency * NS, **more}


ACCESSES = [access(0, 0, 100), access(0, 50, 100, "rmw", 8, NEAR), access(0, 200, 10, supplier=CLEAN, writer=None),
            access(1, 20, 40, "store"), access(7, 30, 10, supplier=MEMORY, writer=None), access(0, 300, 5, supplier=OWN),
            access(0, 301, 4, supplier=OWN, secondary_miss=True),
            {**access(0, 310, 0), "latency": None, "buffer_wait": True}, access(1, 400, 9, "fetch"), access(1, 410, 9, walk=True)]


@pytest.fixture
def point(tmp_path: Path) -> Point:
    """Two pairs, one of a function that is inlined twice, and recorded transactions on two chips of six cores."""
    pair = {"line": LINE, "use": 1, "writer": 1, "writer_function": "server:add", "writer_source": None, "writer_inlined": None,
            "address_space": 0, "offset": 0, "accessed": None}
    pairs = [{**pair, "waiter": 2, "waiter_function": "server:run", "waiter_source": "a.c:3",
              "waiter_inlined": "get called at b.c:2; add called at a.c:9", "kernel": False, "stall": 7 * US, "spin": 0, "count": 5},
             {**pair, "waiter": 3, "waiter_function": "schedule", "waiter_source": None, "waiter_inlined": None, "kernel": True,
              "stall": US, "spin": 2 * US, "count": 1}]
    classes = {f"{c}_{part}": 0 for c in MISS_CLASS.names for part in ("stall", "count")}
    line = {"line": LINE, "use": 1, "name": "server:x; y", "kind": "user symbol", "object": None, "field": None, "class": "true_sharing",
            "stall": 8 * US, "spin": 2 * US, "transfers": 6, "waiters": 3, **classes}
    suppliers = [{"line": LINE, "use": 1, "supplier": kind, "supplier_role": role, "supplier_per": per, "from_chip": 0, "to_chip": 0,
                  "count": 1, "stall": 1} for kind, role, per in (("Private", "cache", "core"), ("Last", "cache", "chip"),
                                                                  ("Keeper", "home", "node"))]
    for name, rows in (("lines", [line]), ("pairs", pairs), ("transfers", suppliers), ("transactions", ACCESSES)):
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / f"{name}.parquet")
    return Point("p", {"cores": 8, "workload": "server"}, {}, Database({"p": tmp_path}), config={"cores_per_chip": 6, "core_hz": 2 * 10**9})


def exported(point: Point, to: str, **part: int) -> dict[str, bytes]:
    return exports.find(to).files(point, exports.Slice(**part))


def test_a_stack_ends_at_the_innermost_inlined_function() -> None:
    assert frames("run", "a.c:3", ["get called at b.c:2", "add called at a.c:9"]) == (
        Frame("run", "a.c", 9), Frame("add", "b.c", 2), Frame("get", "a.c", 3))
    assert frames("schedule", None, []) == (Frame("schedule"),)


def test_collapsed_stacks_have_the_waiting_of_every_line(point: Point) -> None:
    (text,) = exported(point, "collapsed").values()
    found = [re.fullmatch(r"(.+) (\d+)", one) for one in text.decode().splitlines()]
    assert {one[1]: int(one[2]) for one in found if one} == {"server:run;add;get;server:x, y": 7000, "schedule;server:x, y": 3000}


def read(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message of protocol buffers."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size


def test_a_profile_has_all_waiting_and_its_strings_begin_with_the_empty_one(point: Point) -> None:
    fields = list(read(gzip.decompress(exported(point, "pprof")["pprof.pb.gz"])))
    strings = [value for number, value in fields if number == 6]
    assert strings[0] == b"" and {b"stall", b"spin", b"server:run", b"get", b"[server:x; y]", b"a.c"} <= set(strings)
    assert Counter(number for number, _ in fields if number in (1, 2, 4, 5)) == {1: 3, 2: 2, 4: 3, 5: 5}
    samples = [dict(read(value)) for number, value in fields if number == 2 and isinstance(value, bytes)]
    assert [list(sample[2]) for sample in samples if isinstance(sample[2], bytes)] == [  # packed varints
        [*b"\xd8\x36", 0, 5], [*b"\xe8\x07", *b"\xd0\x0f", 1]], "7000 ns, 5 transactions; 1000 and 2000 ns, 1"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("go") is None, reason="no Go, whose pprof reads the profile")
def test_pprof_reads_the_profile(point: Point, tmp_path: Path) -> None:
    (tmp_path / "p.pb.gz").write_bytes(exported(point, "pprof")["pprof.pb.gz"])
    got = subprocess.run(["go", "tool", "pprof", "-traces", "-lines", tmp_path / "p.pb.gz"], capture_output=True, text=True, check=True)
    stack = r"7us +\[server:x; y\]\n +get a\.c:3 \(inline\)\n +add b\.c:2 \(inline\)\n +server:run a\.c:9\n"
    assert re.search(stack, got.stdout), got.stdout


def test_a_trace_has_every_transaction_and_no_two_slices_of_a_thread_overlap(point: Point) -> None:
    document = json.loads(exported(point, "perfetto")["perfetto.json"])
    slices = [one for one in document["traceEvents"] if one["ph"] == "X"]
    assert len(slices) == sum(not one["buffer_wait"] for one in ACCESSES)
    assert (slices[0]["ts"], slices[0]["dur"], slices[0]["pid"], slices[0]["name"]) == (0, 0.1, 0, "server:add")
    assert slices[0]["args"]["source"] == "a.c:3" and slices[0]["args"]["link_ns"] == 100 and slices[0]["cat"] == "true_sharing"
    threads: dict[tuple[int, int], float] = {}
    for one in slices:
        key = one["pid"], one["tid"]
        assert one["ts"] >= threads.get(key, 0)
        threads[key] = one["ts"] + one["dur"]
    titles = {(one["pid"], one["tid"]): one["args"]["name"] for one in document["traceEvents"] if one["name"] == "thread_name"}
    assert set(titles) == set(threads) and set(titles.values()) == {"core 0", "core 0, overlapping 1", "core 1", "core 7"}
    counts = [one["args"]["transactions"] for one in document["traceEvents"] if one["ph"] == "C" and one["pid"] == 0]
    assert max(counts) == 3 and counts[-1] == 0 and min(counts) >= 0


def test_a_trace_can_be_cut(point: Point) -> None:
    slices = [one for one in json.loads(exported(point, "perfetto", begin=100 * NS, length=200 * NS)["perfetto.json"])["traceEvents"]
              if one["ph"] == "X"]
    assert [(one["ts"], one["pid"]) for one in slices] == [(0.1, 0)]
    with pytest.raises(RunDirectoryError, match="has no transactions in that time"):
        exported(point, "perfetto", begin=US)


def test_a_trace_has_the_load_of_each_link_that_carries_something(point: Point, tmp_path: Path) -> None:
    rows = [(0, 100, 0, 1, 800), (0, 100, 1, 0, 0), (100, 100, 0, 1, 0), (100, 100, 1, 0, 0), (900, 100, 1, 0, 64)]
    parquet.write_table(pa.Table.from_pylist([{"begin": begin * NS, "length": length * NS, "from": one, "to": other, "bytes": moved,
                                               "busy": 0} for begin, length, one, other, moved in rows]), tmp_path / "links.parquet")
    events = json.loads(exported(point, "perfetto")["perfetto.json"])["traceEvents"]
    counters = [(one["name"], one["ts"], one["args"]["GB/s"]) for one in events if one["ph"] == "C" and one["name"].startswith("link")]
    assert counters == [("link 0 to 1", 0, 8.0), ("link 0 to 1", 0.1, 0.0)]


def test_the_tables_of_c2c_count_each_load_and_store_once(point: Point) -> None:
    made = exported(point, "c2c")
    (line,) = csv.DictReader(io.StringIO(made["c2c-lines.csv"].decode()))
    assert (line["Total records"], line["Total loads"], line["Total stores"], line["cpu cnt"]) == ("8", "6", "2", "3")
    assert (line["LLC Load Hitm LclHitm"], line["LLC Load Hitm RmtHitm"], line["Hitm %"]) == ("1", "1", "100.00%")
    assert (line["RMT Load Hit RmtHit"], line["Load Dram Rmt"], line["Load Dram Lcl"], line["Core Load Hit L2"]) == ("1", "1", "0", "1")
    assert line["Core Load Hit FB"] == "1"
    offsets = list(csv.DictReader(io.StringIO(made["c2c-offsets.csv"].decode())))
    assert {(one["Offset"], one["Total records"], one["Source:Line"], one["Node{cpus}"]) for one in offsets} == {
        ("0x0", "6", "a.c:3", "0{0,1} 1{7}"), ("0x8", "2", "a.c:3", "0{0}")}
    assert {one["Offset"]: one["cycles lcl hitm"] for one in offsets} == {"0x0": "", "0x8": "200"}, "100 ns at 2 GHz"


def test_a_load_of_an_unwritten_line_from_another_cache_is_a_hit_and_not_a_hitm(point: Point, tmp_path: Path) -> None:
    rows = [access(0, 0, 100, supplier=FAR, writer=None), access(0, 200, 100, supplier=NEAR, writer=None)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "transactions.parquet")
    (line,) = csv.DictReader(io.StringIO(exported(point, "c2c")["c2c-lines.csv"].decode()))
    assert (line["RMT Load Hit RmtHit"], line["LLC Load Hit LlcHit"], line["LLC Load Hitm Total"]) == ("1", "1", "0")


def test_a_line_with_several_names_is_listed_under_that_of_its_first_transaction(point: Point, tmp_path: Path) -> None:
    rows = [{**access(7, 50, 10), "name": "a"}, {**access(1, 10, 10), "name": "z"}, {**access(0, 90, 10), "name": "b"}]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "transactions.parquet")
    (line,) = csv.DictReader(io.StringIO(exported(point, "c2c")["c2c-lines.csv"].decode()))
    assert line["Name"] == "z"


def test_a_line_that_a_device_wrote_last_is_no_hitm(point: Point, tmp_path: Path) -> None:
    parquet.write_table(pa.Table.from_pylist([{**one, "writer": DEVICE} for one in ACCESSES]), tmp_path / "transactions.parquet")
    (line,) = csv.DictReader(io.StringIO(exported(point, "c2c")["c2c-lines.csv"].decode()))
    assert line["LLC Load Hitm Total"] == "0" and line["Total records"] == "8"


def test_without_the_runs_machine_a_trace_is_of_cores_and_c2c_is_refused(point: Point) -> None:
    point.config = {}
    titles = [one["args"]["name"] for one in json.loads(exported(point, "perfetto")["perfetto.json"])["traceEvents"]
              if one["name"] == "process_name"]
    assert titles == ["cores"]
    with pytest.raises(RunDirectoryError, match="p: run.json, which gives the chip of each core, is missing: expected"):
        exported(point, "c2c")


def test_the_share_of_a_line_is_of_the_hitms_of_all_lines(point: Point, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of those for which the table has no room."""
    others = [{**access(0, 500 + n, 5), "line": LINE + 64 * (n + 1)} for n in range(6)]
    parquet.write_table(pa.Table.from_pylist(ACCESSES + others), tmp_path / "transactions.parquet")
    monkeypatch.setattr(c2c, "LINES", 1)
    (line,) = csv.DictReader(io.StringIO(exported(point, "c2c")["c2c-lines.csv"].decode()))
    assert line["Cacheline"] == f"{LINE:#x}" and line["Hitm %"] == "25.00%"
    assert {row["line"] for row in c2c.records(point, "line, pc", "line, pc")} == {LINE}, "memory does not grow with the other lines"


def test_the_documents_say_how_many_lines_the_tables_of_c2c_have() -> None:
    (row,) = (line for line in (paths.root() / "docs/analysis.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `c2c` |"))
    assert f"at most {c2c.LINES} lines, those with the most HITMs" in row


@pytest.mark.parametrize("to", ["c2c", "perfetto"])
def test_a_run_without_recorded_transactions_is_refused(point: Point, tmp_path: Path, to: str) -> None:
    (tmp_path / "transactions.parquet").unlink()
    with pytest.raises(RunDirectoryError, match="p: has no recorded transactions: expected a run with --detail full"):
        exported(point, to)


def test_a_trace_of_windows_without_a_transaction_is_refused(point: Point, tmp_path: Path) -> None:
    file = tmp_path / "transactions.parquet"
    parquet.write_table(parquet.read_table(file).slice(0, 0), file)
    with pytest.raises(RunDirectoryError, match="p: has no transaction in its windows: expected a point with misses"):
        exported(point, "perfetto")


@pytest.mark.parametrize("to", ["collapsed", "pprof"])
def test_a_run_without_tables_of_lines_is_refused(to: str) -> None:
    """As of another engine: an empty profile would say that nothing waits."""
    with pytest.raises(RunDirectoryError, match="p: has no tables of lines: expected a run of the embedded engine"):
        exported(Point("p", {"cores": 8, "workload": "server"}), to)


def test_a_damaged_transactions_file_is_not_reported_as_missing(point: Point, tmp_path: Path) -> None:
    (tmp_path / "transactions.parquet").write_bytes(b"PAR1")
    with pytest.raises(RunDirectoryError, match="transactions.parquet: cannot be read .*: expected the file that the run wrote"):
        exported(point, "c2c")


def test_every_format_is_in_the_commands_help_and_completion() -> None:
    from moscope import completion
    from moscope.commands import export

    assert exports.names() == sorted(completion.exports()) == ["c2c", "collapsed", "perfetto", "pprof"]
    said = Path(export.__file__).read_text(encoding="utf-8")
    assert all(re.search(rf"\b{name} \(|or {name}", said) for name in exports.names())


@pytest.mark.parametrize("column, values, said", [
    ("walk", "text", 'column "walk" holds text, not true or false'), ("core", "text", 'column "core" holds text, not whole numbers'),
    ("kind", 5, 'column "kind" holds whole numbers, not text'), ("issued", 0.5, 'column "issued" holds DOUBLE, not whole numbers'),
    ("name", [5], 'column "name" holds lists of whole numbers, not text')])
@pytest.mark.parametrize("to", ["c2c", "perfetto"])
def test_a_column_of_another_type_is_refused(point: Point, tmp_path: Path, to: str, column: str, values: object, said: str) -> None:
    parquet.write_table(pa.Table.from_pylist([{**one, column: values} for one in ACCESSES]), tmp_path / "transactions.parquet")
    with pytest.raises(RunDirectoryError, match=rf"transactions.parquet: cannot be read \({said}\): expected the file that the run wrote"):
        exported(point, to)


@pytest.mark.parametrize("to", ["c2c", "perfetto"])
def test_transactions_with_other_columns_are_refused(point: Point, tmp_path: Path, to: str) -> None:
    parquet.write_table(pa.table({"core": [1]}), tmp_path / "transactions.parquet")
    with pytest.raises(RunDirectoryError, match=r"transactions.parquet: cannot be used \(.*\): expected a run of this version"):
        exported(point, to)
