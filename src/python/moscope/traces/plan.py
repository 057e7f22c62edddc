# SPDX-License-Identifier: BSD-3-Clause
"""The content of a trace's sequence diagram, before anything is placed: lifelines and arrows. Caches of a chip that
only answer whether they hold the line share one lifeline.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from moscope.traces.document import is_home, role_of
from moscope.traces.remarks import line_names
from moscope.traces.text import is_request, message_word, operation, who

Document = dict[str, Any]

LANE = 104.0  # the least width of a lifeline


@dataclass
class Lane:
    """A lifeline: a core, a controller, a DRAM, or several caches that only answer probes."""

    name: str
    title: str
    chip: int
    rank: tuple[int, int]
    machine: str
    x: float = 0.0
    half: float = LANE / 2
    pills: list[tuple[int, float, str, str, str]] = field(default_factory=list)  # fs, y, text, next state, tip


@dataclass
class Arrow:
    source: str
    target: str
    sent: int
    arrives: int
    label: str
    kind: str
    data: bool
    tip: str
    messages: int = 1  # how many messages the arrow represents


class Plan:
    """Who takes part and what is drawn, before anything is placed."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.controllers = {c["name"]: c for c in document["controllers"]}
        self.permissions = document["permissions"]
        self.lines = self._line_names()
        self.homes = {a["home"] for a in document["accesses"]}
        self.several = len({t["address"] for t in document["transitions"]}) > 1
        self.lane_of: dict[str, str] = {}
        self.lanes: dict[str, Lane] = {}
        # Caches of a chip stand between its cores and its home, in the order of their levels, which is that of their names.
        self.shared = sorted({c["machine"] for c in self.controllers.values() if c["core"] is None and not is_home(c)})
        self._bystanders()
        self.arrows = self._arrows()
        self.order = self._ordered()

    def _line_names(self) -> dict[int, str]:
        """Names of the script's lines, without their node if the letter is unambiguous."""
        names = line_names(self.document)
        short = [name.split("@")[0] for name in names.values()]
        return {at: name if short.count(name.split("@")[0]) > 1 else name.split("@")[0] for at, name in names.items()}

    def _bystanders(self) -> None:
        """Merges caches of a chip that start no access, supply nothing, and never change their state."""
        active = {m["from"] for m in self.document["messages"] if m["data"] or is_request(m)}
        active |= {t["controller"] for t in self.document["transitions"] if t["state"] != t["next"]}
        groups: dict[tuple[int, str], list[str]] = defaultdict(list)
        for name, c in self.controllers.items():
            if name not in active and c["core"] is not None:
                groups[c["chip"], c["machine"]].append(name)
        for (chip, machine), names in groups.items():
            if len(names) > 1:
                merged = f"{machine}s of chip {chip}"
                self.lane_of |= dict.fromkeys(names, merged)
                self.lanes[merged] = Lane(merged, f"{len(names)} x {machine}", chip, (2, 0), machine)

    def lane(self, name: str) -> str:
        """The lifeline of a controller, a core ("core 3") or a DRAM ("DRAM-2"), made when first asked for."""
        name = self.lane_of.get(name, name)
        if name in self.lanes:
            return name
        kind, number = name.replace(" ", "-").rsplit("-", 1)
        if kind == "core":
            chip = next(c["chip"] for c in self.controllers.values() if c["core"] == int(number))
            self.lanes[name] = Lane(name, name, chip, (0, int(number)), "")
        elif kind == "device":
            chip = next(c["chip"] for c in self.controllers.values() if c["version"] == int(number) and role_of(c) == "dma")
            self.lanes[name] = Lane(name, name, chip, (7, int(number)), "")
        elif kind == "DRAM":
            chip = next(c["chip"] for c in self.controllers.values()
                        if c["version"] == int(number) and is_home(c))
            self.lanes[name] = Lane(name, name, chip, (9, 0), "")
        else:
            c = self.controllers[name]
            # A core's caches are beside their core.
            rank = (0, c["core"]) if c["core"] is not None else (6, 0) if is_home(c) else (3, self.shared.index(kind))
            self.lanes[name] = Lane(name, name, c["chip"], rank, kind)
        return name

    def _arrows(self) -> list[Arrow]:
        found: list[Arrow] = []
        for a in self.document["accesses"]:
            cache = next((m["from"] for m in self.document["messages"] if is_request(m) and m["access"] == a["id"]), None)
            if cache is None:
                continue
            core = self.lane(who(a))
            cache = self.lane(cache)
            found.append(Arrow(core, cache, a["issued"], a["issued"], f"{a['op']} {a['line']}", "core", False,
                               operation(a, a["address"])))
            if a["done"] is None:
                continue
            found.append(Arrow(cache, core, a["done"], a["done"], f"{a['latency_cycles']:.0f} cycles", "core", True,
                               f"done after {a['latency_cycles']:.1f} cycles, {a['latency_ns']:.2f} ns"))
        merged: dict[tuple[str, str, int, str], Arrow] = {}
        for m in self.document["messages"]:
            memory = m["structure"] == "MemoryMsg"
            if is_request(m) or not (m["network"] or memory):
                continue
            kind = "memory" if memory else self.document["vnets"].get(str(m["vnet"]), "")
            for d in m["deliveries"]:
                source, target = self.lane(m["from"]), self.lane(d["to"])
                if source == target:
                    continue
                label = message_word(m)
                if self.several:
                    label = f"{label} {self.lines.get(int(m['address'], 16), '')}".rstrip()
                arrow = Arrow(source, target, m["sent"], d["at"], label, kind, m["data"],
                              f"{m['structure']}: {m['fields']}")
                # Equal messages of merged caches become one arrow, from the first that is sent to the last that arrives.
                if source in self.lane_of.values() or target in self.lane_of.values():
                    key = (source, target, m["access"] if m["access"] is not None else -1, m["type"])
                    if key in merged:
                        merged[key].arrives = max(merged[key].arrives, d["at"])
                        merged[key].messages += 1
                        continue
                    merged[key] = arrow
                found.append(arrow)
        for t in self.document["transitions"]:
            self.lane(t["controller"])
        return found

    def _ordered(self) -> list[Lane]:
        """The lifelines by chip, in the order in which the chips first appear."""
        seen: list[int] = []
        for arrow in sorted(self.arrows, key=lambda a: a.sent):
            for end in (arrow.source, arrow.target):
                if self.lanes[end].chip not in seen:
                    seen.append(self.lanes[end].chip)
        for lane in self.lanes.values():
            if lane.chip not in seen:
                seen.append(lane.chip)
        return sorted(self.lanes.values(), key=lambda lane: (seen.index(lane.chip), lane.rank, bool(lane.machine), lane.name))
