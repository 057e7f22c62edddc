# SPDX-License-Identifier: BSD-3-Clause
"""Every transaction of the windows as Parquet (`--detail full`): from the engine's records (src/attribution/transaction_log.hh)
to one row group per million, columns as docs/run-directory.md names them. Times are femtoseconds.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moscope.naming import columns, rows
from moscope.schema import enumerations, records
from moscope.schema.emit import arrow

NAME = "transactions.parquet"
SEGMENTS, KINDS = enumerations.SEGMENT.names, enumerations.ACCESS_KIND.names
CLASSES = (*rows.CLASSES, "none")
_flags = next(f for f in records.TRANSACTION.fields if f.name == "flags")
WALK, USER, BUFFER_WAIT = (_flags.bit(flag) for flag in ("walk", "user", "buffer_wait"))
NOBODY = 0xFF
ROWS = 1_000_000
RECORD = arrow.dtype(records.TRANSACTION)
# In place of a supplier's number and chip: not known, or nobody sent the line.
NO_NUMBER = 0xFFFF


class Naming:
    """Names for the lines and instructions of records: from a namer, and the point's table of lines."""

    def __init__(self, namer: columns.Names, lines: Any) -> None:
        self._namer = namer
        self._keys = _key(lines["line"].to_numpy(), lines["use"].to_numpy())  # in order: by address, then use
        self._name, self._kind = (lines[name].combine_chunks() for name in ("name", "kind"))

    def lines(self, records: Any) -> tuple[Any, Any]:
        """Name and kind of memory."""
        import numpy
        import pyarrow

        if not len(self._keys):
            unknown = pyarrow.nulls(len(records), pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))
            return unknown, unknown
        wanted = _key(records["line"], records["use"])
        at = numpy.searchsorted(self._keys, wanted).clip(max=len(self._keys) - 1)
        rows = pyarrow.array(at, mask=self._keys[at] != wanted)
        return self._name.take(rows), self._kind.take(rows)

    def code(self, pcs: Any, spaces: Any) -> Any:
        return columns.code_names(self._namer, pcs, spaces)

    def processes(self, spaces: Any) -> Any:
        return columns.process_names(self._namer, spaces)


def _key(line: Any, use: Any) -> Any:
    """A line during one use of its page. Guests have less than 2**38 bytes of memory."""
    return line >> 6 << 32 | use


def convert(records: Path, parquet: Path, suppliers: Sequence[str], states: Mapping[str, Sequence[str]], named: Naming,
            at_a_time: int = ROWS) -> int:
    """Writes `parquet`, removes `records`; the number of rows. `suppliers`: the protocol's machines, in order; `states`: of
    each machine, likewise."""
    import numpy
    from pyarrow import parquet as pq

    count = 0
    partial = parquet.with_name(f".{parquet.name}.{os.getpid()}")
    with records.open("rb") as source, pq.ParquetWriter(partial, table(numpy.zeros(0, RECORD), suppliers, states, named).schema,
                                                        compression="zstd") as writer:
        while len(part := numpy.fromfile(source, RECORD, at_a_time)):
            writer.write_table(table(part, suppliers, states, named))
            count += len(part)
    partial.replace(parquet)
    records.unlink()
    return count


def table(records: Any, suppliers: Sequence[str], states: Mapping[str, Sequence[str]], named: Naming) -> Any:
    """A block of records as an Arrow table."""
    import pyarrow

    flags = records["flags"]
    unsent = records["supplier_number"] == NO_NUMBER
    waits = flags & BUFFER_WAIT != 0
    name, name_kind = named.lines(records)
    found: dict[str, Any] = {
        "core": records["core"], "issued": records["issued"],
        "latency": pyarrow.array(records["done"] - records["issued"], mask=waits), "exposed": records["exposed"],
        "kind": names(records["kind"], KINDS), "class": names(records["miss"], CLASSES),
        "buffer_wait": waits, "walk": flags & WALK != 0, "user": flags & USER != 0,
        "line": records["line"], "va": records["va"], "name": name, "name_kind": name_kind, "pc": records["pc"],
        "function": named.code(records["pc"], records["address_space"]), "address_space": records["address_space"],
        "process": named.processes(records["address_space"]),
        "writer": pyarrow.array(records["writer"], mask=records["writer"] == NOBODY), "writer_pc": records["writer_pc"],
        "writer_function": named.code(records["writer_pc"], records["address_space"]),
        "supplier": names(records["supplier"], suppliers), "hops": records["hops"],
        "supplier_number": pyarrow.array(records["supplier_number"], mask=unsent),
        "supplier_chip": pyarrow.array(records["supplier_chip"], mask=records["supplier_chip"] == NO_NUMBER),
        "supplier_state": state_names(records, suppliers, states, unsent),
        "probes": pyarrow.array(records["probes"], mask=waits),
        **{name: records["segments"][:, i] for i, name in enumerate(SEGMENTS)}}
    return pyarrow.table({name: pyarrow.array(values) if not isinstance(values, pyarrow.Array) else values
                          for name, values in found.items()})


def state_names(records: Any, suppliers: Sequence[str], states: Mapping[str, Sequence[str]], unsent: Any) -> Any:
    """The state of each record's supplier by name, whose number is the supplier's own."""
    import numpy
    import pyarrow

    words = sorted({state for of_one in states.values() for state in of_one}) + ["unknown"]
    number = numpy.full((256, 256), len(words) - 1, "int16")
    for machine, of_one in states.items():
        if machine in suppliers:
            number[suppliers.index(machine), :len(of_one)] = [words.index(state) for state in of_one]
    found = number[records["supplier"], records["supplier_state"]]
    return spelled(found, words, unsent)


def spelled(numbers: Any, known: Sequence[str], unknown: Any = None) -> Any:
    """Numbers as words, each written once; null where `unknown`."""
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(numbers, mask=unknown), pyarrow.array(known, pyarrow.string()))


def names(numbers: Any, known: Sequence[str]) -> Any:
    """The same, where a number beyond those that are known is so called."""
    return spelled(numbers.clip(max=len(known)).astype("int8"), [*known, "unknown"])
