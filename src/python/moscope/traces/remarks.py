# SPDX-License-Identifier: BSD-3-Clause
"""Remarks on an access of a trace: false sharing, a replacement in the probe filter, or a delay for a message that the access
never sends; and whose value it found."""

from collections.abc import Sequence
from typing import Any

from moscope.schema.constants import LINE
from moscope.traces.script import WORD_BYTES, MessageDelay

Document = dict[str, Any]
WRITES = ("st", "rmw", "nt")
UNCACHED = ("flush", "nt", "ldu")  # these leave no copy of the line in their core's caches
INITIAL = -1


def place_in_order(access: dict[str, Any]) -> tuple[int, int, int]:
    """The key that sorts completed accesses by the order in which they took effect. When a line arrives, the accesses that wait for
    it are served in the order of their issue."""
    return access["done"], access["issued"], access["id"]


def line_of(access: dict[str, Any]) -> int:
    return int(access["address"], 16) // LINE * LINE


def _bytes(access: dict[str, Any]) -> range:
    at = int(access["address"], 16)
    return range(at, at + int(access.get("size", min(WORD_BYTES, LINE - at % LINE))))


def _overlap(a: dict[str, Any], b: dict[str, Any]) -> bool:
    one, other = _bytes(a), _bytes(b)
    return one.start < other.stop and other.start < one.stop


def line_names(document: Document) -> dict[int, str]:
    """The lines of the script, as it names them."""
    return {line_of(a): str(a["line"]).split("+")[0] for a in document["accesses"] if "@" in a["line"]}


def is_false_sharing(document: Document, access: dict[str, Any]) -> bool:
    """Whether the access went beyond its core's caches for a line that the core had used before, because other cores have since
    used other bytes of it, and one of these accesses or this access is a write."""
    if access["done"] is None or access["op"] in UNCACHED or access["core"] is None:
        return False
    if not any(m["access"] == access["id"] and m["network"] for m in document["messages"]):
        return False
    earlier = [a for a in document["accesses"] if line_of(a) == line_of(access) and a["done"] is not None
               and place_in_order(a) < place_in_order(access)]
    own = max((a for a in earlier if a["core"] == access["core"]), key=place_in_order, default=None)
    if own is None or own["op"] in UNCACHED:
        return False
    since = [a for a in earlier if a["core"] != access["core"] and a["done"] >= own["done"]]
    if any(a["op"] == "flush" for a in since):
        return False
    against = [a for a in since if a["op"] in WRITES or access["op"] in WRITES]
    return bool(against) and not any(_overlap(a, access) for a in against)


def replaced(document: Document, access: dict[str, Any]) -> list[str]:
    """Lines whose entries in a probe filter, or in another array of the home, were replaced to make room for this access."""
    given_up = dict.fromkeys(t["address"] for t in document["transitions"] if t["access"] == access["id"]
                             and t["event"].startswith("Replace") and t["machine"] == "Directory")
    names = line_names(document) if given_up else {}
    return [names.get(int(at, 16), at) for at in given_up if int(at, 16) != line_of(access)]


def without_message(document: Document, access: dict[str, Any], delays: Sequence[MessageDelay]) -> list[str]:
    """A sentence for each delay of the access that applied to no message, unless the run ended before the messages were sent."""
    if not delays or document.get("violations") or document.get("protocol_error"):
        return []
    sent = [(m["type"], d["to"]) for m in document["messages"] if m["access"] == access["id"] and m["network"] for d in m["deliveries"]]
    said = []
    for delay in delays:
        if sent.count((delay.message, delay.to)) > delay.n:
            continue
        known = ", ".join(dict.fromkeys(f"{name}>{to}" for name, to in sent)) or "none"
        said.append(f"no message for the delay {delay.text}: the access's messages are {known}")
    return said


def remarks(document: Document, access: dict[str, Any], delays: Sequence[MessageDelay] = ()) -> list[str]:
    """All remarks on an access. `delays`: those that the script gives for this access."""
    found = ["false sharing"] if is_false_sharing(document, access) else []
    found += [f"replaced {name} in the probe filter" for name in replaced(document, access)]
    return found + without_message(document, access, delays)


def value_text(document: Document, access: dict[str, Any]) -> str:
    """Whose value an access found or left."""
    number = access.get("value_of")
    if number is None:
        return ""
    if number == INITIAL:
        return "found the initial value"
    writer = next((a for a in document["accesses"] if a["id"] == number), None)
    what = f"access {number + 1}" + (f" ({writer['text']})" if writer else "")
    return f"found the value of {what}"
