# SPDX-License-Identifier: BSD-3-Clause
"""Checks the claims of an example's text against its trace. Accesses count from 1.

    { access = 3, cycles = 185 }                                   also hops, probes, supplier ("L1Cache-0")
    { access = 3, message = "ProbeInv", count = 2 }                receivers of messages of this name that the access causes
    { access = 3, transition = "L1Cache-0: S --Inv--> I" }         one that the access causes
    { access = 3, remark = "false sharing" }
    { controller = "L1Cache-0", line = "A@n0", after = 3, state = "I" }
    { first = 3, last = 5, messages = 14 }                         receivers of all messages that these accesses cause
    { first = 3, last = 5, span = 425 }                            cycles from the issue of the first to the end of the last
"""

from fractions import Fraction
from typing import Any

from moscope.traces.remarks import line_names, remarks

Document = dict[str, Any]
Claim = dict[str, Any]
MEASURED = ("cycles", "hops", "probes", "supplier", "count", "transition", "remark", "state", "messages", "span")


def key_of(claim: Claim) -> str:
    """The key with the claim; the other keys say what it is about."""
    return next(key for key in MEASURED if key in claim)


def measured(document: Document, claim: Claim) -> Any:
    """The value that a trace has for the claim; None if it has none."""
    key = key_of(claim)
    if key == "state":
        return _state(document, claim)
    if key in ("messages", "span"):
        return _of_several(document, claim, key)
    access = document["accesses"][claim["access"] - 1]
    if key == "cycles":
        return round(access["latency_cycles"])
    if key == "supplier":
        return access["supplier"] if access["supplier_number"] is None else f"{access['supplier']}-{access['supplier_number']}"
    if key == "count":
        return sum(len(m["deliveries"]) for m in document["messages"]
                   if m["access"] == access["id"] and m["network"] and m["type"] == claim["message"])
    if key == "transition":
        texts = [f"{t['controller']}: {t['state']} --{t['event']}--> {t['next']}" for t in document["transitions"]
                 if t["access"] == access["id"]]
        return claim[key] if claim[key] in texts else None
    if key == "remark":
        return claim[key] if claim[key] in remarks(document, access) else None
    return access[key]


def _state(document: Document, claim: Claim) -> str | None:
    """The controller's state of the line when everything that the access caused has ended."""
    lines = {name: at for at, name in line_names(document).items()}
    last = document["accesses"][claim["after"] - 1]["step"]
    later = [a["issued"] for a in document["accesses"] if a["step"] > last]
    end = min(later, default=None)
    found = None
    for t in document["transitions"]:
        if t["controller"] == claim["controller"] and int(t["address"], 16) == lines[claim["line"]] and (end is None or t["at"] < end):
            found = t["next"]
    return found


def _of_several(document: Document, claim: Claim, key: str) -> int:
    accesses = document["accesses"][claim["first"] - 1:claim["last"]]
    ids = {a["id"] for a in accesses}
    if key == "messages":
        return sum(len(m["deliveries"]) for m in document["messages"] if m["network"] and m["access"] in ids)
    period = Fraction(*document["clock"]["core_period_fs"])
    ticks: int = max(a["done"] for a in accesses) - min(a["issued"] for a in accesses)
    return round(ticks / period)
