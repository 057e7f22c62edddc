# SPDX-License-Identifier: BSD-3-Clause
"""Names as columns: from the engine's packed rows to the tables lines, pairs, transfers and fields of a point
(docs/run-directory.md).

Every line and every instruction of a point is named here, once. Sums by name, function or chip are queries over these tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import compute

from moscope.guest.addresses import KERNEL_HALF, USER_TOP
from moscope.naming import layout
from moscope.naming.dwarf.sources import Source
from moscope.naming.guest import PAGE as PAGE_BYTES
from moscope.naming.rows import CLASSES, DEVICE_PC, FETCH, PAGE, PAGE_KNOWN, USER, WALK, PackedRows, Rows, distinct, unpacked
from moscope.schema.constants import LINE
from moscope.schema.enumerations import SPIN

# The path of an object takes many reads of guest memory. Only this many lines, those with the most waiting, have objects and fields,
# and names for the bytes that each waiter accessed.
DETAILED = 500
# Kinds of a program's memory in which a whole page has one name unless a part of the page has its own name.
OF_WHOLE_PAGES = ("anonymous memory", "heap", "stack")
PART = 1024  # how many rows are converted to Python objects at a time: a point of 48 cores can have millions
A_DEVICE = "a device"  # in place of a writer's function
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
    """The role of a type of controller in the machine (moscope.config.bindings)."""

    @property
    def role(self) -> str: ...

    @property
    def per(self) -> str: ...


class Names(Protocol):
    """The part of a Namer that this module uses."""

    def line(self, line: int, va: int, offset: int, cr3: int, walk: bool, page: Mapping[str, int] | None = None,
             free: bool = False) -> Named: ...

    def whole_page(self, va: int, cr3: int) -> bool: ...

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
        """Writes NAME.parquet for each table; the file's metadata contains the `schema`."""
        from pyarrow import parquet

        for name, table in vars(self).items():
            described = table.replace_schema_metadata({"schema": f"moscope.{name}/1"})
            parquet.write_table(described, folder / f"{name}.parquet", compression="zstd")

    def total(self, column: str) -> int:
        """The sum of a column (stall or spin) over all lines."""
        return int(compute.sum(self.lines[column]).as_py() or 0)


def tables(namer: Names, packed: PackedRows, suppliers: Sequence[str],
           roles: Mapping[str, Role] | None = None) -> Tables:
    """Names all rows. `packed`: the engine's rows; `suppliers`: the protocol's machine types, by number; `roles`: the roles of
    these types."""
    lines, pairs, transfers = unpacked(packed)
    # Kernel code has no address space of its own. When it waits for a write by user code, the address space is most likely that of
    # the line.
    spaces = np.where(pairs["address_space"] > 0, pairs["address_space"], lines["address_space"][pairs["line"]])
    writers, waiters = Code(namer, pairs["writer"], spaces), Code(namer, pairs["waiter"], spaces)
    samples = Samples(namer, lines, pairs, waiters.allocates())
    named = Kinds(samples)
    return Tables(_lines(lines, named), _pairs(lines, pairs, samples, writers, waiters),
                  _transfers(lines, transfers, suppliers, roles or {}), layout.fields(lines, samples, named.names, named.which))


