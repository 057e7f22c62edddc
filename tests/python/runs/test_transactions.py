# SPDX-License-Identifier: BSD-3-Clause
"""Records of transactions as Parquet."""

from pathlib import Path

import numpy
from fake_machine import FakeNames

from moscope.naming import columns, rows
from moscope.naming.namer import Named
from moscope.parquet import held, unreadable
from moscope.runs import transactions
from moscope.schema import records as described

SUPPLIERS = ["own", "L1Cache", "Directory"]
USER = described.TRANSACTION["flags"].bit("user")
STATES = {"L1Cache": ["I", "S", "M"], "Directory": ["NP", "S"]}


class Names(FakeNames):
    """A line's name is its address, a function's the instruction's, of a user with the address space."""

    def line(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: dict[str, int] | None = None, free: bool = False) -> Named:
        return Named(f"line {line:#x}", "unknown")

    def code(self, pc: int, cr3: int = 0) -> str:
        return f"{pc:#x}" if pc >= 1 << 63 else f"{pc:#x} of {cr3:#x}"

    def process(self, cr3: int) -> str:
        return f"process {cr3:#x}" if cr3 else ""


def named(*lines: int) -> transactions.Naming:
    made = numpy.zeros(len(lines), rows.LINES)
    made["line"] = lines
    return transactions.Naming(Names(), columns.tables(Names(), (made.tobytes(), b"", b""), ()).lines)


def record(**fields: object) -> numpy.ndarray:
    made = numpy.zeros(1, transactions.RECORD)
    for name, value in fields.items():
        made[name][0] = value
    return made


def test_rows_say_what_the_records_say(tmp_path: Path) -> None:
    from pyarrow import parquet

    raw = tmp_path / "raw"
    records = [
        record(core=3, issued=100, done=350, exposed=200, line=0x80, pc=0xFFFFFFFF81000000, address_space=0x5000, kind=3, supplier=2,
               hops=2,
               supplier_number=6, supplier_chip=1, supplier_state=1, probes=3, writer=5,
               writer_pc=0x401000, segments=[0, 0, 0, 200, 0, 0, 50, 0], flags=USER, miss=transactions.CLASSES.index("true_sharing")),
        record(core=1, issued=7, done=7, exposed=9, writer=0xFF, flags=transactions.BUFFER_WAIT, supplier_number=0xFFFF,
               supplier_chip=0xFFFF, supplier_state=0xFF, miss=transactions.CLASSES.index("none")),
    ]
    raw.write_bytes(b"".join(r.tobytes() for r in records) * 3)
    assert transactions.convert(raw, tmp_path / "t.parquet", SUPPLIERS, STATES, named(0x40, 0x80, 0xC0), at_a_time=4) == 6
    assert parquet.read_schema(tmp_path / "t.parquet").metadata == {b"schema": b"moscope.transactions/1"}
    every = held(described.TRANSACTIONS)
    assert unreadable(tmp_path / "t.parquet", every, tuple(every)) == "", "the file is as described"
    written = parquet.read_table(tmp_path / "t.parquet").to_pylist()
    assert len(written) == 6 and written[:2] == written[4:]
    first, second = written[:2]
    assert (first["core"], first["latency"], first["exposed"], first["link"], first["dram"]) == (3, 250, 200, 200, 50)
    assert (first["kind"], first["class"], first["supplier"], first["writer"]) == ("rmw", "true_sharing", "Directory", 5)
    assert first["pc"] == 0xFFFFFFFF81000000 and first["user"] and not first["walk"]
    assert (first["supplier_number"], first["supplier_chip"], first["supplier_state"], first["probes"]) == (6, 1, "S", 3)
    assert second["supplier_number"] is None and second["supplier_state"] is None and second["probes"] is None
    assert second["buffer_wait"] and second["latency"] is None and second["writer"] is None and second["class"] == "none"
    assert (first["name"], first["function"], first["writer_function"]) == ("line 0x80", "0xffffffff81000000", "0x401000 of 0x5000")
    assert (first["process"], second["process"]) == ("process 0x5000", None)
    assert second["name"] is None and second["function"] is None and second["writer_function"] is None, "nothing is known at 0"
    assert not raw.exists()


def test_a_line_of_several_uses_has_the_name_of_the_use_of_each_transaction() -> None:
    class ByPage(Names):
        def line(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: dict[str, int] | None = None,
                 free: bool = False) -> Named:
            return Named("page table", "page table") if walk else Named(f"line {line:#x}", "slab")

    made = numpy.zeros(3, rows.LINES)
    made["line"], made["use"], made["flags"] = (0x40, 0x40, 0x80), (4, 7, 5), (0, rows.WALK, 0)
    records = numpy.concatenate([record(line=line, use=use) for line, use in ((0x40, 7), (0x40, 4), (0x80, 5), (0x80, 4))])
    lines = columns.tables(ByPage(), (made.tobytes(), b"", b""), ()).lines
    got = transactions.table(records, SUPPLIERS, STATES, transactions.Naming(ByPage(), lines))
    assert got["name"].to_pylist() == ["page table", "line 0x40", "line 0x80", None]
    assert got["name_kind"].to_pylist() == ["page table", "slab", "slab", None]


def test_a_supplier_of_which_only_the_chip_is_known_has_neither_number_nor_state() -> None:
    (row,) = transactions.table(record(supplier=1, supplier_number=0xFFFF, supplier_chip=2, supplier_state=0xFF), SUPPLIERS, STATES,
                                named()).to_pylist()
    assert (row["supplier"], row["supplier_number"], row["supplier_chip"], row["supplier_state"]) == ("L1Cache", None, 2, None)


def test_the_class_tells_a_secondary_miss() -> None:
    rows = [record(miss=transactions.SECONDARY), record(miss=transactions.SECONDARY, flags=transactions.BUFFER_WAIT), record(miss=0)]
    got = transactions.table(numpy.concatenate(rows), SUPPLIERS, STATES, named())
    assert got["secondary_miss"].to_pylist() == [True, False, False]
    assert got["class"].to_pylist()[0] == "secondary"


def test_no_transactions_give_a_file_without_rows(tmp_path: Path) -> None:
    from pyarrow import parquet

    (tmp_path / "raw").write_bytes(b"")
    assert transactions.convert(tmp_path / "raw", tmp_path / "t.parquet", SUPPLIERS, STATES, named()) == 0
    assert parquet.read_table(tmp_path / "t.parquet").num_rows == 0
