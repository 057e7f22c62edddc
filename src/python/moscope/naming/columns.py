# SPDX-License-Identifier: BSD-3-Clause
"""Names as columns: from the engine's packed rows to the tables lines, pairs, transfers and fields of a point (docs/run-directory.md).

Every line and every instruction of a point gets its name here, once. Sums by name, function or chip are queries over these tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import compute

from moscope.naming import layout
from moscope.naming.dwarf.sources import Source
from moscope.naming.rows import CLASSES, FETCH, KERNEL_HALF, PAGE, PAGE_KNOWN, USER, WALK, Rows, distinct, unpacked
from moscope.schema.enumerations import SPIN

# The path of an object takes many reads of guest memory. Only this many lines, those with the most waiting, have objects and fields,
# and names for the bytes that each waiter accessed.
DETAILED = 500
# A point of 48 cores can have millions of rows. What takes several times their memory is done in parts of so many.
PART, INSTRUCTIONS = 1024, 1 << 18
SECONDARY = CLASSES.index("secondary")


class Named(Protocol):
    """The name of a line and its parts."""

    name: str
    kind: str
    field: str

    @property
    def object(self) -> str: ...

    @property
    def type(self) -> str: ...


class Role(Protocol):
    """What a type of controller is to the machine (moscope.config.bindings)."""

    @property
    def role(self) -> str: ...

    @property
    def per(self) -> str: ...


class Names(Protocol):
    """The interface of a Namer."""

    def line(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: Mapping[str, int] | None = None,
             free: bool = False) -> Named: ...

    def allocates(self, pc: int) -> bool: ...

    def code(self, pc: int, cr3: int = 0) -> str: ...

    def source(self, pc: int, cr3: int = 0) -> Source | None: ...

    def process(self, cr3: int) -> str: ...


@dataclass
class Tables:
    """A point's attribution as Arrow tables."""

    lines: pa.Table
    pairs: pa.Table
    transfers: pa.Table
    fields: pa.Table = field(default_factory=layout.SCHEMA.empty_table)

    def write(self, folder: Path) -> None:
        """NAME.parquet of each; the file's metadata has its `schema`."""
        from pyarrow import parquet

        for name, table in vars(self).items():
            described = table.replace_schema_metadata({"schema": f"moscope.{name}/1"})
            parquet.write_table(described, folder / f"{name}.parquet", compression="zstd")

    def total(self, column: str) -> int:
        """Of all lines; stall or spin."""
        return int(compute.sum(self.lines[column]).as_py() or 0)


def tables(namer: Names, packed: tuple[bytes, bytes, bytes], suppliers: Sequence[str],
           roles: Mapping[str, Role] | None = None) -> Tables:
    """`packed`: the engine's rows; `suppliers`: the protocol's machine types, by number; `roles`: of these types."""
    lines, pairs, transfers = unpacked(packed)
    samples = Samples(namer, lines, pairs)
    named = Kinds(samples)
    return Tables(_lines(lines, named), _pairs(namer, lines, pairs, samples), _transfers(lines, transfers, suppliers, roles or {}),
                  layout.fields(lines, samples, named.names, named.which))


class Samples:
    """Names for lines, from the samples in their rows."""

    def __init__(self, namer: Names, rows: Rows, pairs: Rows) -> None:
        self._namer = namer
        self._pairs = pairs
        self._allocates = _allocates(namer, pairs)
        self._free = _mostly(self._allocates, pairs, pairs["line"], rows["stall"] + rows["spin"])
        self._rows = rows
        self._part: list[tuple[Any, ...]] = []
        self._part_number = -1
        self.count = len(rows)
        order = np.lexsort((rows["use"], rows["line"], -(rows["stall"] + rows["spin"])))
        self.detailed: list[int] = order[:DETAILED].tolist()

    def named(self, n: int, offset: int | None = None, free: bool | None = None) -> Named:
        """Of row `n`: the byte at `offset`, else the one with the most waiting. `free`: most of it was the slab allocator's."""
        line, va, hottest, cr3, flags, page = self._row(n)
        known = dict(zip(PAGE, page, strict=True)) if flags & PAGE_KNOWN else None
        return self._namer.line(line, va, hottest if offset is None else offset, cr3, bool(flags & WALK), known,
                                bool(self._free[n]) if free is None else free)

    def _row(self, n: int) -> tuple[Any, ...]:
        """As Python's objects."""
        number, at = divmod(n, PART)
        if number != self._part_number:
            rows = self._rows[number * PART:(number + 1) * PART]
            self._part = list(zip(*(rows[name].tolist() for name in ("line", "va", "offset", "address_space", "flags")),
                                  zip(*(rows[f"page_{part}"].tolist() for part in PAGE), strict=True), strict=True))
            self._part_number = number
        return self._part[at]

    def accessed(self) -> Rows:
        """Of each pair, the name of the byte that its waiter accessed; None beyond the detailed lines."""
        names = np.full(len(self._pairs), None, object)
        chosen = np.flatnonzero(np.isin(self._pairs["line"], self.detailed))
        of = self._pairs[chosen]
        first, which = distinct([of["line"], of["offset"]])
        time = np.zeros(len(first), np.int64)
        np.add.at(time, which, of["stall"] + of["spin"])
        free = _mostly(self._allocates[chosen], of, which, time)
        found = [self.named(line, offset, is_free).name for line, offset, is_free
                 in zip(of["line"][first].tolist(), of["offset"][first].tolist(), free.tolist(), strict=True)]
        names[chosen] = np.array(found, object)[which] if len(found) else None
        return names


