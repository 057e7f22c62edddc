# SPDX-License-Identifier: BSD-3-Clause
"""Call chains of waiting cores: stacks.parquet, from the engine's samples (src/attribution/stack_samples.hh). Samples with the same
chain, process and name of the line are one row."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from moscope.naming.namer import Namer
from moscope.naming.unwind import chains

NAME, SCHEMA = "stacks.parquet", "moscope.stacks/1"
NOTHING = ("", "")  # name and kind of a line that has no row


def write(folder: Path, packed: bytes, namer: Namer, lines: Any) -> int:
    """Writes the file; returns the number of samples. `lines`: the point's table of lines."""
    from pyarrow import parquet

    made, count = table(packed, namer, lines)
    parquet.write_table(made.replace_schema_metadata({"schema": SCHEMA}), folder / NAME, compression="zstd")
    return count


def table(packed: bytes, namer: Namer, lines: Any) -> tuple[Any, int]:
    import pyarrow

    named, unwinder = _names(lines), namer.unwinder()
    rows: dict[tuple[Any, ...], list[int]] = {}
    count = 0
    for sample in chains.samples(packed):
        frames = tuple(part for address in reversed(unwinder.chain(sample)) for part in _functions(namer, address, sample.address_space))
        key = *named.get(sample.line, NOTHING), namer.process(sample.address_space), frames
        sums = rows.setdefault(key, [0, 0])
        sums[0] += sample.waiting
        sums[1] += 1
        count += 1
    ordered = sorted(rows.items(), key=lambda row: (-row[1][0], row[0]))
    columns = list(zip(*(key for key, _ in ordered), strict=True)) or [(), (), (), ()]
    text = pyarrow.string()
    return pyarrow.table({
        "name": pyarrow.array(columns[0], text), "kind": pyarrow.array(columns[1], text), "process": pyarrow.array(columns[2], text),
        "frames": pyarrow.array([list(frames) for frames in columns[3]], pyarrow.list_(text)),
        "waiting": pyarrow.array([sums[0] for _, sums in ordered], pyarrow.int64()),
        "samples": pyarrow.array([sums[1] for _, sums in ordered], pyarrow.int64()),
    }), count


def _functions(namer: Namer, address: int, space: int) -> Iterator[str]:
    """The function of an instruction, then those that were inlined there, outermost first."""
    yield namer.code(address, 0 if address >= chains.KERNEL_HALF else space)
    source = namer.source(address, space)
    for call in reversed(source.inlined if source else ()):
        yield f"{call.split(' called at ')[0]} (inlined)"


def _names(lines: Any) -> dict[int, tuple[str, str]]:
    """Name and kind of each line, of its use with the most waiting."""
    found: dict[int, tuple[str, str]] = {}
    best: dict[int, int] = {}
    columns = (lines[name].to_pylist() for name in ("line", "name", "kind", "stall", "spin"))
    for line, name, kind, stall, spin in zip(*columns, strict=True):
        if stall + spin >= best.get(line, 0):
            best[line], found[line] = stall + spin, (name, kind)
    return found