class Samples:
    """Names for lines, from the samples in their rows."""

    def __init__(self, namer: Names, rows: Rows, pairs: Rows, allocates: Rows) -> None:
        """`allocates`: for each pair, whether the waiter is the slab allocator."""
        self._namer = namer
        self._pairs = pairs
        self._allocates = allocates
        waiting = rows["stall"] + rows["spin"]
        self._free = _mostly(allocates, pairs, pairs["line"], waiting)
        self._rows = rows
        self._part: list[tuple[Any, ...]] = []
        self._part_number = -1
        self.count = len(rows)
        most = np.flatnonzero(waiting >= np.partition(waiting, -DETAILED)[-DETAILED]) if self.count > DETAILED else np.arange(self.count)
        order = np.lexsort((rows["use"][most], rows["line"][most], -waiting[most]))
        self.detailed: list[int] = most[order[:DETAILED]].tolist()

    def named(self, n: int, offset: int | None = None, free: bool | None = None) -> Named:
        """The name of a byte in the line of row `n`: at `offset`, or by default the byte with the most waiting. `free`: most of
        this waiting was the slab allocator's."""
        line, va, hottest, cr3, flags, page = self._row(n)
        known = dict(zip(PAGE, page, strict=True)) if flags & PAGE_KNOWN else None
        return self._namer.line(line, va, hottest if offset is None else offset, cr3, bool(flags & WALK), known,
                                bool(self._free[n]) if free is None else free)

    def pages(self) -> list[Rows]:
        """Groups of rows that belong to the same page of a program, for pages with several lines, in order of their first row.
        The lines of a group were reached through the same page of the same address space while the page had the same description."""
        rows = self._rows
        chosen = np.flatnonzero((rows["va"] > 0) & (rows["va"] < USER_TOP) & (rows["flags"] & WALK == 0)
                                & (rows["va"] % PAGE_BYTES // LINE == rows["line"] % PAGE_BYTES // LINE))
        key = [rows["line"][chosen] // PAGE_BYTES, rows["va"][chosen] // PAGE_BYTES, rows["address_space"][chosen],
               rows["flags"][chosen] & PAGE_KNOWN, *(rows[f"page_{part}"][chosen] for part in PAGE)]
        mixed = np.zeros(len(chosen), np.uint64)
        for column in key:
            mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        order = np.argsort(mixed, kind="stable")
        new = np.zeros(len(chosen), bool)  # compares the columns, because different keys may have the same hash
        new[:1] = True
        for column in key:
            new[1:] |= np.diff(column[order]) != 0
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(chosen))
        several = np.flatnonzero(last - first > 1)
        several = several[np.argsort(order[first[several]])]
        chosen = chosen[order]
        return [chosen[a:b] for a, b in zip(first[several].tolist(), last[several].tolist(), strict=True)]

    def whole_page(self, n: int) -> bool:
        """Whether no part of the page of row `n` has its own name."""
        _, va, _, cr3, *_ = self._row(n)
        return self._namer.whole_page(va, cr3)

    def _row(self, n: int) -> tuple[Any, ...]:
        """The fields of a row as Python objects."""
        number, at = divmod(n, PART)
        if number != self._part_number:
            rows = self._rows[number * PART:(number + 1) * PART]
            self._part = list(zip(*(rows[name].tolist() for name in ("line", "va", "offset", "address_space", "flags")),
                                  zip(*(rows[f"page_{part}"].tolist() for part in PAGE), strict=True), strict=True))
            self._part_number = number
        return self._part[at]

    def accessed(self) -> Rows:
        """For each pair, the name of the byte that its waiter accessed; None for lines that are not detailed."""
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
    """The name and kind of each line. Objects and fields are kept only for detailed lines."""

    def __init__(self, samples: Samples) -> None:
        numbers: dict[tuple[str, str], int] = {}
        self.which = np.full(samples.count, -1, np.int32)  # for each row, the number of its name
        self.objects: list[str | None] = [None] * samples.count
        self.fields: list[str | None] = [None] * samples.count
        for rows in samples.pages():
            one = samples.named(int(rows[0]))
            if one.kind in OF_WHOLE_PAGES and samples.whole_page(int(rows[0])):
                self.which[rows] = numbers.setdefault((one.name, one.kind), len(numbers))
        for n in np.flatnonzero(self.which < 0).tolist():
            one = samples.named(n)
            self.which[n] = numbers.setdefault((one.name, one.kind), len(numbers))
        for n in samples.detailed:
            one = samples.named(n)
            self.objects[n], self.fields[n] = one.object or None, one.field or None
        self.names = list(numbers)  # with kinds


class Code:
    """A column of instructions with their address spaces `spaces`. Each distinct instruction is named once."""

    def __init__(self, namer: Names, pcs: Rows, spaces: Rows) -> None:
        self._namer = namer
        self._distinct, self._which = instructions(pcs, spaces)

    def functions(self) -> pa.Array:
        """The functions of the instructions; null for an instruction at 0."""
        return numbered([A_DEVICE if pc == DEVICE_PC else self._namer.code(pc, cr3) if pc else None for pc, cr3 in self._distinct],
                        self._which)

    def sources(self) -> tuple[pa.Array, pa.Array]:
        """File and line, and the calls of functions inlined there; null where they are unknown or there are no such calls."""
        found = [self._namer.source(pc, cr3) if pc > DEVICE_PC else None for pc, cr3 in self._distinct]
        return (numbered([one.at if one else None for one in found], self._which),
                numbered([one.calls or None if one else None for one in found], self._which))

    def allocates(self) -> Rows:
        """Whether each instruction belongs to the slab allocator."""
        found: Rows = np.array([self._namer.allocates(pc) for pc, _ in self._distinct], bool)[self._which]
        return found


def _mostly(chosen: Rows, pairs: Rows, group: Rows, time: Rows) -> Rows:
    """For each group of pairs, whether the chosen pairs waited for more than half of `time`."""
    by = np.zeros(len(time), np.int64)
    np.add.at(by, group[chosen], (pairs["stall"] + pairs["spin"])[chosen])
    found: Rows = 2 * by > time
    return found


def _lines(rows: Rows, named: Kinds) -> pa.Table:
    flags, unknown = rows["flags"], rows["flags"] & PAGE_KNOWN == 0
    return pa.table({
        "line": rows["line"], "use": rows["use"], "name": numbered([name for name, _ in named.names], named.which),
        "kind": numbered([kind for _, kind in named.names], named.which),
        "object": pa.array(named.objects, pa.string()), "field": pa.array(named.fields, pa.string()), "class": main_classes(rows),
        "stall": rows["stall"], "spin": rows["spin"], "spin_iterations": rows["spin_iterations"], "transfers": rows["transfers"],
        "cores": np.bitwise_count(rows["waiters"]), "waiters": rows["waiters"],
        **{f"{c}_stall": np.ascontiguousarray(rows["class_stall"][:, k]) for k, c in enumerate(CLASSES)},
        **{f"{c}_count": np.ascontiguousarray(rows["class_count"][:, k]) for k, c in enumerate(CLASSES)},
        "va": rows["va"], "address_space": rows["address_space"], "offset": rows["offset"],
        "walk": flags & WALK != 0, "fetch": flags & FETCH != 0, "user": flags & USER != 0,
        **{f"page_{part}": pa.array(rows[f"page_{part}"], mask=unknown) for part in PAGE}})


def main_classes(rows: Rows) -> pa.Array:
    """The class of each line with the most stall; of equal classes, the one with the most misses. It is `spin` if more time was
    spent spinning. `secondary` is chosen only if there is no other class: the class of the earlier miss says why the line was
    missing."""
    best = np.zeros(len(rows), np.int64)
    at = np.arange(len(rows))
    stall, count = rows["class_stall"].copy(), rows["class_count"].copy()
    whole, others = stall.max(axis=1, initial=0), np.delete(count, SECONDARY, 1).any(axis=1)
    stall[others, SECONDARY] = count[others, SECONDARY] = 0
    for k in range(1, len(CLASSES)):
        better = (stall[:, k] > stall[at, best]) | (stall[:, k] == stall[at, best]) & (count[:, k] > count[at, best])
        best[better] = k
    spins = rows["spin"] > whole
    return numbered([*CLASSES, SPIN], np.where(spins, len(CLASSES), best))


def _pairs(lines: Rows, rows: Rows, samples: Samples, writers: Code, waiters: Code) -> pa.Table:
    of = rows["line"]
    return pa.table({
        "line": lines["line"][of], "use": lines["use"][of], "writer": pa.array(rows["writer"], mask=rows["writer"] <= DEVICE_PC),
        "writer_function": writers.functions(), "waiter": rows["waiter"],
        "waiter_function": waiters.functions(), "address_space": rows["address_space"],
        **{f"{role}_{what}": column for role, code in (("writer", writers), ("waiter", waiters))
           for what, column in zip(("source", "inlined"), code.sources(), strict=True)},
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


def instructions(pcs: Rows, spaces: Rows) -> tuple[list[tuple[int, int]], Rows]:
    """The distinct instructions with their address spaces (0 for kernel code), and for each row the number of its instruction."""
    code, space = (pa.array(column).dictionary_encode() for column in (pcs, np.where(pcs < KERNEL_HALF, spaces, 0)))
    many = max(len(space.dictionary), 1)
    both = pa.array(code.indices.to_numpy().astype(np.int64) * many + space.indices.to_numpy()).dictionary_encode()
    of_code, of_space = np.divmod(both.dictionary.to_numpy(), many)
    return (list(zip(code.dictionary.to_numpy()[of_code].tolist(), space.dictionary.to_numpy()[of_space].tolist(), strict=True)),
            both.indices.to_numpy())


def process_names(namer: Names, spaces: Rows) -> pa.Array:
    """The names of the processes of address spaces; null if none is known."""
    found, which = np.unique(spaces, return_inverse=True)
    return numbered([namer.process(cr3) or None for cr3 in found.tolist()], which)


def numbered(values: Sequence[str | None], which: Rows) -> pa.Array:
    """A dictionary array of the `values` with the numbers `which`; each word is stored once."""
    numbers: dict[str, int] = {}
    of = np.array([-1 if word is None else numbers.setdefault(word, len(numbers)) for word in values], np.int32)
    found = of[which] if len(of) else np.zeros(len(which), np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(found, mask=found < 0), pa.array(list(numbers), pa.string()))