class Kinds:
    """The names of all lines. Only those of detailed lines are kept one by one."""

    def __init__(self, samples: Samples) -> None:
        detailed = set(samples.detailed)
        numbers: dict[tuple[str, str], int] = {}
        self.which = np.empty(samples.count, np.int32)  # of each row, the number of its name
        self.objects: list[str | None] = [None] * samples.count
        self.fields: list[str | None] = [None] * samples.count
        for n in range(samples.count):
            one = samples.named(n)
            self.which[n] = numbers.setdefault((one.name, one.kind), len(numbers))
            if n in detailed:
                self.objects[n], self.fields[n] = one.object or None, one.field or None
        self.names = list(numbers)  # with kinds


def _allocates(namer: Names, pairs: Rows) -> Rows:
    """Of each pair, whether the slab allocator waited."""
    waiters, which = np.unique(pairs["waiter"], return_inverse=True)
    by: Rows = np.array([namer.allocates(pc) for pc in waiters.tolist()], bool)[which]
    return by


def _mostly(chosen: Rows, pairs: Rows, group: Rows, time: Rows) -> Rows:
    """Of each group of pairs, whether the chosen ones waited for more than half of `time`."""
    by = np.zeros(len(time), np.int64)
    np.add.at(by, group[chosen], (pairs["stall"] + pairs["spin"])[chosen])
    found: Rows = 2 * by > time
    return found


def _lines(rows: Rows, named: Kinds) -> pa.Table:
    flags, unknown = rows["flags"], rows["flags"] & PAGE_KNOWN == 0
    return pa.table({
        "line": rows["line"], "use": rows["use"], "name": numbered([name for name, _ in named.names], named.which),
        "kind": numbered([kind for _, kind in named.names], named.which),
        "object": pa.array(named.objects, pa.string()), "field": pa.array(named.fields, pa.string()), "class": words(main_classes(rows)),
        "stall": rows["stall"], "spin": rows["spin"], "spin_iterations": rows["spin_iterations"], "transfers": rows["transfers"],
        "cores": np.bitwise_count(rows["waiters"]), "waiters": rows["waiters"],
        **{f"{c}_stall": np.ascontiguousarray(rows["class_stall"][:, k]) for k, c in enumerate(CLASSES)},
        **{f"{c}_count": np.ascontiguousarray(rows["class_count"][:, k]) for k, c in enumerate(CLASSES)},
        "va": rows["va"], "address_space": rows["address_space"], "offset": rows["offset"],
        "walk": flags & WALK != 0, "fetch": flags & FETCH != 0, "user": flags & USER != 0,
        **{f"page_{part}": pa.array(rows[f"page_{part}"], mask=unknown) for part in PAGE}})


def main_classes(rows: Rows) -> list[str]:
    """Of each line the class with the most stall, of several the one with the most misses; `spin` where more time went there.
    `secondary` only where there is no other: the class of the older miss says why the line was not there."""
    best = np.zeros(len(rows), np.int64)
    at = np.arange(len(rows))
    stall, count = rows["class_stall"].copy(), rows["class_count"].copy()
    whole, others = stall.max(axis=1, initial=0), np.delete(count, SECONDARY, 1).any(axis=1)
    stall[others, SECONDARY] = count[others, SECONDARY] = 0
    for k in range(1, len(CLASSES)):
        better = (stall[:, k] > stall[at, best]) | (stall[:, k] == stall[at, best]) & (count[:, k] > count[at, best])
        best[better] = k
    spins = rows["spin"] > whole
    return [SPIN if spin else CLASSES[k] for spin, k in zip(spins.tolist(), best.tolist(), strict=True)]


