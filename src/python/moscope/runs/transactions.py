# SPDX-License-Identifier: BSD-3-Clause
"""Every transaction of the windows as Parquet (`--detail full`), from the engine's records (src/attribution/transaction_log.hh), in row
groups of a million. src/schema/records.py describes the columns; a field of the record is a column without code here. Times are
femtoseconds.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moscope.aside import written_aside
from moscope.naming import columns
from moscope.schema import enumerations, records
from moscope.schema.emit import arrow

NAME, SCHEMA = "transactions.parquet", "moscope.transactions/1"
CLASSES = (*enumerations.MISS_CLASS.names, "none")
SECONDARY = CLASSES.index("secondary")
BUFFER_WAIT = records.TRANSACTION["flags"].bit("buffer_wait")
ROWS = 1_000_000
RECORD = arrow.dtype(records.TRANSACTION)


class Naming:
    """Names for the lines and instructions of records: from a namer, and the point's table of lines."""

    def __init__(self, namer: columns.Names, lines: Any) -> None:
        self._namer = namer
        self._keys = _key(lines["line"].to_numpy(), lines["use"].to_numpy())  # in order: by address, then use
        self._name, self._kind = (lines[name].combine_chunks() for name in ("name", "kind"))

    def lines(self, block: Any) -> tuple[Any, Any]:
        """Name and kind of memory."""
        import numpy
        import pyarrow

        if not len(self._keys):
            unknown = pyarrow.nulls(len(block), pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))
            return unknown, unknown
        wanted = _key(block["line"], block["use"])
        at = numpy.searchsorted(self._keys, wanted).clip(max=len(self._keys) - 1)
        rows = pyarrow.array(at, mask=self._keys[at] != wanted)
        return self._name.take(rows), self._kind.take(rows)

    def code(self, pcs: Any, spaces: Any) -> Any:
        return columns.Code(self._namer, pcs, spaces).functions()

    def sources(self, pcs: Any, spaces: Any) -> tuple[Any, Any]:
        """File and line, and the calls of inlined functions."""
        return columns.Code(self._namer, pcs, spaces).sources()

    def processes(self, spaces: Any) -> Any:
        return columns.process_names(self._namer, spaces)


def _key(line: Any, use: Any) -> Any:
    """A number for a line during one use of its page. Guests have less than 2**38 bytes of memory."""
    return line >> 6 << 32 | use


def convert(raw: Path, parquet: Path, suppliers: Sequence[str], states: Mapping[str, Sequence[str]], named: Naming,
            at_a_time: int = ROWS) -> int:
    """Writes `parquet`, removes `raw`; returns the number of rows. `suppliers`: the protocol's machines, in order; `states`: the
    states of each machine, in order."""
    import numpy
    from pyarrow import parquet as pq

    count = 0
    schema = marked(table(numpy.zeros(0, RECORD), suppliers, states, named)).schema
    with written_aside(parquet) as partial, raw.open("rb") as source, pq.ParquetWriter(partial, schema, compression="zstd") as writer:
        while len(part := numpy.fromfile(source, RECORD, at_a_time)):
            writer.write_table(marked(table(part, suppliers, states, named)))
            count += len(part)
    raw.unlink()
    return count


def marked(made: Any) -> Any:
    """The table with its schema in the metadata of the file."""
    return made.replace_schema_metadata({"schema": SCHEMA})


def table(block: Any, suppliers: Sequence[str], states: Mapping[str, Sequence[str]], named: Naming) -> Any:
    """A block of records as an Arrow table."""
    import pyarrow

    waits = block["flags"] & BUFFER_WAIT != 0
    name, name_kind = named.lines(block)
    sources = {pc: named.sources(block[pc], block["address_space"]) for pc in ("pc", "writer_pc")}
    return arrow.file_table(records.TRANSACTIONS, block, {
        "latency": lambda: pyarrow.array(block["done"] - block["issued"], mask=waits),
        "name": lambda: name,
        "name_kind": lambda: name_kind,
        "function": lambda: named.code(block["pc"], block["address_space"]),
        "source": lambda: sources["pc"][0],
        "inlined": lambda: sources["pc"][1],
        "process": lambda: named.processes(block["address_space"]),
        "writer_function": lambda: named.code(block["writer_pc"], block["address_space"]),
        "writer_source": lambda: sources["writer_pc"][0],
        "writer_inlined": lambda: sources["writer_pc"][1],
        "class": lambda: names(block["miss"], CLASSES),
        "supplier": lambda: names(block["supplier"], suppliers),
        "supplier_state": lambda: state_names(block, suppliers, states),
        "secondary_miss": lambda: pyarrow.array(~waits & (block["miss"] == SECONDARY)),
        "probes": lambda: pyarrow.array(block["probes"], mask=waits),
    })


def state_names(block: Any, suppliers: Sequence[str], states: Mapping[str, Sequence[str]]) -> Any:
    """The state of each record's supplier by name; the numbers are those of its machine type. Null where no controller sent the
    line."""
    import numpy

    words = sorted({state for of_one in states.values() for state in of_one}) + ["unknown"]
    number = numpy.full((256, 256), len(words) - 1, "int16")
    for machine, of_one in states.items():
        if machine in suppliers:
            number[suppliers.index(machine), :len(of_one)] = [words.index(state) for state in of_one]
    found = number[block["supplier"], block["supplier_state"]]
    return spelled(found, words, block["supplier_number"] == records.TRANSACTION["supplier_number"].none)


def spelled(numbers: Any, known: Sequence[str], unknown: Any = None) -> Any:
    """Numbers as a dictionary array of words, each stored once; null where the number is `unknown`."""
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(numbers, mask=unknown), pyarrow.array(known, pyarrow.string()))


def names(numbers: Any, known: Sequence[str]) -> Any:
    """The same; a number beyond the known ones reads `unknown`."""
    return spelled(numbers.clip(max=len(known)).astype("int8"), [*known, "unknown"])
