# SPDX-License-Identifier: BSD-3-Clause
"""What the probe filter of each home node decided, for protocols with HT Assist (the lecture's table of requests and states): from
the transitions of the directories."""

from analysis.run_directory import Point

# Each request that reaches a home node has one of the first four outcomes; the last comes on top.
OUTCOMES = ("no entry: DRAM, no probe", "shared: DRAM, no probe", "directed probe", "broadcast invalidation", "entry replaced: probes")
REQUESTS = {"Fetch", "Load", "Store", "Upgrade"}


def outcome(state: str, event: str) -> int | None:
    """Index into OUTCOMES of the directory's transition, None of one that decides nothing."""
    if event.startswith("Replace_"):
        return 4 if state in ("S", "S1", "O", "EM") else None
    if event not in REQUESTS:
        return None
    if state in ("NP", "I", "U"):
        return 0
    # A read that joins others under way (RM, RO) has the outcome of the first; what is set aside comes back.
    if state in ("S", "S1", "RM"):
        return 1 if event in ("Fetch", "Load") else 3 if state != "RM" else None
    if state in ("O", "RO"):
        return 2 if event in ("Fetch", "Load") else 3 if state != "RO" else None
    return 2 if state == "EM" else None


def by_node(point: Point) -> list[list[int]]:
    """Per home node, how often each outcome came; nothing where the protocol has no such filters."""
    if point.machine.get("protocol") != "MOESI_HTAssist":
        return []
    found = []
    for controller in point.machine.get("controllers") or []:
        if not str(controller.get("name", "")).startswith("Directory"):
            continue
        counts = [0] * len(OUTCOMES)
        for name, n in (controller.get("transitions") or {}).items():
            state, _, event = name.partition(".")
            which = outcome(state, event)
            if which is not None:
                counts[which] += n
        found.append(counts)
    return found
