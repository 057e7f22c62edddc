# SPDX-License-Identifier: BSD-3-Clause
"""Collapsed stacks, as flame graph programs and speedscope read them: `process;caller;function;line weight`, from the samples of call
chains. A run without samples has `function;inlined function;line weight`. The weight is stall and spinning in nanoseconds, rounded;
stacks below half a nanosecond are left out."""

from collections.abc import Iterator

from analysis.chains import chains
from analysis.described import FS_PER_NS
from analysis.exports.base import Export, Slice, stacks
from analysis.run_directory import Point


def text(p: Point) -> str:
    weights: dict[str, int] = {}
    for parts, weight in weighted(p):
        key = ";".join(plain(part) for part in parts)
        weights[key] = weights.get(key, 0) + weight
    rounded = ((key, (weight + FS_PER_NS // 2) // FS_PER_NS) for key, weight in sorted(weights.items()))
    return "".join(f"{key} {weight}\n" for key, weight in rounded if weight)


def weighted(p: Point) -> Iterator[tuple[tuple[str, ...], int]]:
    found = chains(p)
    for chain in found:
        yield (chain.process or "?", *chain.frames, chain.name), chain.waiting
    for stack in stacks(p) if not found else ():
        yield (*(frame.function for frame in stack.frames), stack.name), stack.stall + stack.spin


def plain(part: str) -> str:
    """Without the characters that separate."""
    return part.replace(";", ",").replace("\n", " ")


def _files(p: Point, _: Slice) -> dict[str, bytes]:
    return {"collapsed.txt": text(p).encode()}


EXPORT = Export("Collapsed stacks for flame graphs: process, call chain, line; weighted by waiting in ns.", _files)
