# SPDX-License-Identifier: BSD-3-Clause
"""Host instructions for one access of each kind, by part of the simulator.

Instruction counts, unlike times, do not depend on what else the host does. Each load runs short and long; the
difference, divided by the difference in accesses, leaves out the construction and the warm-up of the machine.
"""

import json
import re
from typing import Any

from moscope.bench import callgrind
from moscope.bench.counted import LOADS
from moscope.cli import Shared
from moscope.errors import SimulatorBug, UserError
from moscope.experiment import prepare
from moscope.latencies.rows import cache_sizes

SCHEMA = "moscope.bench.instructions/1"
# Under valgrind the host's address space is smaller; the loads do not use more memory.
MEMORY_PER_NODE = "memory_per_node=512MiB"
# The first pattern that a function's name contains decides.
PARTS = {
    "cache arrays": r"CacheMemory|CacheSet|replacement",
    "holders and TBE tables": r"TBETable|Holder|PerfectCache|TimerTable",
    "in_ports": r"_Controller::wake_entry",
    "transitions and actions": r"_Controller::",
    "event queue": r"EventQueue",
    "crossbar and network": r"Router|Ingress|Link|Crossbar|Network",
    "DRAM": r"moscope::dram::",
    "messages": r"Message|AbstractController|DataBlock",
    "sequencer and port": r"Sequencer|moscope::Port",
    "core": r"HitLoop|AccessStream|Fiber|Tester",
}
OTHER = "other"


def part_of(function: str) -> str:
    name = function.partition("(")[0] if "(anonymous namespace)" not in function else function
    return next((part for part, pattern in PARTS.items() if re.search(pattern, name)), OTHER)


def row(name: str, short: callgrind.Profile, long: callgrind.Profile, units: int) -> dict[str, Any]:
    """Instructions and wake-ups for one unit, from two profiles that differ by `units` of them."""
    if units <= 0:
        raise SimulatorBug(f"bench instructions: {name}: the long load made no more accesses than the short one")
    difference = long - short
    parts: dict[str, float] = dict.fromkeys([*PARTS, OTHER], 0.0)
    for function, instructions in difference.own.items():
        parts[part_of(function)] += instructions / units
    wakes = sum(n for (caller, _), n in difference.calls.items() if "EventQueue::run_before" in caller)
    return {"name": name, "title": LOADS[name].title, "unit": LOADS[name].unit,
            "instructions": difference.instructions / units, "wake_ups": wakes / units, "parts": parts}


def names(shared: Shared, chosen: list[str]) -> list[str]:
    """The loads that the machine has: all, or those of `chosen`; an L3 hit needs an L3."""
    sizes = dict(cache_sizes(prepare(shared)))
    possible = [name for name in LOADS if name != "l3_hit" or "L3" in sizes]
    for name in chosen:
        if name not in possible:
            raise UserError(f"--load: {name}: expected one of {', '.join(possible)}")
    return [name for name in possible if not chosen or name in chosen]


def run(shared: Shared, chosen: list[str], scale: float = 1.0) -> dict[str, Any]:
    """All rows, as moscope.bench.instructions/1. `scale` shortens the loads."""
    subject = prepare(shared)
    loads = names(shared, chosen)
    sets = [*shared.sets, *([] if any(s.startswith("memory_per_node=") for s in shared.sets) else [MEMORY_PER_NODE])]
    shared.say(f"counting {len(loads)} loads under valgrind (about a minute)")
    request = {"machine": shared.machine, "sets": sets, "seed": shared.seed, "loads": loads, "scale": scale}
    lines, profiles = callgrind.count("moscope.bench.counted", json.dumps(request), shared.say)
    units = [json.loads(line)["units"] for line in lines]
    if len(units) != len(profiles) or len(units) != 2 * len(loads):
        raise SimulatorBug(f"bench instructions: {len(profiles)} profiles for {len(units)} loads")
    rows = [row(name, profiles[2 * i], profiles[2 * i + 1], units[2 * i + 1] - units[2 * i]) for i, name in enumerate(loads)]
    return {"schema": SCHEMA, "machine": subject.machine.name, "protocol": subject.protocol, "rows": rows}
