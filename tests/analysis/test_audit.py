# SPDX-License-Identifier: BSD-3-Clause
"""The audit of miss classes accepts a log that is consistent, and finds each contradiction by the rule that it breaks."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from analysis import audit
from analysis.described import SEGMENT
from analysis.run_directory import Point

Row = dict[str, Any]


def access(core: int, issued: int, latency: int, miss: str, kind: str = "load", **more: Any) -> Row:
    """A transaction of a core of chip 0 that core 9's cache on chip 1 answers over a link. Loads and stores are of different bytes."""
    segments = {**dict.fromkeys(SEGMENT.names, 0), "link": latency}
    return {"core": core, "issued": issued, "latency": latency, "exposed": latency, "line": 0x40, "va": 0x1040 + 8 * (kind != "load"),
            "kind": kind, "class": miss, "supplier": "L1Cache", "supplier_number": 9, "supplier_chip": 1, "hops": 2, "probes": 1,
            "writer": None, "buffer_wait": False, "secondary_miss": miss == "secondary", "name": "x", "function": "f", **segments, **more}


def own(core: int, issued: int, latency: int, miss: str, kind: str = "load", segment: str = "cache", **more: Any) -> Row:
    """An access for which nothing was sent: a lower cache of the core had the line."""
    return access(core, issued, latency, miss, kind, **{"supplier": "L2Cache", "supplier_number": None, "supplier_chip": None, "hops": 0,
                                                       "probes": 0, "link": 0, segment: latency, **more})


CONSISTENT = [
    access(0, 0, 10, "cold"), access(1, 20, 10, "cold", "store"), access(0, 40, 10, "true_sharing", writer=1),
    own(0, 60, 10, "upgrade", "store", "link", hops=4), own(0, 100, 5, "capacity", writer=0),
    access(0, 110, 5, "upgrade", "rmw", writer=1),
    access(1, 120, 30, "false_sharing", writer=0), own(1, 130, 20, "secondary", segment="queue", writer=1),
    own(1, 145, 7, "secondary", "store", supplier="own", queue=5, cache=2, writer=1),
    access(1, 200, 10, "capacity", writer=1), own(1, 215, 1, "upgrade", "store", supplier="own", writer=1),
    access(1, 216, 4, "capacity", "flush", supplier="own", supplier_chip=None, writer=1),
    {**own(1, 220, 0, "none"), "buffer_wait": True, "latency": None}]
BROKEN = {
    "latency is the sum of its segments": access(2, 300, 10, "cold", link=9),
    "a transaction takes time, and stalls its core no longer than that": access(2, 300, 10, "cold", exposed=11),
    "a transaction spends time on links if and only if it crosses links": access(2, 300, 10, "cold", supplier_chip=0, hops=0),
    "only a transaction with a supplier, or an upgrade, crosses links": own(2, 300, 10, "cold", hops=1, cache=8, link=2),
    "a line from another chip crosses a link": access(2, 300, 10, "cold", hops=0, link=0, responder=10),
    "a transaction that reads DRAM has a supplier": own(2, 300, 10, "cold", cache=1, dram=9),
    "an access that waits for an older access of its core to the same line counts this time as `queue`":
        access(0, 110, 200, "true_sharing", writer=1),
    "cold: the core has not had the line": access(0, 300, 10, "cold"),
    "upgrade: the access writes": own(1, 300, 10, "upgrade", writer=1),
    "upgrade: the line does not come from memory": access(1, 300, 10, "upgrade", "store", link=2, dram=8, writer=1),
    "upgrade: no other core has written the line since the core had it": access(0, 300, 10, "upgrade", "store", writer=1),
    "sharing: the last writer is another core or a device": access(0, 300, 10, "true_sharing", writer=0),
    "sharing: another core has had the line since, or a device has written it": access(1, 300, 10, "true_sharing", writer=0),
    "false sharing: no other core has written the byte that is accessed": access(0, 300, 10, "false_sharing", "store", writer=1),
    "capacity: no other core has written the line since the core had it": access(0, 300, 10, "capacity", writer=1),
    "cold, capacity, sharing: a controller or a lower cache of the core sends the line":
        own(1, 300, 10, "capacity", "store", supplier="own", writer=1),
    "secondary: an older access or a prefetch of the core brings the line":
        own(1, 300, 10, "secondary", segment="queue", writer=1),
    "secondary: no controller sends the line for it; its latency is waiting, plus the cache lookup of a write":
        own(1, 130, 20, "secondary", segment="queue", probes=2, writer=1),
    "every transaction has a class, and is marked secondary if and only if that is its class":
        access(1, 300, 10, "capacity", writer=1, secondary_miss=True),
}


