# SPDX-License-Identifier: BSD-3-Clause
"""The audit of miss classes accepts a log that is consistent, and finds each contradiction by the rule that it breaks."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from analysis import audit
from analysis.described import SEGMENT

Row = dict[str, Any]


def access(core: int, issued: int, latency: int, miss: str, kind: str = "load", **more: Any) -> Row:
    """A transaction that core 9's cache answers over a link."""
    segments = {**dict.fromkeys(SEGMENT.names, 0), "link": latency}
    return {"core": core, "issued": issued, "latency": latency, "line": 0x40, "kind": kind, "class": miss, "supplier_number": 9,
            "supplier_chip": 1, "hops": 2, "probes": 1, "writer": None, "buffer_wait": False, **segments, **more}


def own(core: int, issued: int, latency: int, miss: str, kind: str = "load", segment: str = "cache", **more: Any) -> Row:
    """One for which nothing was sent."""
    return access(core, issued, latency, miss, kind, **{"supplier_number": None, "supplier_chip": None, "hops": 0, "probes": 0, "link": 0,
                                                       segment: latency, **more})


CONSISTENT = [
    access(0, 0, 10, "cold"), access(1, 20, 10, "cold", "store"), access(0, 40, 10, "true_sharing", writer=1),
    own(0, 60, 10, "upgrade", "store", "link", hops=4), own(0, 100, 5, "capacity", writer=0),
    access(0, 110, 5, "upgrade", "rmw", writer=1),
    access(1, 120, 30, "false_sharing", "store", writer=0), own(1, 130, 20, "secondary", segment="queue", writer=1),
    access(1, 200, 10, "capacity", writer=1), {**own(1, 220, 0, "none"), "buffer_wait": True, "latency": None}]
BROKEN = {
    "latency is the sum of its segments": access(2, 300, 10, "cold", link=9),
    "a line crosses no link without a supplier or an upgrade": own(2, 300, 10, "cold", hops=1),
    "cold: the core has not had the line": access(0, 300, 10, "cold"),
    "upgrade: the access writes": own(0, 300, 10, "upgrade"),
    "upgrade: the line does not come from memory": access(0, 300, 10, "upgrade", "store", link=0, dram=10),
    "sharing: the last writer is another core or a device": access(0, 300, 10, "true_sharing", writer=0),
    "capacity: no other core has written the line since the core had it": access(0, 300, 10, "capacity", writer=1),
    "capacity: a controller or a cache of the core sends the line": own(1, 300, 10, "capacity", segment="queue", writer=1),
    "secondary: an older access of the core to the line ends at the same time":
        own(1, 300, 10, "secondary", segment="queue", writer=1),
    "secondary: no controller sends the line for it, and all of its latency is waiting":
        own(1, 130, 20, "secondary", segment="queue", probes=2, writer=1),
    "cold, sharing: a controller or a cache of the core sends the line": own(1, 300, 10, "true_sharing", segment="queue", writer=0),
}


def broken_rules(folder: Path, rows: list[Row]) -> list[str]:
    parquet.write_table(pa.Table.from_pylist(rows), folder / "transactions.parquet")
    return [rule for rule, count in audit.contradictions(folder / "transactions.parquet").items() if count]


def test_a_consistent_log_has_no_contradiction(tmp_path: Path) -> None:
    assert broken_rules(tmp_path, CONSISTENT) == []


@pytest.mark.parametrize("rule", audit.RULES)
def test_a_contradiction_is_found_by_its_rule(tmp_path: Path, rule: str) -> None:
    assert broken_rules(tmp_path, [*CONSISTENT, BROKEN[rule]]) == [rule]


def test_what_happened_before_the_log_contradicts_nothing(tmp_path: Path) -> None:
    assert broken_rules(tmp_path, [access(0, 0, 10, "true_sharing", writer=5), access(1, 20, 10, "capacity", writer=5)]) == []
