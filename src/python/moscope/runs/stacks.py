# SPDX-License-Identifier: BSD-3-Clause
"""Call chains of waiting cores: stacks.parquet, from the engine's samples (src/attribution/stack_samples.hh). Samples with the same
chain, process, name of the line and source line of the innermost call are one row."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from moscope.guest.addresses import KERNEL_HALF
from moscope.naming.namer import Namer
from moscope.naming.own_code import INLINED, is_own, shown
from moscope.naming.unwind import chains

NAME, SCHEMA = "stacks.parquet", "moscope.stacks/1"
NOTHING = ("", "")  # name and kind for a line that has no row
INTERRUPT = re.compile(r"asm_(sysvec|common_interrupt|exc_nmi)|(sysvec|common_interrupt|exc_nmi)")  # entries of the kernel
TEXTS = ("name", "kind", "process", "at_function", "at_source", "at_inlined")


def write(folder: Path, packed: bytes, namer: Namer, lines: Any) -> Any:
    """Writes the file; returns the table. `lines`: the point's table of lines."""
    from pyarrow import parquet

    made = table(packed, namer, lines)
    parquet.write_table(made.replace_schema_metadata({"schema": SCHEMA}), folder / NAME, compression="zstd")
    return made


def table(packed: bytes, namer: Namer, lines: Any) -> Any:
    import pyarrow

    named, unwinder = _names(lines, {sample.line for sample in chains.samples(packed)}), namer.unwinder()
    rows: dict[tuple[Any, ...], list[int]] = {}
    for sample in chains.samples(packed):
        chain = unwinder.chain(sample)
        frames = tuple(part for address in reversed(chain) for part in _functions(namer, address, sample.address_space))
        key = *named.get(sample.line, NOTHING), namer.process(sample.address_space), *_at(namer, chain, sample.address_space), frames
        sums = rows.setdefault(key, [0, 0])
        sums[0] += sample.waiting
        sums[1] += 1
    ordered = sorted(rows.items(), key=lambda row: (-row[1][0], row[0]))
    columns = list(zip(*(key for key, _ in ordered), strict=True)) or [()] * (len(TEXTS) + 1)
    text = pyarrow.string()
    return pyarrow.table({
        **{name: pyarrow.array(column, text) for name, column in zip(TEXTS, columns, strict=False)},
        "frames": pyarrow.array([list(frames) for frames in columns[-1]], pyarrow.list_(text)),
        "waiting": pyarrow.array([sums[0] for _, sums in ordered], pyarrow.int64()),
        "samples": pyarrow.array([sums[1] for _, sums in ordered], pyarrow.int64()),
    })


def _at(namer: Namer, chain: list[int], space: int) -> tuple[str, str, str]:
    """Function, source line and inlined functions of the innermost instruction with a source line of the program's own code. Empty
    if there is none, or if the program was interrupted, so that it did not call the waiting code."""
    if any(INTERRUPT.match(namer.code(address)) for address in chain if address >= KERNEL_HALF):
        return "", "", ""
    for address in chain:
        source = namer.own_source(address, space) if address < KERNEL_HALF else None
        function = namer.code(address, space) if source else ""
        if source and is_own(shown(function, source.at, source.inlined)[0]):
            return function, source.at, source.calls
    return "", "", ""


def _functions(namer: Namer, address: int, space: int) -> Iterator[str]:
    """The function of an instruction, then those that were inlined there, outermost first."""
    yield namer.code(address, 0 if address >= KERNEL_HALF else space)
    source = namer.source(address, space)
    for call in reversed(source.inlined if source else ()):
        yield call.split(' called at ')[0] + INLINED


def _names(lines: Any, wanted: set[int]) -> dict[int, tuple[str, str]]:
    """Name and kind of each wanted line, for the use of its page with the most waiting. A point can have ten million lines."""
    import numpy

    sampled = numpy.fromiter(wanted, numpy.uint64, len(wanted))
    chosen = lines.take(numpy.flatnonzero(numpy.isin(lines["line"].to_numpy(), sampled)))
    found: dict[int, tuple[str, str]] = {}
    best: dict[int, int] = {}
    columns = (chosen[name].to_pylist() for name in ("line", "name", "kind", "stall", "spin"))
    for line, name, kind, stall, spin in zip(*columns, strict=True):
        if stall + spin >= best.get(line, 0):
            best[line], found[line] = stall + spin, (name, kind)
    return found
