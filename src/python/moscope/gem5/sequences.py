# SPDX-License-Identifier: BSD-3-Clause
"""Random accesses for the cross-check. They use few lines, so that cores compete for them. Some of the lines map to the same sets
of every cache, so that lines are replaced."""

import random
from typing import Any

from moscope.gem5.job import ScriptedAccess
from moscope.schema.constants import LINE

# Weights of the operations. Flushes are rare, because they empty the caches that the others fill.
OPS = {"ld": 44, "st": 30, "if": 12, "rmw": 12, "flush": 2}
LINES_PER_NODE = {"tiny": (4, 8), "machine": (8, 24)}
# The distance between lines that map to the same set of any array of the supplied machines, filters included.
STRIDE = 1 << 22


def pool(machine: dict[str, Any], caches: str) -> list[int]:
    """The lines to access: for each node, some neighbouring lines and some that map to the same set."""
    beside, same_set = LINES_PER_NODE[caches]
    lines = []
    for node in machine["address_map"]:
        lines += [node["base"] + LINE * n for n in range(beside)]
        stride = min(STRIDE, node["bytes"] // (same_set + 1))
        lines += [node["base"] + stride * n for n in range(1, same_set + 1)]
    return lines


def operations(flush: bool) -> tuple[list[str], list[int]]:
    """The operations that a protocol supports, and their weights."""
    taken = {op: weight for op, weight in OPS.items() if flush or op != "flush"}
    return list(taken), list(taken.values())


def one_at_a_time(machine: dict[str, Any], accesses: int, seed: int, caches: str, flush: bool = True) -> list[ScriptedAccess]:
    """Each access is a step of its own."""
    choose = random.Random(seed)
    lines = pool(machine, caches)
    ops, weights = operations(flush)
    return [_access(choose, step, choose.randrange(machine["cores"]), lines, ops, weights) for step in range(accesses)]


def together(machine: dict[str, Any], accesses: int, seed: int, caches: str, flush: bool = True) -> list[ScriptedAccess]:
    """Steps with one access by every core, all at the same time. Each step uses an eighth of the lines, so that cores collide."""
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
    # Accesses of whole, aligned eight-byte words, so that a value shows who wrote it.
    return ScriptedAccess(step, core, op, choose.choice(lines) + 8 * choose.randrange(LINE // 8))
