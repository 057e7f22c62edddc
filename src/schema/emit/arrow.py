# SPDX-License-Identifier: BSD-3-Clause
"""Records as numpy types and Arrow tables. numpy and pyarrow are imported when they are used."""

from __future__ import annotations

from typing import Any

from moscope.schema.describe import Enumeration, Field, Record

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


def columns(f: Field) -> list[str]:
    """The columns of a field: one for each member of its array (FIELD_MEMBER), one for each of its flags, or itself."""
    if f.each:
        return [f"{f.name}_{member}" for member in f.each.names]
    return list(f.flags) or [f.name]


def schema(r: Record) -> Any:
    """The Arrow schema of `table`; each column says its unit and its sentence, the whole its layout."""
    import pyarrow

    found = []
    for f in r.fields:
        kind = pyarrow.bool_() if f.flags else word_type() if f.values else getattr(pyarrow, ARROW[f.type])()
        about = {"unit": f.unit, "about": f.sentence}
        for column in columns(f):
            of_one = about | {"about": f.flags[column]} if f.flags else about
            found.append(pyarrow.field(column, kind, nullable=f.none is not None, metadata=of_one))
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
