# SPDX-License-Identifier: BSD-3-Clause
"""C++ and Python see the same rows: what the engine's structs hold comes back by name."""

import os
import subprocess
from pathlib import Path

import numpy

from moscope import paths
from moscope.schema import records
from moscope.schema.emit import arrow

PROGRAM = paths.build_dir() / "tests/schema/test_records"


def written(folder: Path) -> bytes:
    target = folder / "rows"
    got = subprocess.run([str(PROGRAM), "--gtest_filter=Records.WritesRowsForPython"], env={**os.environ, "MOSCOPE_TEST_ROWS": str(target)},
                         capture_output=True, text=True, check=False)
    assert got.returncode == 0, got.stdout + got.stderr
    return target.read_bytes()


def test_rows_of_the_engine_come_back_by_name(tmp_path: Path) -> None:
    data = written(tmp_path)
    size = records.TRANSACTION.size
    table = arrow.table(records.TRANSACTION, arrow.rows(records.TRANSACTION, data[: 2 * size]))
    first, blank = table.to_pylist()
    assert (first["issued"], first["done"], first["probes"], first["use"]) == (1, 1000, 3, 0xDEADBEEF)
    assert first["queue"] == 1 and first["responder"] == 971
    assert (first["kind"], first["miss"]) == ("rmw", "true_sharing")
    assert (first["walk"], first["user"], first["buffer_wait"]) == (False, True, True)
    assert blank["writer"] is None and blank["supplier_number"] is None and blank["kind"] == "load"
    layouts = numpy.frombuffer(data[2 * size:], "<u8").tolist()
    assert layouts == [r.layout for r in records.DESCRIPTIONS], "the engine is built from other descriptions: expected ./moscope build"
