# SPDX-License-Identifier: BSD-3-Clause
"""Which points of two sides of a comparison are a pair."""

import json
from pathlib import Path

import pyarrow
import pytest
import synthetic_run
from pyarrow import parquet

from analysis.comparison import sides
from moscope import cli


def test_points_of_a_sweep_that_share_a_result_are_paired_by_the_rows_of_the_table(tmp_path: Path) -> None:
    (point,) = synthetic_run.write_run(tmp_path / "run", cores=(4,)).glob("points/*")
    folder = tmp_path / "sweep"
    (folder / "points").mkdir(parents=True)
    point.rename(folder / "points/digest")
    (folder / "points/digest/result.json").write_text(json.dumps({"schema": sides.RESULT_SCHEMA, "params": {"links.clock": "1GHz"}}))
    rows = [{"links.clock": clock, "point": "digest", "status": "done"} for clock in ("1GHz", "1000MHz")]
    parquet.write_table(pyarrow.Table.from_pylist(rows).replace_schema_metadata({"axes": "links.clock"}), folder / "table.parquet")
    found, alone = sides.matched(sides.side(folder), sides.side(folder))
    assert [(x.axes, y.axes) for x, y in found] == [({"links.clock": row["links.clock"]},) * 2 for row in rows] and not alone


def test_unreadable_files_of_a_run_are_named_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole, damaged = (synthetic_run.write_run(tmp_path / name, cores=(4, 8)) for name in ("whole", "damaged"))
    other, point = sorted(damaged.glob("points/*"))
    (point / "stats.json").write_text('{"cores": [{"window": "x"}]}')
    assert cli.main(["compare", str(whole), str(damaged)]) == 0
    said = f"{point.name}/stats.json is left out: its cores[0].window: expected a number"
    assert capfd.readouterr().err.splitlines() == [f"{damaged}: {said}"]
    assert cli.main(["compare", str(damaged), str(damaged)]) == 0
    assert capfd.readouterr().err.splitlines() == [f"{damaged}: {said}"], "once, although both sides have it"
    assert sides.side(point).problems == [said]
    assert sides.side(other).problems == []