def broken_rules(folder: Path, rows: list[Row]) -> list[str]:
    parquet.write_table(pa.Table.from_pylist(rows), folder / "transactions.parquet")
    return [rule for rule, count in audit.contradictions(folder / "transactions.parquet", 6).items() if count]


def test_a_consistent_log_has_no_contradiction(tmp_path: Path) -> None:
    assert broken_rules(tmp_path, CONSISTENT) == []


def test_a_secondary_miss_may_wait_for_a_late_prefetch_but_only_as_often_as_one_was_late(tmp_path: Path) -> None:
    rule = "secondary: an older access or a prefetch of the core brings the line"
    waiting = [own(1, issued, 400 - issued, "secondary", segment="queue", line=0x80) for issued in (300, 310)]
    later = own(1, 500, 10, "secondary", segment="queue", line=0xC0)
    parquet.write_table(pa.Table.from_pylist([*CONSISTENT, *waiting, later]), tmp_path / "transactions.parquet")
    of = {late: audit.contradictions(tmp_path / "transactions.parquet", 6, [(0, 0), (late, 9)])[rule] for late in (0, 1, 2)}
    assert of == {0: 3, 1: 1, 2: 0}


def test_accesses_that_began_before_the_windows_contradict_no_count_of_late_prefetches(tmp_path: Path) -> None:
    rule = "secondary: an older access or a prefetch of the core brings the line"
    before, within = (own(1, issued, 40, "secondary", segment="queue", line=0x80) for issued in (-5, 300))
    assert broken_rules(tmp_path, [*CONSISTENT, before]) == []
    assert broken_rules(tmp_path, [*CONSISTENT, within]) == [rule]


def test_a_secondary_miss_may_find_the_line_but_only_as_often_as_a_prefetch_was_useful(tmp_path: Path) -> None:
    found = [own(1, issued, 3, "secondary", supplier="own", line=0x80) for issued in (300, 310)]
    parquet.write_table(pa.Table.from_pylist([*CONSISTENT, *found]), tmp_path / "transactions.parquet")
    broken = {useful: [rule for rule, count in audit.contradictions(tmp_path / "transactions.parquet", 6, [(0, 0), (9, useful)]).items()
                       if count] for useful in (1, 2)}
    assert broken == {1: ["secondary: an older access or a prefetch of the core brings the line"], 2: []}


@pytest.mark.parametrize("name", ["prefetch", "instruction_prefetch"])
def test_what_a_point_s_prefetchers_counted_is_taken_into_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    waiting = own(1, 300, 100, "secondary", segment="queue", line=0x80)
    file = tmp_path / "transactions.parquet"
    parquet.write_table(pa.Table.from_pylist([*CONSISTENT, waiting]), file)
    cores = [{name: {"fetched": 1, "late": late, "useful": 0, "useless": 0}} for late in (0, 1)]
    point = Point("x", {"cores": 2}, {"machine": {"cores": cores}, "cores": [{}, {}]})
    monkeypatch.setattr(audit, "recorded", lambda *_: file)
    assert audit.document([point])["ok"]
    point.stats["machine"]["cores"] = cores[:1] * 2
    assert not audit.document([point])["ok"]


def test_a_cold_miss_on_a_prefetched_line_is_a_contradiction(tmp_path: Path) -> None:
    assert broken_rules(tmp_path, [access(2, 300, 10, "cold", prefetched=True)]) == ["cold: the core has not had the line"]


