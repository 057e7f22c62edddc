# SPDX-License-Identifier: BSD-3-Clause
"""What limits an application on many cores: where the core time goes that an operation takes more than on one core.

The additional time of an operation is divided by cause: idle cores, computation, stalls inside cores, each name of lines that cores
wait for because of sharing or spinning, and misses of lines that the caches did not hold. The largest part names the limit. Two limits
are read from the hardware first: DRAM whose channels are occupied, and a card at its packet limit or that drops packets while cores are
idle.
"""

from dataclasses import dataclass
from typing import Any

from analysis.run_directory import Point
from analysis.tables.time_split import causes

OCCUPIED = 0.8  # of the time of all DRAM channels, from which their bandwidth is the limit
CARD_BUSY = 0.95  # of the time, from which the card's packet limit of one direction is the limit
IDLE = 0.1  # of the cores' time, from which a card that drops packets is the limit
SIZE = ("cold", "capacity")  # misses of lines that a larger cache would have held, or that no core has had before
WORDS = {"idle": "idle cores: too little work reaches them",
         "user": "computation of the application", "kernel": "computation of the kernel",
         "core": "stalls inside the cores", "size": "cold and capacity misses: lines that the caches do not hold",
         "without_class": "transactions that had not ended"}
OTHERS = "other lines that cores share"


@dataclass(frozen=True)
class Limit:
    """`share`: of the additional time of an operation; None for what hardware's own counts say."""

    cause: str
    text: str
    share: float | None = None

    def document(self) -> dict[str, Any]:
        return {"cause": self.cause, "text": self.text, "share": self.share}


def limit(one: Point, many: Point) -> Limit:
    """The limit on the cores of `many`, compared with one core."""
    if (used := dram_occupied(many)) >= OCCUPIED:
        return Limit("dram", f"DRAM bandwidth: channels are occupied {used:.0%} of the time")
    busy = {does: share for way, does in (("in", "receives"), ("out", "sends")) if (share := card_busy(many, way)) >= CARD_BUSY}
    if busy:
        share = min(*busy.values(), 1.0)
        return Limit("card", f"the network card {' and '.join(busy)} as many packets as it can, in {share:.0%} of the time")
    dropped = drops(many)
    if dropped and causes(many).get("idle", 0.0) >= IDLE:
        return Limit("card", f"the network card drops {dropped:.1%} of the packets; cores are idle {causes(many)['idle']:.0%} of the time")
    before, after = per_operation(one), per_operation(many)
    more = {cause: time - before.get(cause, 0.0) for cause, time in after.items()}
    whole = sum(after.values()) - sum(before.values())
    largest = max(more, key=lambda cause: more[cause], default=None)
    if largest is None or whole <= 0 or more[largest] <= 0:
        return Limit("none", "none: an operation takes no more time than on one core", 0.0)
    share = min(more[largest] / whole, 1.0)
    if largest == OTHERS:
        return Limit("sharing", f"many lines that cores share ({share:.0%} of the additional time), none of them hot", share)
    return Limit(largest, f"{WORDS.get(largest, largest)} ({share:.0%} of the additional time)", share)


def per_operation(p: Point) -> dict[str, float]:
    """Core time of an operation in us by cause. Sharing and spinning are divided by the names of lines, as far as the point lists
    them."""
    each = (p.number("window_ms") or 0.0) * 1e3 * p.cores * len(p.record.get("windows") or [1]) / (p.number("ops") or 1.0)
    found: dict[str, float] = {}
    shared = 0.0
    for cause, share in causes(p).items():
        if cause in WORDS:
            found[cause] = share * each
        elif cause in SIZE:
            found["size"] = found.get("size", 0.0) + share * each
        else:
            shared += share * each
    waiting = p.waiting_fs * 1e-9 / (p.number("ops") or 1.0)
    for name in p.record.get("top_names") or []:
        if name["class"] not in SIZE:
            found[str(name["name"])] = min(name["wait_share"] * waiting, shared)
            shared -= found[str(name["name"])]
    return {**found, OTHERS: shared}


def dram_occupied(p: Point) -> float:
    """Share of time in which DRAM channels transfer data or cannot for reasons of DRAM's own, over all channels."""
    channels = [c for node in p.machine.get("dram") or [] for c in node.get("channels") or []]
    whole = sum(int(c.get("accounted", 0)) for c in channels)
    return 1 - sum(int(c["lost"].get("no_request", 0)) for c in channels) / whole if whole else 0.0


def card_busy(p: Point, way: str) -> float:
    """Share of time in which the card handles packets of a direction, `in` or `out`; 0 without a packet limit."""
    return int((p.record.get("network") or {}).get(f"{way}_busy_ns", 0)) * 1e6 / p.window_fs if p.window_fs else 0.0


def drops(p: Point) -> float:
    """Share of received packets that the card dropped; 0 without a card."""
    card = p.record.get("network") or {}
    lost = sum(int(v) for k, v in card.items() if k.startswith("dropped_"))
    return lost / (lost + int(card.get("in_packets", 0))) if lost else 0.0
