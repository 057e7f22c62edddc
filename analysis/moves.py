# SPDX-License-Identifier: BSD-3-Clause
"""From where to where lines have moved: from a chip's caches or a node's memory to the chip of the core that got them.

Counts what was sent; a core that had the line and lacked the right to write only, or found it in its own caches, was sent nothing.
"""

from typing import Any

# (kind of supplier, its chip, the chip that got the line) -> (times, stall for it in fs)
Moves = dict[tuple[str, int, int], tuple[int, int]]
MEMORY = "Directory"
WORDS = {"L1Cache": "cores of chip {}", "L3Cache": "L3 of chip {}", MEMORY: "memory of node {}"}


def of_line(one: dict[str, Any]) -> Moves:
    """Of a line of lines.json; empty in runs of versions that did not tell."""
    found: Moves = {}
    for move in one.get("moves") or []:
        key = str(move.get("supplier") or ""), int(move.get("from") or 0), int(move.get("to") or 0)
        _add(found, key, (int(move.get("count") or 0), int(move.get("stall") or 0)))
    return {key: sums for key, sums in found.items() if sums[0]}


def together(several: list[Moves]) -> Moves:
    found: Moves = {}
    for one in several:
        for key, sums in one.items():
            _add(found, key, sums)
    return found


def _add(found: Moves, key: tuple[str, int, int], sums: tuple[int, int]) -> None:
    times, stall = found.get(key, (0, 0))
    found[key] = times + sums[0], stall + sums[1]


def source(kind: str, chip: int) -> str:
    """In words: `cores of chip 3`."""
    return WORDS.get(kind, f"{kind} of chip {{}}").format(chip)


def matrix(found: Moves) -> tuple[list[int], list[tuple[str, list[int]]]]:
    """The chips that got lines, and for each that sent some its name with the times by them; caches before memories."""
    to = sorted({chip for _, _, chip in found})
    senders = sorted({(kind == MEMORY, kind, chip) for kind, chip, _ in found})
    return to, [(source(kind, chip), [found.get((kind, chip, t), (0, 0))[0] for t in to]) for _, kind, chip in senders]