@pytest.mark.parametrize("rule", [
    "upgrade: no other core has written the line since the core had it",
    "false sharing: no other core has written the byte that is accessed",
    "capacity: no other core has written the line since the core had it"])
def test_what_others_wrote_before_a_prefetch_contradicts_nothing(tmp_path: Path, rule: str) -> None:
    log = [{**row, "prefetched": False} for row in CONSISTENT]
    assert broken_rules(tmp_path, [*log, {**BROKEN[rule], "prefetched": False}]) == [rule]
    assert broken_rules(tmp_path, [*log, {**BROKEN[rule], "prefetched": True}]) == []


def test_a_line_that_another_core_s_store_took_was_not_replaced_whichever_core_wrote_last(tmp_path: Path) -> None:
    rule = "capacity: no other core has written the line since the core had it"
    assert broken_rules(tmp_path, [*CONSISTENT, access(0, 300, 10, "capacity", writer=0)]) == [rule]


def test_only_a_writer_with_prefetches_may_write_without_a_transaction(tmp_path: Path) -> None:
    rule = "sharing: another core has had the line since, or a device has written it"
    log = [access(0, 0, 10, "cold", "store"), access(1, 20, 10, "true_sharing", "store", writer=0),
           access(1, 100, 10, "true_sharing", writer=0)]
    parquet.write_table(pa.Table.from_pylist(log), tmp_path / "transactions.parquet")
    of = {counts: audit.contradictions(tmp_path / "transactions.parquet", 6, counts)[rule]
          for counts in (((0, 0), (9, 9)), ((0, 1), (0, 0)), ((1, 0), (0, 0)))}
    assert list(of.values()) == [1, 0, 0]


@pytest.mark.parametrize(("writer", "broken"), [(0, 0), (1, 1)])
def test_a_writer_with_prefetches_has_written_since_if_the_last_writer_was_another_one(tmp_path: Path, writer: int, broken: int) -> None:
    rule = "sharing: another core has had the line since, or a device has written it"
    store = [own(0, 40, 5, "upgrade", "store", writer=1)] if writer == 0 else []
    log = [access(1, 0, 10, "cold", "store"), access(0, 20, 10, "true_sharing", writer=1), *store,
           *(own(0, issued, 5, "capacity", writer=writer) for issued in (50, 60)), access(0, 100, 10, "true_sharing", "store", writer=1)]
    parquet.write_table(pa.Table.from_pylist(log), tmp_path / "transactions.parquet")
    assert audit.contradictions(tmp_path / "transactions.parquet", 6, ((0, 0), (0, 9)))[rule] == broken
    assert audit.contradictions(tmp_path / "transactions.parquet", 6)[rule] == 1


@pytest.mark.parametrize("rule", audit.RULES)
def test_a_contradiction_is_found_by_its_rule(tmp_path: Path, rule: str) -> None:
    assert broken_rules(tmp_path, [*CONSISTENT, BROKEN[rule]]) == [rule]


def test_what_happened_before_the_log_contradicts_nothing(tmp_path: Path) -> None:
    assert broken_rules(tmp_path, [access(0, 0, 10, "true_sharing", writer=5), access(1, 20, 10, "capacity", writer=5)]) == []


def test_the_text_names_transactions_that_have_no_class() -> None:
    broken = {"rule": "every transaction has a class", "transactions": 2, "examples": []}
    point = {"point": "p", "transactions": 3, "classes": {"none": 2, "true_sharing": 1}, "contradictions": [broken]}
    assert list(audit.text({"points": [point]}))[1:] == ["  none 2, true sharing 1", "  2 violate: every transaction has a class"]


def test_the_text_of_a_point_without_transactions_is_one_line() -> None:
    point = {"point": "p", "transactions": 0, "classes": {}, "contradictions": []}
    assert list(audit.text({"points": [point]})) == [f"p: 0 transactions, {len(audit.RULES)} rules: no contradiction"]
