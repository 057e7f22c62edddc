# SPDX-License-Identifier: BSD-3-Clause
"""From attribution to what a person reads: lines with names (moscope.lines/1), the twenty hottest for the point's
result, and one sentence on what limits the point.
"""

from pathlib import Path
from typing import Any

from moscope.guest.kernel import Kernel
from moscope.run.engine import System
from moscope.workloads import registry

SCHEMA = "moscope.lines/1"
MOST = 20
# A share of the cores' time below which a cause is not worth naming.
WORTH = 0.10
KINDS = {"cold": "cold misses", "capacity": "capacity misses", "upgrade": "upgrades", "true_sharing": "true sharing",
         "false_sharing": "false sharing"}


class Names:
    """What guest memory tells of lines and code: asked while the machine runs (processes come and go) and at the end."""

    def __init__(self, system: System, kernel: Kernel, programs: dict[str, Path]) -> None:
        self._system, self._namer = system, None
        try:
            from moscope.naming.namer import Namer
        except ImportError:
            return
        self._namer = Namer(system, kernel.image, {f"{registry.GUEST_FOLDER}/{name}": path for name, path in programs.items()})

    def observe(self) -> None:
        if self._namer:
            self._namer.observe()

    def document(self, attribution: dict[str, Any]) -> dict[str, Any]:
        """moscope.lines/1."""
        if not self._namer:
            return unnamed(self._system, attribution)
        from moscope.naming.document import lines_document

        self._namer.refresh()
        named: dict[str, Any] = lines_document(self._namer, attribution)
        return named


def unnamed(system: System, attribution: dict[str, Any]) -> dict[str, Any]:
    """Physical addresses as names of lines, instruction addresses as names of functions."""
    lines = []
    for line in attribution["lines"]:
        waiters: dict[str, int] = {}
        for pair in line["pairs"]:
            waiters[_code(pair["waiter"])] = waiters.get(_code(pair["waiter"]), 0) + pair["stall"]
        lines.append({
            **line, "name": f"physical {system.physical_of(line['line']):#x}", "object": "", "field": "",
            "class": most_of(line["classes"]),
            "writers": _shares({_code(w["pc"]): w["count"] for w in line["writers"]}), "waiters": _shares(waiters),
            "pairs": [{"writer_function": _code(p["writer"]), "waiter_function": _code(p["waiter"]), "stall": p["stall"]}
                      for p in line["pairs"]]})
    functions = [{"function": _code(i["pc"]), "kernel": _kernel(i["pc"]), "stall": i["stall"], "count": i["count"]}
                 for i in attribution["instructions"]]
    return {"schema": SCHEMA, "lines": lines, "functions": functions}


def _kernel(pc: int) -> bool:
    return pc >> 63 != 0


def _code(pc: int) -> str:
    return f"{pc:#x}" if pc else "unknown"


def _shares(weights: dict[str, int]) -> list[dict[str, Any]]:
    whole = max(sum(weights.values()), 1)
    return [{"function": f, "share": w / whole} for f, w in sorted(weights.items(), key=lambda x: (-x[1], x[0]))]


def most_of(classes: dict[str, dict[str, int]]) -> str:
    """The class with the largest stall (by count where nothing stalled)."""
    return max(sorted(classes), key=lambda name: (classes[name]["stall"], classes[name]["count"]))


def top(lines: dict[str, Any], physical: dict[int, int], memory_stall: int) -> list[dict[str, Any]]:
    """LINE of the contracts, largest first; `stall_share` is of all memory stall in the windows."""
    found = sorted(lines["lines"], key=lambda line: (-line["stall"], line["line"]))[:MOST]
    return [{"name": line["name"], "address": f"{physical[line['line']]:#x}",
             "stall_share": min(line["stall"] / memory_stall, 1.0) if memory_stall else 0.0,
             "transfers": line["transfers"], "class": line["class"],
             "writers": [w["function"] for w in line["writers"][:5]],
             "waiters": [w["function"] for w in line["waiters"][:5]]} for line in found]


def top_names(lines: dict[str, Any], memory_stall: int) -> list[dict[str, Any]]:
    """The hottest names, each with all of its lines among those that the engine told of."""
    found = []
    for name, group in by_name(lines).items():
        stall: dict[str, int] = {}
        writers: dict[str, float] = {}
        waiters: dict[str, float] = {}
        for line in group:
            stall[line["class"]] = stall.get(line["class"], 0) + line["stall"]
            for to, who in ((writers, "writers"), (waiters, "waiters")):
                for w in line[who]:
                    to[w["function"]] = to.get(w["function"], 0.0) + w["share"] * line["stall"]
        whole = sum(stall.values())
        found.append({"name": name, "lines": len(group), "stall_share": min(whole / memory_stall, 1.0) if memory_stall else 0.0,
                      "transfers": sum(line["transfers"] for line in group), "class": max(sorted(stall), key=lambda k: stall[k]),
                      "writers": _most(writers), "waiters": _most(waiters)})
    return sorted(found, key=lambda n: (-n["stall_share"], n["name"]))[:MOST]


def _most(weights: dict[str, float]) -> list[str]:
    return [f for f in sorted(weights, key=lambda f: (-weights[f], f)) if f][:5]


def by_name(lines: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines["lines"]:
        found.setdefault(line["name"], []).append(line)
    return found


def bottleneck(figures: dict[str, Any], hottest: list[dict[str, Any]]) -> str:
    """What the cores' time goes to, in a sentence; `hottest` are names."""
    cycles = figures["cycles"]
    if cycles["memory"] >= WORTH and cycles["memory"] >= cycles["idle"] and hottest:
        one = hottest[0]
        text = (f"waiting for memory takes {cycles['memory']:.0%} of the cores' time, {one['stall_share']:.0%} of it for "
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
