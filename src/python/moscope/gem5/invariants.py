# SPDX-License-Identifier: BSD-3-Clause
"""What must hold of a run on any engine: loads return values that were current, and the states at the end do not exclude each
other. The checks use the field's state names (M, E, O, S); caches without an M and an S are not checked."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from moscope.config.bindings import of_role
from moscope.gem5.job import ScriptedAccess
from moscope.gem5.observed import Observed, Place

ALONE = {"M", "E"}
STABLE = {"M", "E", "O", "S"}


def value_faults(accesses: list[ScriptedAccess], values: list[int], rmw_adds: bool) -> list[str]:
    """Faults of loads: values that neither a store of the same step nor an earlier step has left. A store writes its number,
    counted from 1. A read-modify-write reports the value before it (`rmw_adds` false) or the sum that it leaves (true)."""
    faults: list[str] = []
    possible: dict[int, set[int]] = defaultdict(lambda: {0})
    for _, group in groupby(range(len(accesses)), lambda i: accesses[i].step):
        step = list(group)
        written: dict[int, set[int]] = defaultdict(set)
        for i in step:
            a = accesses[i]
            if a.op == "st":
                written[a.address].add(i + 1)
            elif a.op == "rmw":
                written[a.address].add(values[i] if rmw_adds else i + 1)
        for i in step:
            a = accesses[i]
            seen = values[i] - 1 if a.op == "rmw" and rmw_adds else values[i]
            if a.op in ("ld", "if", "rmw") and seen not in possible[a.address] | written[a.address]:
                faults.append(f"access {i}: core {a.core} {a.op} {a.address:#x} read {seen}, which no store wrote there")
        for address, new in written.items():
            possible[address] = new
        for i in step:  # the value of a load without stores in its step is the only possible value from now on
            a = accesses[i]
            if a.op in ("ld", "if") and not written.get(a.address):
                possible[a.address] = {values[i]}
    return faults


def state_faults(observed: Observed, interface: Mapping[str, Any]) -> list[str]:
    """Lines left in states that exclude each other, in transient states, or in a cache although the home knows no owner."""
    named = {m["type"] for m in interface["machines"] if {"M", "S"} <= {s["name"] for s in m["states"]}}
    caches, home = of_role(interface, "cache") & named, of_role(interface, "home")
    held: dict[int, list[tuple[Place, str]]] = defaultdict(list)
    homes: dict[int, str] = {}
    for place, state in observed.states.items():
        if place[0] in caches:
            held[place[2]].append((place, state))
        elif place[0] in home:
            homes[place[2]] = state
    faults = []
    for line, copies in sorted(held.items()):
        names = ", ".join(f"{machine}-{version} {state}" for (machine, version, _), state in copies)
        if any(state in ALONE for _, state in copies) and len(copies) > 1:
            faults.append(f"line {line:#x}: {names}: an exclusive copy while others have copies")
        if sum(state == "O" for _, state in copies) > 1:
            faults.append(f"line {line:#x}: {names}: several owners")
        if any(state not in STABLE for _, state in copies):
            faults.append(f"line {line:#x}: {names}: in a transient state")
        if any(state in ALONE for _, state in copies) and homes.get(line) in ("S", "S1", "I"):
            faults.append(f"line {line:#x}: {names}, and its home says {homes[line]}")
    return faults
