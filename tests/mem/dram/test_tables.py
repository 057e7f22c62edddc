# SPDX-License-Identifier: BSD-3-Clause
"""The DRAM tables are whole clocks, keep what JEDEC's numbers imply, and name every timing the engine wants."""

import runpy
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "configs" / "dram"
STANDARDS = sorted(p.stem for p in FOLDER.glob("*.py") if not p.stem.startswith("_"))
TIMINGS = "tCL tCWL tRCD tRP tRAS tRC tWR tWTR tRTP tRRD tFAW tCCD tRTRS tRTW tREFI tRFC".split()


def load(standard: str) -> dict[str, Any]:
    table: dict[str, Any] = runpy.run_path(str(FOLDER / f"{standard}.py"))["dram"]
    return table


@pytest.mark.parametrize("standard", STANDARDS)
def test_every_timing_is_a_whole_number_of_clocks(standard: str) -> None:
    table = load(standard)
    assert list(table["timing_fs"]) == TIMINGS
    for name, fs in table["timing_fs"].items():
        assert fs % table["tCK_fs"] == 0, name


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_row_cycle_holds_its_parts(standard: str) -> None:
    t = load(standard)["timing_fs"]
    assert t["tRC"] >= t["tRAS"] + t["tRP"]
    assert t["tRAS"] >= t["tRCD"]
    assert t["tFAW"] >= 3 * t["tRRD"]


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_table_says_the_standard_that_its_file_is_named_after(standard: str) -> None:
    assert load(standard).get("standard", "").lower().replace("-", "_") == standard


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_rank_is_refreshed_as_often_as_jedec_demands(standard: str) -> None:
    """Every 7.8 us, or 3.9 us in hot parts. A number of clocks in place of nanoseconds is found here."""
    table = load(standard)
    assert 3_900_000_000 <= table["timing_fs"]["tREFI"] < 7_800_000_000 + table["tCK_fs"]


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_node_holds_eight_gigabytes_or_more(standard: str) -> None:
    d = load(standard)
    assert d["channels"] * d["ranks"] * d["banks"] * d["rows"] * d["row_bytes"] >= 8 << 30


def test_times_are_rounded_up_to_the_clock() -> None:
    jedec = runpy.run_path(str(FOLDER / "_jedec.py"))
    assert jedec["clocks"](37.5, 3.0) == 13
    assert jedec["clocks"](12.5, 2.5) == 5
    assert jedec["clocks"](12.51, 2.5) == 6
    assert jedec["clocks"](4, 2.5) == 4
    assert jedec["at_least"](4, 7.5, 1.5) == 5
    assert jedec["at_least"](4, 6.0, 2.5) == 4


@pytest.mark.parametrize(
    ("standard", "clocks"),
    [
        ("ddr2_667", {"tCL": 5, "tRCD": 5, "tRP": 5, "tRC": 20, "tFAW": 13, "tRFC": 43}),
        ("ddr2_800", {"tCL": 5, "tRCD": 5, "tRP": 5, "tRC": 23, "tFAW": 14, "tRFC": 51}),
        ("ddr3_1333", {"tCL": 9, "tRCD": 9, "tRP": 9, "tRC": 33, "tFAW": 20, "tRFC": 107}),
    ],
)
def test_clocks_are_those_that_a_controller_is_programmed_with(standard: str, clocks: dict[str, int]) -> None:
    table = load(standard)
    assert {k: table["timing_fs"][k] // table["tCK_fs"] for k in clocks} == clocks