def _pairs(namer: Names, lines: Rows, rows: Rows, samples: Samples) -> pa.Table:
    of = rows["line"]
    # Kernel code has no address space of its own. Where it waits for a user's write, that was most likely the line's.
    spaces = np.where(rows["address_space"] > 0, rows["address_space"], lines["address_space"][of])
    return pa.table({
        "line": lines["line"][of], "use": lines["use"][of], "writer": pa.array(rows["writer"], mask=rows["writer"] == 0),
        "writer_function": code_names(namer, rows["writer"], spaces), "waiter": rows["waiter"],
        "waiter_function": code_names(namer, rows["waiter"], spaces), "address_space": rows["address_space"],
        **{f"{role}_{what}": column for role in ("writer", "waiter")
           for what, column in zip(("source", "inlined"), code_sources(namer, rows[role], spaces), strict=True)},
        "kernel": rows["waiter"] >= KERNEL_HALF, "offset": rows["offset"], "accessed": pa.array(samples.accessed(), pa.string()),
        "stall": rows["stall"], "spin": rows["spin"], "count": rows["count"]})


def _transfers(lines: Rows, rows: Rows, suppliers: Sequence[str], roles: Mapping[str, Role]) -> pa.Table:
    of = rows["line"]
    of_type = [roles.get(supplier) for supplier in suppliers]
    played = {"supplier_role": [one.role if one else None for one in of_type],
              "supplier_per": [one.per if one else None for one in of_type]}
    return pa.table({"line": lines["line"][of], "use": lines["use"][of],
                     "supplier": pa.DictionaryArray.from_arrays(pa.array(rows["supplier"].astype("int32")),
                                                                pa.array(suppliers, pa.string())),
                     **{name: numbered(words_of, rows["supplier"].astype("int64")) for name, words_of in played.items()},
                     "from_chip": rows["from"], "to_chip": rows["to"], "count": rows["count"], "stall": rows["stall"]})


def words(values: Sequence[str]) -> pa.Array:
    """Repeated words, each stored once."""
    return pa.array(values, pa.string()).dictionary_encode()


def instructions(pcs: Rows, spaces: Rows) -> tuple[list[tuple[int, int]], Rows]:
    """The distinct instructions with their address spaces, 0 for those of the kernel, and the number of each row's."""
    numbers: dict[tuple[int, int], int] = {}
    which = np.empty(len(pcs), np.int32)
    for at in range(0, len(pcs), INSTRUCTIONS):
        part = pcs[at:at + INSTRUCTIONS]
        kept = np.where(part < KERNEL_HALF, spaces[at:at + INSTRUCTIONS], 0)
        first, of = distinct([part, kept])
        found = [numbers.setdefault(one, len(numbers)) for one in zip(part[first].tolist(), kept[first].tolist(), strict=True)]
        which[at:at + INSTRUCTIONS] = np.array(found, np.int32)[of]
    return list(numbers), which


def code_names(namer: Names, pcs: Rows, spaces: Rows) -> pa.Array:
    """The functions of instructions; null for an instruction at 0."""
    first, which = instructions(pcs, spaces)
    return numbered([namer.code(pc, cr3) if pc else None for pc, cr3 in first], which)


def code_sources(namer: Names, pcs: Rows, spaces: Rows) -> tuple[pa.Array, pa.Array]:
    """File and line of instructions, and the calls of functions inlined there; null where they are not known or there are none."""
    first, which = instructions(pcs, spaces)
    found = [namer.source(pc, cr3) if pc else None for pc, cr3 in first]
    return (numbered([one.at if one else None for one in found], which),
            numbered([one.calls or None if one else None for one in found], which))


def process_names(namer: Names, spaces: Rows) -> pa.Array:
    """The processes of address spaces; null where none is known."""
    found, which = np.unique(spaces, return_inverse=True)
    return numbered([namer.process(cr3) or None for cr3 in found.tolist()], which)


def numbered(values: Sequence[str | None], which: Rows) -> pa.Array:
    """A dictionary array: `values` by number, each word stored once."""
    numbers: dict[str, int] = {}
    of = np.array([-1 if word is None else numbers.setdefault(word, len(numbers)) for word in values], np.int32)
    found = of[which] if len(of) else np.zeros(len(which), np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(found, mask=found < 0), pa.array(list(numbers), pa.string()))
