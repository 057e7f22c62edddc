# SPDX-License-Identifier: BSD-3-Clause
"""Misses in flight by function: a column of tables and page where the cores overlap their misses."""

from pathlib import Path

import duckdb
import synthetic_run

from analysis.page import waiting
from analysis.run_directory import load
from analysis.tables.functions import waiting_functions


def made(folder: Path, *, overlapping: bool) -> Path:
    synthetic_run.write_run(folder, cores=(4,), kernels=("pk",))
    if overlapping:
        [point] = (folder / "points").iterdir()
        [(function, kernel)] = duckdb.sql(f"""SELECT waiter_function, kernel FROM '{point}/pairs.parquet'
            GROUP BY ALL ORDER BY sum(stall + spin) DESC, 1 LIMIT 1""").fetchall()
        duckdb.sql(f"""COPY (SELECT $${function}$$ AS function, {kernel} AS kernel, 8 AS loads, 700::BIGINT AS latency,
            200::BIGINT AS occupied) TO '{point}/loads.parquet'""")
    return folder


def test_a_function_has_the_latency_of_its_loads_over_the_time_with_any(tmp_path: Path) -> None:
    [point] = load(made(tmp_path / "run", overlapping=True)).points
    first, *others = waiting_functions(point)
    assert first["misses_in_flight"] == 3.5
    assert all(one["misses_in_flight"] is None for one in others)
    assert "misses in flight" in waiting.functions(point)
    assert ">3.50<" in waiting.functions(point)


def test_runs_whose_cores_wait_for_each_load_lack_the_column_of_misses_in_flight(tmp_path: Path) -> None:
    [point] = load(made(tmp_path / "run", overlapping=False)).points
    assert "misses in flight" not in waiting.functions(point)
