# SPDX-License-Identifier: BSD-3-Clause
"""docs/calibration.md names every fitted value, and claims no other; the figures that it gives are met."""

import json
import re
import subprocess
from collections.abc import Callable

import pytest

from moscope import buildproto, paths
from moscope.config import elaborate, load_machine, walk
from moscope.experiment import Subject
from moscope.latencies.bandwidth import loads, measure
from moscope.schema.constants import FS_PER_NS, FS_PER_S

Moscope = Callable[..., subprocess.CompletedProcess[str]]


def fitted_settings(text: str, table: str) -> set[str]:
    """Keys of a DRAM table whose comment, beside them or above, says that they were fitted."""
    found, above = set(), ""
    for line in text.split(f"{table} = {{\n")[1].split("\n}\n")[0].splitlines():
        key, comment = re.match(r'\s*(?:"(\w+)":)?[^#]*(#.*)?', line).groups()  # type: ignore[union-attr]
        above += comment or ""
        if key:
            found |= {key} if "fitted" in above.lower() else set()
            above = ""
    return found


def test_the_calibration_table_lists_exactly_the_fitted_parameters() -> None:
    fitted = {row.key for row in walk(load_machine("opteron48")) if "fitted" in row.source}
    source = (paths.root() / "configs" / "dram" / "_family10h.py").read_text(encoding="utf-8")
    fitted |= {f"dram.settings.{key}" for key in fitted_settings(source, "DDR2_NODE")}
    assert "dram.settings.ganged" in fitted and not fitted_settings(source, "DDR3_NODE")
    text = (paths.root() / "docs" / "calibration.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z0-9_.]+)` \|", text, re.MULTILINE))
    assert listed == fitted


def test_the_seven_latencies_are_met_within_2_percent(moscope: Moscope) -> None:
    rows = json.loads(moscope("latency", "--json").stdout)["rows"]
    assert [row["reference"] for row in rows] == [3, 14, 28, 122, 249, 376, 503]
    for row in rows:
        assert row["measured"] == pytest.approx(row["reference"], rel=0.02), row["name"]


def subject_of(machine: str) -> Subject:
    described = load_machine(machine)
    made = buildproto.ensure_protocol(str(described.protocol))
    interface = json.loads(made.interface.read_text(encoding="utf-8"))
    return Subject(described, interface, elaborate(described, interface), made.timing, 1)


@pytest.mark.parametrize(("ranks", "gb_per_s"), [((0,), 6.40), ((1,), 6.40), ((0, 1), 9.66)])
def test_the_four_activate_limit_bounds_streams_within_a_rank_but_not_over_both(ranks: tuple[int, ...], gb_per_s: float) -> None:
    subject = subject_of("opteron48")
    rank, window = subject.machine.memory_per_node.bytes // 2, 10_000 * FS_PER_NS
    streams = [{"core": core, "in_flight": 8, "order": "pages", "seed": core, "ranges": [[n * rank + (core << 28), 1 << 27] for n in ranks]}
               for core in range(int(subject.machine.cores_per_chip))]
    found = subject.run([{"kind": "loads", "streams": streams, "warm_fs": window, "window_fs": window}])[0]
    assert sum(s["done"] for s in found["streams"]) * 64 * FS_PER_S / window / 1e9 == pytest.approx(gb_per_s, rel=0.03)


@pytest.mark.parametrize(("machine", "load", "within"), [
    ("opteron48", "node", 0.05),
    ("magnycours_2p", "XFIRE", 0.15),
    pytest.param("opteron48", "machine", 0.05, marks=pytest.mark.long),
    pytest.param("magnycours_2p", "machine", 0.15, marks=pytest.mark.long),
    pytest.param("magnycours_4p", "machine", 0.15, marks=pytest.mark.long),
    pytest.param("magnycours_4p", "XFIRE", 0.15, marks=pytest.mark.long),
])
def test_a_bandwidth_is_met(machine: str, load: str, within: float) -> None:
    subject = subject_of(machine)
    wanted = next(one for one in loads(subject) if one.name == load)
    assert wanted.reference
    assert measure(subject, wanted).measured == pytest.approx(wanted.reference, rel=within)
