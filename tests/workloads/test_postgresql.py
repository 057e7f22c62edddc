# SPDX-License-Identifier: BSD-3-Clause
"""PostgreSQL in the guest, asked over the network card, from the command line to the checked answers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Moscope = Callable[..., Any]


@pytest.mark.long
@pytest.mark.parametrize("kernel", ["stock", "pk", "distro"])
@pytest.mark.parametrize("name", ["postgresql", "postgresql-seeks", "postgresql-write"])
def test_each_row_is_right_and_queries_are_counted(name: str, kernel: str, moscope: Moscope, tmp_path: Path) -> None:
    got = moscope("run", "--workload", name, "--kernel", kernel, "--cores", "2", "--window", "5ms", "--windows", "1", "--json",
                  "--out", "out", timeout=3600)
    assert got.returncode == 0, got.stderr
    point = json.loads(got.stdout)["points"][0]
    waiters = {one["name"]: one["waiters"] for one in point["top_names"]}
    assert "shared memory of postgres" in waiters
    assert any(name.startswith("postgres:") for of in waiters.values() for name in of), "its symbols are in the root image"
    assert point["verified"] and point["ops"] > 100
    console = (tmp_path / "out/points" / f"{name}-{kernel}-2" / "console.txt").read_text(errors="replace")
    report = dict(pair.split("=") for pair in console.rpartition("moscope: postgresql ")[2].split() if "=" in pair)
    assert report["verify"] == "ok" and report["wrong"] == report["lost"] == report["stalled"] == "0"
    assert (int(report["updates"]) > 0) == (name == "postgresql-write")
