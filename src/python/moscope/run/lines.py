# SPDX-License-Identifier: BSD-3-Clause
"""From attribution to what a person reads: lines with names (moscope.lines/1), the twenty hottest for the point's
result, and one sentence on what limits the point.
"""

from pathlib import Path
from typing import Any

from moscope.guest.kernel import Kernel
from moscope.naming.namer import Namer
from moscope.naming.totals import waited
from moscope.run.engine import System
from moscope.workloads import registry

MOST = 20
# A share of the cores' time below which a cause is not worth naming.
WORTH = 0.10
KINDS = {"cold": "cold misses", "capacity": "capacity misses", "upgrade": "upgrades", "true_sharing": "true sharing",
         "false_sharing": "false sharing", "spin": "spinning on it"}


def namer(system: System, kernel: Kernel, programs: dict[str, Path]) -> Namer:
    """What guest memory tells of lines and code: to be asked while the machine runs (processes come and go) and at the end."""
    return Namer(system, kernel.image, {f"{registry.GUEST_FOLDER}/{name}": path for name, path in programs.items()})


def shares(one: dict[str, Any], lines: dict[str, Any], memory_stall: int) -> dict[str, float]:
    """`stall_share` is of all memory stall in the windows; `wait_share` of that and all spinning together, `spin_share` what
    of it is spinning."""
    stall, spin = one["stall"], one["spin"]
    whole = memory_stall + lines["all"]["spin"]
    return {"stall_share": min(stall / memory_stall, 1.0) if memory_stall else 0.0,
            "wait_share": min((stall + spin) / whole, 1.0) if whole else 0.0, "spin_share": spin / whole if whole else 0.0}


def top(lines: dict[str, Any], physical: dict[int, int], memory_stall: int) -> list[dict[str, Any]]:
    """LINE of the contracts, those that were waited for longest first."""
    found = sorted(lines["lines"], key=lambda line: (-waited(line), line["line"]))[:MOST]
    return [{"name": line["name"], "address": f"{physical[line['line']]:#x}", **shares(line, lines, memory_stall),
             "transfers": line["transfers"], "class": line["class"],
             "writers": [w["function"] for w in line["writers"][:5]],
             "waiters": [w["function"] for w in line["waiters"][:5]]} for line in found]


def top_names(lines: dict[str, Any], memory_stall: int) -> list[dict[str, Any]]:
    """The hottest names, each with all of its lines."""
    return [{"name": n["name"], "lines": n["lines"], **shares(n, lines, memory_stall), "transfers": n["transfers"], "class": n["class"],
             **{who: [w["function"] for w in n[who] if w["function"]][:5] for who in ("writers", "waiters")}}
            for n in lines["names"][:MOST]]


def bottleneck(figures: dict[str, Any], hottest: list[dict[str, Any]]) -> str:
    """What the cores' time goes to, in a sentence; `hottest` are names."""
    cycles, spin = figures["cycles"], figures["spin_cycles"]
    waiting = cycles["memory"] + spin
    if waiting >= WORTH and waiting >= cycles["idle"] and hottest:
        one = hottest[0]
        what = "waiting for memory takes"
        if spin >= 0.005:
            what = f"waiting for memory ({cycles['memory']:.0%}) and in spin loops ({spin:.0%}) takes"
        text = (f"{what} {waiting:.0%} of the cores' time, {one['wait_share']:.0%} of it for "
                f"{one['name']} ({KINDS.get(one['class'], one['class'])})")
        if one["waiters"]:
            text += f", which {one['waiters'][0]} waits for" + (f" and {one['writers'][0]} writes" if one["writers"] else "")
        return text
    if cycles["idle"] >= 0.5:
        return f"the cores are idle for {cycles['idle']:.0%} of their time: too little work reaches them"
    kind = max(("busy", "core"), key=lambda k: cycles[k])
    if kind == "core":
        return f"stalls inside the cores take {cycles['core']:.0%} of their time; {cycles['memory']:.0%} goes to memory"
    return f"the cores compute for {cycles['busy']:.0%} of their time; {cycles['memory']:.0%} goes to waiting for memory"
