# SPDX-License-Identifier: BSD-3-Clause
"""Records as numpy types and Arrow tables. numpy and pyarrow are imported when they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moscope.schema.describe import Enumeration, Record, Table

NUMPY = {"u8": "u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "i64": "<i8"}
ARROW = {"u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "i64": "int64"}


def dtype(r: Record) -> Any:
    """The numpy type of a row, padding left out but for its room."""
    import numpy

    return numpy.dtype({"names": [f.name for f in r.fields], "offsets": list(r.offsets.values()), "itemsize": r.size,
                        "formats": [(NUMPY[f.type], (f.count,)) if f.each else NUMPY[f.type] for f in r.fields]})


def rows(r: Record, data: bytes) -> Any:
    """Rows as the engine wrote them."""
    import numpy

    return numpy.frombuffer(data, dtype(r))


def schema(r: Record) -> Any:
    """The Arrow schema of `table`; each column says its unit and its sentence, the whole its layout."""
    import pyarrow

    found = []
    for f in r.fields:
        kind = pyarrow.bool_() if f.flags else word_type() if f.values else getattr(pyarrow, ARROW[f.type])()
        found += [pyarrow.field(column, kind, nullable=f.none is not None, metadata={"unit": f.unit, "about": sentence})
                  for column, sentence in f.columns.items()]
    return pyarrow.schema(found, metadata={"record": r.name, "layout": f"{r.layout:#x}"})


def word_type() -> Any:
    import pyarrow

    return pyarrow.dictionary(pyarrow.int8(), pyarrow.string())


def words(values: Any, of: Enumeration, absent: Any = None) -> Any:
    """Numbers of an enumeration as words, null where `absent`."""
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(values.astype("int8"), mask=absent), pyarrow.array(of.names, pyarrow.string()))


def table(r: Record, data: Any) -> Any:
    """Rows (numpy, of `dtype`) as an Arrow table of `schema`: arrays and flags one column each, enumerations as words, the
    number that stands for none as null."""
    import numpy
    import pyarrow

    found: list[Any] = []
    for f in r.fields:
        values = data[f.name]
        absent = values == f.none if f.none is not None else None
        if f.each:
            found += [pyarrow.array(numpy.ascontiguousarray(values[:, i])) for i in range(f.count)]
        elif f.flags:
            found += [pyarrow.array(values & f.bit(flag) != 0) for flag in f.flags]
        elif f.values:
            found.append(words(values, f.values, absent))
        else:
            found.append(pyarrow.array(numpy.ascontiguousarray(values), mask=absent))
    return pyarrow.table(found, schema=schema(r))


def file_table(t: Table, data: Any, computed: Mapping[str, Callable[[], Any]]) -> Any:
    """Rows of a table's record as the Arrow table of the file. `computed` has a function for each column that is computed."""
    import pyarrow

    plain = table(t.record, data)
    columns = [computed[c.name]() if c in t.computed else plain[c.name].chunk(0) for c in t.columns]
    fields = [pyarrow.field(c.name, values.type, metadata={"unit": c.unit, "about": c.sentence})
              for c, values in zip(t.columns, columns, strict=True)]
    return pyarrow.table(columns, schema=pyarrow.schema(fields))
