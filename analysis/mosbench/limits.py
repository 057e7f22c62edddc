# SPDX-License-Identifier: BSD-3-Clause
"""What limits an application on many cores: the causes of the core time that an operation takes there in addition to that on one core.

The additional time of an operation is divided by cause (analysis/mosbench/account.py), and the largest part names the limit. A limit
that the hardware counts itself comes first: a card at its packet limit, or that drops received packets while cores are idle.
"""

from dataclasses import dataclass
from typing import Any

from analysis.mosbench.account import OTHERS, WAITS, WORDS, dram, per_operation
from analysis.run_directory import Point
from analysis.tables.time_split import causes
from moscope.wording import percent

CARD_BUSY = 0.95  # of the time, from which the card's packet limit of one direction is the limit
MOST = 20  # names of lines that are causes of their own
IDLE = 0.1  # of the cores' time, from which a card that drops packets is the limit
DROPPED = 0.01  # of the received packets; fewer drops are no limit
DROPS = ("dropped_fifo_full", "dropped_no_buffer")  # packets that arrived faster than the card or the guest took them


@dataclass(frozen=True)
class Limit:
    """`share`: of the time that causes take more than on one core, all of them together; None for what hardware's own counts say."""

    cause: str
    text: str
    share: float | None = None

    def document(self) -> dict[str, Any]:
        return {"cause": self.cause, "text": self.text, "share": self.share}


def limit(one: Point, many: Point) -> Limit:
    """The limit on the cores of `many`, compared with one core."""
    busy = {does: share for way, does in (("in", "receives"), ("out", "sends")) if (share := card_busy(many, way)) >= CARD_BUSY}
    if busy:
        share = min(*busy.values(), 1.0)
        return Limit("card", f"the network card {' and '.join(busy)} as many packets as it can for {percent(share)} of the time")
    dropped = drops(many)
    if dropped >= DROPPED and causes(many).get("idle", 0.0) >= IDLE:
        idle = percent(causes(many)["idle"])
        return Limit("card", f"the network card drops {percent(dropped, 1)} of the packets; cores are idle {idle} of the time")
    idle_read_fs = dram(one).read_fs
    # Each name is a cause of both points or of none.
    names = dict.fromkeys(name for p in (many, one) for name in list(p.made[WAITS].shared)[:MOST])
    before, after = per_operation(one, idle_read_fs, names), per_operation(many, idle_read_fs, names)
    more = {cause: time - before.get(cause, 0.0) for cause, time in after.items()}
    whole = sum(after.values()) - sum(before.values())
    largest = max(more, key=lambda cause: more[cause], default=None)
    if largest is None or whole <= 0 or more[largest] <= 0:
        return Limit("none", "none: an operation takes no more time than on one core", 0.0)
    share = more[largest] / sum(time for time in more.values() if time > 0)
    if largest == OTHERS:
        return Limit("sharing", f"many lines that cores share ({percent(share)} of the additional time), none of them hot", share)
    more_said = f"; its channels are occupied {percent(dram(many).occupied)} of the time" if largest == "dram" else ""
    return Limit(largest, f"{WORDS.get(largest, largest)} ({percent(share)} of the additional time){more_said}", share)


def card_busy(p: Point, way: str) -> float:
    """Share of time in which the card handles packets of a direction, `in` or `out`; 0 without a packet limit."""
    return int((p.record.get("network") or {}).get(f"{way}_busy_ns", 0)) * 1e6 / p.window_fs if p.window_fs else 0.0


def drops(p: Point) -> float:
    """Share of received packets that the card dropped because it or the guest took them too slowly; 0 without a card."""
    card = p.record.get("network") or {}
    lost = sum(int(card.get(reason, 0)) for reason in DROPS)
    return lost / (lost + int(card.get("in_packets", 0))) if lost else 0.0
