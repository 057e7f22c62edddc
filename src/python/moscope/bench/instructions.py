# SPDX-License-Identifier: BSD-3-Clause
"""Host instructions for one access of each kind, by part of the simulator.

Instruction counts, unlike times, do not depend on what else the host does. Each load runs short and long; the
difference, divided by the difference in accesses, leaves out the construction and the warm-up of the machine. The row
`exim_48` is a measurement window of a workload instead, for each guest instruction outside spin loops.
"""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from moscope.bench import callgrind, exim_window
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
    "holders and TBE tables": r"TBETable|Holder|PerfectCache|PerfectTable|TimerTable",
    "in_ports": r"_Controller::wake_entry",
    "transitions and actions": r"_Controller::",
    "event queue": r"EventQueue|Machine::Impl::run$",
    "crossbar and network": r"Router|Rounds|Ingress|Link|Crossbar|Crossing|Network|EntryQueue|TickStretch|Credit",
    "DRAM": r"moscope::dram::",
    "messages": r"Message|AbstractController|DataBlock",
    "sequencer and port": r"Sequencer|moscope::Port",
    "attribution": r"Attribution|TransactionCounts|PageWatch|Episodes",
    "decoded code": r"BlockCache|timing_of|TimingTable|Zydis",
    "core": r"HitLoop|AccessStream|Fiber|fcontext|Tester|TimedCore|StoreBuffer|begin_block|end_block",
    "guest instructions": r"moscope::x86::",
}
# The loop over wake-ups, which the compiler puts into its caller.
WAKES = re.compile(r"EventQueue::run_before|Machine::Impl::run\(")
EXIM = "exim_48"  # only when chosen: it boots a guest
OTHER = "other"


def part_of(function: str) -> str:
    name = function.partition("(")[0] if "(anonymous namespace)" not in function else function
    return next((part for part, pattern in PARTS.items() if re.search(pattern, name)), OTHER)


def row(name: str, short: callgrind.Profile, long: callgrind.Profile, units: int) -> dict[str, Any]:
    """Instructions and wake-ups for one unit, from two profiles that differ by `units` of them."""
    if units <= 0:
        raise SimulatorBug(f"bench instructions: {name}: the long load made no more accesses than the short one")
    difference = long - short
    return row_of(name, LOADS[name].title, LOADS[name].unit, difference, units)


def row_of(name: str, title: str, unit: str, profile: callgrind.Profile, units: int) -> dict[str, Any]:
    parts: dict[str, float] = dict.fromkeys([*PARTS, OTHER], 0.0)
    for function, instructions in profile.own.items():
        parts[part_of(function)] += instructions / units
    wakes = sum(n for (caller, callee), n in profile.calls.items() if WAKES.search(caller) and "EventQueue::" not in callee)
    return {"name": name, "title": title, "unit": unit, "instructions": profile.instructions / units, "wake_ups": wakes / units,
            "parts": parts}


def exim_row(shared: Shared, scale: float) -> dict[str, Any]:
    """A measurement window of exim on 48 cores, for each guest instruction outside spin loops."""
    with tempfile.TemporaryDirectory(prefix="moscope-") as folder:
        shared.say("starting exim on 48 cores (a minute or two)")
        request = exim_window.prepare(shared, Path(folder), scale)
        shared.say("counting one window of exim under valgrind (about a minute)")
        said, profiles = callgrind.count("moscope.bench.exim_window", request.text(), shared.say, exim_window.ENTRIES)
    answer = json.loads(said[0])
    if answer["state"] != "time" or len(profiles) != exim_window.PARTS:
        raise SimulatorBug(f"bench instructions: {EXIM}: the window ended with {answer['state']} after {len(profiles)} engine calls")
    return window_row(profiles[exim_window.PART], answer["units"], answer["spun"], request.guest)


def window_row(profile: callgrind.Profile, units: int, spun: int, guest: dict[str, str]) -> dict[str, Any]:
    """The row of a window in which the guest has run `units` instructions outside spin loops and `spun` in them. `guest`: the digests
    of its kernel and programs; figures of different guests are not comparable."""
    row = row_of(EXIM, exim_window.TITLE, exim_window.UNIT, profile, units)
    return row | {"with_spinning": profile.instructions / (units + spun), "guest": guest}


def names(shared: Shared, chosen: list[str]) -> list[str]:
    """The loads that the machine has: all short ones, or those of `chosen`; an L3 hit needs an L3, one in the L1 pure hits."""
    subject = prepare(shared)
    missing = {"l3_hit"} if "L3" not in dict(cache_sizes(subject)) else set()
    if not any(machine["pure_hits"] for machine in subject.interface["machines"]):
        missing.add("l1_hit")
    usual = [name for name in LOADS if name not in missing]
    possible = [*usual, EXIM]
    for name in chosen:
        if name not in possible:
            raise UserError(f"--load: {name}: expected one of {', '.join(possible)}")
    return [name for name in possible if name in (chosen or usual)]


def run(shared: Shared, chosen: list[str], scale: float = 1.0) -> dict[str, Any]:
    """All rows, as moscope.bench.instructions/1. `scale` shortens the loads."""
    subject = prepare(shared)
    loads = names(shared, chosen)
    rows = access_rows(shared, [name for name in loads if name != EXIM], scale)
    if EXIM in loads:
        rows.append(exim_row(shared, scale))
    return {"schema": SCHEMA, "machine": subject.machine.name, "protocol": subject.protocol, "rows": rows}


def access_rows(shared: Shared, loads: list[str], scale: float) -> list[dict[str, Any]]:
    if not loads:
        return []
    sets = [*shared.sets, *([] if any(s.startswith("memory_per_node=") for s in shared.sets) else [MEMORY_PER_NODE])]
    shared.say(f"counting {len(loads)} loads under valgrind (about a minute)")
    request = {"machine": shared.machine, "sets": sets, "seed": shared.seed, "loads": loads, "scale": scale}
    lines, profiles = callgrind.count("moscope.bench.counted", json.dumps(request), shared.say)
    units = [json.loads(line)["units"] for line in lines]
    if len(units) != len(profiles) or len(units) != 2 * len(loads):
        raise SimulatorBug(f"bench instructions: {len(profiles)} profiles for {len(units)} loads")
    return [row(name, profiles[2 * i], profiles[2 * i + 1], units[2 * i + 1] - units[2 * i]) for i, name in enumerate(loads)]
