# SPDX-License-Identifier: BSD-3-Clause
"""Random accesses for the cross-check: few lines, so that cores meet at them, of which some fall into the same sets of
every cache, so that lines are replaced."""

import random
from typing import Any

from moscope.gem5.job import ScriptedAccess

LINE = 64
# How often each operation comes; flushes are rare, as they empty what the others fill.
OPS = {"ld": 44, "st": 30, "if": 12, "rmw": 12, "flush": 2}
LINES_PER_NODE = {"tiny": (4, 8), "machine": (8, 24)}
# Distance of lines that fall into the same set of any array of the shipped machines, filters included.
STRIDE = 1 << 22


def pool(machine: dict[str, Any], caches: str) -> list[int]:
    """Lines that are accessed: per node some side by side and some that meet in one set."""
    beside, same_set = LINES_PER_NODE[caches]
    lines = []
    for node in machine["address_map"]:
        lines += [node["base"] + LINE * n for n in range(beside)]
        stride = min(STRIDE, node["bytes"] // (same_set + 1))
        lines += [node["base"] + stride * n for n in range(1, same_set + 1)]
    return lines


def operations(flush: bool) -> tuple[list[str], list[int]]:
    """Those that a protocol takes, and how often each comes."""
    taken = {op: weight for op, weight in OPS.items() if flush or op != "flush"}
    return list(taken), list(taken.values())


def one_at_a_time(machine: dict[str, Any], accesses: int, seed: int, caches: str, flush: bool = True) -> list[ScriptedAccess]:
    """Each access is a step of its own."""
    choose = random.Random(seed)
    lines = pool(machine, caches)
    ops, weights = operations(flush)
    return [_access(choose, step, choose.randrange(machine["cores"]), lines, ops, weights) for step in range(accesses)]


def together(machine: dict[str, Any], accesses: int, seed: int, caches: str, flush: bool = True) -> list[ScriptedAccess]:
    """Steps of one access by every core, all at the same time and at an eighth of the lines, so that they meet."""
    choose = random.Random(seed)
    lines = pool(machine, caches)
    ops, weights = operations(flush)
    made: list[ScriptedAccess] = []
    step = 0
    while len(made) < accesses:
        few = choose.sample(lines, max(2, len(lines) // 8))
        cores = range(min(machine["cores"], accesses - len(made)))
        made += [_access(choose, step, core, few, ops, weights) for core in cores]
        step += 1
    return made


def _access(choose: random.Random, step: int, core: int, lines: list[int], ops: list[str], weights: list[int]) -> ScriptedAccess:
    op = choose.choices(ops, weights)[0]
    # Words of eight bytes: whole values, so that what was read tells who wrote it.
    return ScriptedAccess(step, core, op, choose.choice(lines) + 8 * choose.randrange(LINE // 8))
