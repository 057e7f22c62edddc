# SPDX-License-Identifier: BSD-3-Clause
"""Collapsed stacks, as flame graph programs and speedscope read them: `function;inlined function;line weight`. The weight is stall and
spinning in nanoseconds, rounded; stacks below half a nanosecond are left out."""

from analysis.exports.base import FS_PER_NS, Export, Slice, stacks
from analysis.run_directory import Point


def text(p: Point) -> str:
    weights: dict[str, int] = {}
    for stack in stacks(p):
        key = ";".join(plain(part) for part in (*(frame.function for frame in stack.frames), stack.name))
        weights[key] = weights.get(key, 0) + stack.stall + stack.spin
    rounded = ((key, (weight + FS_PER_NS // 2) // FS_PER_NS) for key, weight in sorted(weights.items()))
    return "".join(f"{key} {weight}\n" for key, weight in rounded if weight)


def plain(part: str) -> str:
    """Without the characters that separate."""
    return part.replace(";", ",").replace("\n", " ")


def _files(p: Point, _: Slice) -> dict[str, bytes]:
    return {"collapsed.txt": text(p).encode()}


EXPORT = Export("Collapsed stacks for flame graphs: function, inlined functions, line; weighted by waiting in ns.", _files)
