# SPDX-License-Identifier: BSD-3-Clause
"""Records of transactions as Parquet."""

from pathlib import Path

import numpy

from moscope.run import transactions

SUPPLIERS = ["own", "L1Cache", "Directory"]


def record(**fields: object) -> numpy.ndarray:
    made = numpy.zeros(1, numpy.dtype(transactions.RECORD))
    for name, value in fields.items():
        made[name][0] = value
    return made


def test_a_record_is_as_long_as_the_engine_writes_it() -> None:
    assert numpy.dtype(transactions.RECORD).itemsize == 136


def test_rows_say_what_the_records_say(tmp_path: Path) -> None:
    from pyarrow import parquet

    raw = tmp_path / "raw"
    records = [
        record(core=3, issued=100, done=350, exposed=200, line=0x40, pc=0xFFFFFFFF81000000, kind=3, supplier=2, hops=2,
               writer=5, writer_pc=0x401000, segments=[0, 0, 0, 200, 0, 0, 50, 0], flags=transactions.USER,
               **{"class": 3}),
        record(core=1, issued=7, done=7, exposed=9, writer=0xFF, flags=transactions.BUFFER_WAIT, **{"class": 5}),
    ]
    raw.write_bytes(b"".join(r.tobytes() for r in records) * 3)
    assert transactions.convert(raw, tmp_path / "t.parquet", SUPPLIERS, rows=4) == 6
    rows = parquet.read_table(tmp_path / "t.parquet").to_pylist()
    assert len(rows) == 6 and rows[:2] == rows[4:]
    first, second = rows[:2]
    assert (first["core"], first["latency"], first["exposed"], first["link"], first["dram"]) == (3, 250, 200, 200, 50)
    assert (first["kind"], first["class"], first["supplier"], first["writer"]) == ("rmw", "true_sharing", "Directory", 5)
    assert first["pc"] == 0xFFFFFFFF81000000 and first["user"] and not first["walk"]
    assert second["buffer_wait"] and second["latency"] is None and second["writer"] is None and second["class"] == "none"
    assert not raw.exists()


def test_no_transactions_give_a_file_without_rows(tmp_path: Path) -> None:
    from pyarrow import parquet

    (tmp_path / "raw").write_bytes(b"")
    assert transactions.convert(tmp_path / "raw", tmp_path / "t.parquet", SUPPLIERS) == 0
    assert parquet.read_table(tmp_path / "t.parquet").num_rows == 0
