# SPDX-License-Identifier: BSD-3-Clause
"""Metis on all cores, against the memory bandwidth of the machine."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LINE = 64
NS_PER_FS = 1e-6


def moved(point: Path) -> float:
    """GB/s of all channels in the windows of a point."""
    dram = json.loads((point / "stats.json").read_text(encoding="utf-8"))["machine"]["dram"]
    ticks = sum(w["ticks"] for w in json.loads((point / "point.json").read_text(encoding="utf-8"))["windows"])
    return sum(c["reads"] + c["writes"] for node in dram for c in node["channels"]) * LINE / (ticks * NS_PER_FS)


@pytest.mark.long
def test_reduce_alone_moves_85_percent_of_what_the_machine_streams(moscope: Callable[..., Any], tmp_path: Path) -> None:
    streams = json.loads(moscope("latency", "--bandwidth", "--json", timeout=600).stdout)["rows"]
    (machine,) = (row["measured"] for row in streams if row["name"] == "machine")
    got = moscope("run", "--workload", "metis-reduce-2m", "--kernel", "pk", "--cores", "48", "--window", "3ms",
                  "--windows", "2", "--json", "--out", "out", timeout=3600)
    assert got.returncode == 0, got.stderr
    (point,) = (tmp_path / "out" / "points").iterdir()
    assert moved(point) > 0.85 * machine
