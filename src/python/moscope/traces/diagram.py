# SPDX-License-Identifier: BSD-3-Clause
"""The sequence diagram of a trace: time goes down, each controller that takes part has a lifeline, grouped by chip;
messages are arrows, slanted by their time under way, transitions are boxes on the lifelines. Between them, the
colour of a lifeline shows what its controller may do with the line. Time is stretched where much happens and
compressed where nothing happens; the scale at the left shows this. plan.py decides who takes part.
"""

import math
from collections import defaultdict
from typing import Any

from moscope.schema.constants import FS_PER_NS
from moscope.traces.draw import Box, Drawing, Head, Line, Text, text_width
from moscope.traces.plan import Arrow, Lane, Plan
from moscope.traces.text import (
    SEGMENTS,
    hops_text,
    not_done,
    period,
    step_windows,
    steps,
    supplier_text,
)

Document = dict[str, Any]

INK, FAINT, RULE = "#222222", "#777777", "#d5d9de"
CHIP_FILL, CHIP_STROKE, HOME_FILL = "#f5f7fa", "#c9d1da", "#fdf6e9"
# Colours of messages by the type of their virtual network, with names for the legend. A network may also carry messages of other kinds:
# the answers of a core to probes are in its network for requests, in order with its victims.
KINDS = {
    "request": ("#1f5fa8", "network for requests"),
    "forward": ("#c2410c", "network for probes or forwards"),
    "probe": ("#c2410c", "network for probes or forwards"),
    "response": ("#2b8a3e", "network for responses"),
    "writeback": ("#7048a8", "network for write-backs"),
    "unblock": ("#6b7280", "network for unblocks: the requestor has it"),
    "posted": ("#6b7280", "network for posted messages"),
    "memory": ("#946200", "DRAM access"),
    "core": ("#222222", "access of a core"),
}
OTHER = ("#444444", "other message")
AT_WORK = "#9fb0c3"  # a home between the first and the last of its transitions
# What a state allows, as a lifeline shows it: colour, width, name in the legend.
RIGHTS = {
    "Read_Write": ("#37b24d", 7.0, "may read and write"),
    "Read_Only": ("#a9dfb0", 7.0, "may read"),
    "Maybe_Stale": ("#a9dfb0", 7.0, "may read"),
    "Busy": ("#f2b84b", 7.0, "in transition"),
}
PILL, GAP = 17.0, 5.0
SHARES = (0.0, 0.25, 0.5, 0.12, 0.37, 0.75)  # possible positions of an arrow's name, as a share of its length
LEFT, TOP = 118.0, 20.0


class _Time:
    """Ticks to pixels: monotone, with room for what happens at each tick."""

    def __init__(self) -> None:
        self.at: dict[int, float] = {}

    def place(self, ticks: list[int], need: dict[int, list[tuple[str, float, float]]], top: float) -> float:
        """Gives every tick a y. `need` lists, for a tick, (lifeline, room above, room below) of what stands there."""
        y, before = top, None
        floor: dict[str, float] = {}
        for t in ticks:
            if before is not None:
                y += min(46.0, 7.0 + 9.0 * math.log2(1.0 + (t - before) / FS_PER_NS))
            for lane, above, _ in need.get(t, []):
                y = max(y, floor.get(lane, top) + above)
            for lane, _, below in need.get(t, []):
                floor[lane] = max(floor.get(lane, top), y + below)
            self.at[t] = y
            before = t
        return max([y, *floor.values()])


def draw(document: Document) -> Drawing:
    """The diagram of a trace document (moscope.trace/1)."""
    plan = Plan(document)
    drawing = Drawing(title=f"{document['script']} on {document['machine']}, {document['protocol']}")
    right = _place_lanes(plan)
    top = _header(drawing, plan, right)
    bottom = _steps(drawing, plan, top, right)
    drawing.width = right + 24
    drawing.height = _legend(drawing, plan, bottom + 30, right) + 18
    # The backgrounds of chips are drawn first, below everything else.
    drawing.shapes[:0] = _chips(plan, top, bottom)
    return drawing


def _pill_text(plan: Plan, t: dict[str, Any]) -> str:
    line = f"{plan.lines.get(int(t['address'], 16), '')} " if plan.several else ""
    times = f" \u00d7{t['times']}" if t.get("times", 1) > 1 else ""
    return f"{line}{t['next']}{times}" if t["state"] == t["next"] else f"{line}{t['state']} \u2192 {t['next']}"


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two transitions of a lifeline are equal and change no state."""
    keys = ("controller", "state", "event", "next", "address")
    return bool(one["state"] == one["next"] and all(one[k] == other[k] for k in keys))


def _place_lanes(plan: Plan) -> float:
    for t in plan.document["transitions"]:
        lane = plan.lanes[plan.lane(t["controller"])]
        wide = max(text_width(_pill_text(plan, t), 10.5, True) + 16, text_width(t["event"], 9.5) + 10)
        lane.half = max(lane.half, wide / 2 + 6)
    x, chip = LEFT, None
    for lane in plan.order:
        if not lane.machine:
            lane.half = 46.0 if lane.name.startswith("core") else 38.0
        lane.half = max(lane.half, text_width(lane.title, 11, True) / 2 + 6)
        x += 26 if chip is not None and lane.chip != chip else 0
        chip = lane.chip
        lane.x = x + lane.half
        x += 2 * lane.half
    # The title needs some width even when only few take part.
    return max(x, LEFT + 560.0)


def _header(drawing: Drawing, plan: Plan, right: float) -> float:
    document = plan.document
    y = TOP + 12
    drawing.add(Text(16, y, document["script"], 16, INK, bold=True))
    y += 18
    drawing.add(Text(16, y, f"{document['machine']}, protocol {document['protocol']}; times from the beginning of each step, "
                            "in cycles of the core and ns", 10.5, FAINT))
    return y + 64


def _chips(plan: Plan, top: float, bottom: float) -> list[Any]:
    shapes: list[Any] = []
    for chip in dict.fromkeys(lane.chip for lane in plan.order):
        lanes = [lane for lane in plan.order if lane.chip == chip]
        x1, x2 = lanes[0].x - lanes[0].half - 4, lanes[-1].x + lanes[-1].half + 4
        home = chip in plan.homes
        shapes.append(Box(x1, top - 48, x2 - x1, bottom - top + 62, HOME_FILL if home else CHIP_FILL, CHIP_STROKE, 8))
        homed = sorted({a["line"] for a in plan.document["accesses"] if a["home"] == chip})
        name = f"chip {chip}" + (f", home of {', '.join(homed)}" if homed else "")
        shapes.append(Text((x1 + x2) / 2, top - 33, name, 10.5, FAINT, "middle"))
        for lane in lanes:
            shapes.append(Text(lane.x, top - 14, lane.title, 11, INK, "middle", bold=True))
            shapes.append(Line(lane.x, top - 6, lane.x, bottom + 4, "#b3bcc7", 1, (3, 3)))
    return shapes


def _steps(drawing: Drawing, plan: Plan, top: float, right: float) -> float:
    y = top
    state: dict[str, str] = {}
    for step, window in zip(steps(plan.document), step_windows(plan.document), strict=True):
        y = _step_title(drawing, plan.document, step, step[0]["step"] + 1, y, right)
        y = _step(drawing, plan, window, y, right, state) + 26
    return y - 10


def _step_title(drawing: Drawing, document: Document, step: list[dict[str, Any]], number: int, y: float, right: float) -> float:
    """Draws a rule, and for each access a bar that divides its latency into segments."""
    drawing.add(Line(12, y + 4, right + 8, y + 4, RULE, 1))
    y += 22
    for access in step:
        text = f"{number}.  {access['text']}"
        if access["done"] is None:
            drawing.add(Text(16, y, text, 12, INK, bold=True, halo=True),
                        Text(24 + text_width(text, 12, True), y, not_done(access), 11, INK, halo=True))
            y += 22
            continue
        tail = (f"{access['latency_cycles']:.1f} cycles = {access['latency_ns']:.1f} ns, supplied by "
                f"{supplier_text(document, access)}, {hops_text(access['hops'])}")
        drawing.add(Text(16, y, text, 12, INK, bold=True, halo=True),
                    Text(24 + text_width(text, 12, True), y, tail, 11, INK, halo=True))
        y += 9
        x, width = 16.0, right - 24.0
        total = max(1, access["latency_fs"])
        for s in access["segments"]:
            short, meaning, colour = SEGMENTS.get(s["name"], (s["name"], s["name"], "#888888"))
            long = width * s["fs"] / total
            drawing.add(Box(x, y, max(0.5, long - 1), 16, colour, tip=f"{meaning}: {s['cycles']:.1f} cycles"))
            for label in (f"{short} {s['cycles']:.1f}", f"{s['cycles']:.0f}"):
                if text_width(label, 10, True) + 6 < long:
                    drawing.add(Text(x + long / 2, y + 12, label, 10, "#ffffff", "middle", bold=True))
                    break
            x += long
        y += 36
    return y


def _step(drawing: Drawing, plan: Plan, window: tuple[int, int], top: float, right: float, state: dict[str, str]) -> float:
    begin, end = window
    arrows = [a for a in plan.arrows if begin <= a.sent < end]
    # Transitions at one tick on one lifeline are stacked.
    shown: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    latest: dict[str, dict[str, Any]] = {}
    for t in plan.document["transitions"]:
        if not begin <= t["at"] < end:
            continue
        lane = plan.lane(t["controller"])
        stack = shown[lane, t["at"]]
        before = latest.get(lane)
        merged = lane in plan.lane_of.values()
        if merged and any(s["event"] == t["event"] for s in stack):
            continue  # merged caches all do the same, which is shown once
        if before and not merged and _same(before, t):
            before["times"] = before.get("times", 1) + 1  # for example, a controller that counts answers
            continue
        latest[lane] = dict(t)
        stack.append(latest[lane])
    shown = {key: stack for key, stack in shown.items() if stack}
    need: dict[int, list[tuple[str, float, float]]] = defaultdict(list)
    for (lane, at), stack in shown.items():
        need[at].append((lane, 11.0, 21.0 + (PILL + 15) * (len(stack) - 1)))
    for a in arrows:
        need[a.sent].append((a.source, 6.0, GAP))
        need[a.sent].append((f"label {a.source}", 12.0, 2.0))
        need[a.arrives].append((a.target, 6.0, GAP))
    ticks = sorted(need)
    time = _Time()
    bottom = time.place(ticks, need, top + 6)
    _scale(drawing, plan, ticks, time, begin, right)
    _lifelines(drawing, plan, shown, time, state, top, bottom)
    _dram_at_work(drawing, plan, window, time)
    halves = {key: max(_pill_width(plan, t) for t in stack) / 2 for key, stack in shown.items()}
    # Places that the names of messages should avoid: x of the middle, y of the base line, width.
    labels: list[tuple[float, float, float]] = []
    for (name, at), stack in shown.items():
        x = plan.lanes[name].x
        for i, t in enumerate(stack):
            y = time.at[at] + i * (PILL + 15)
            labels += [(x, y + 4, _pill_width(plan, t)), (x, y + PILL / 2 + 9.5, text_width(t["event"], 9))]
    # Short arrows come first, because their names have the fewest possible places.
    names = _names_of_fans(plan, arrows)
    written: list[Text | None] = []
    for a in sorted(arrows, key=lambda a: abs(plan.lanes[a.source].x - plan.lanes[a.target].x)):
        written.append(_arrow(drawing, plan, a, names[id(a)], time, halves, labels))
    drawing.add(*(text for text in written if text))  # above all arrows
    for (name, at), stack in shown.items():
        _pills(drawing, plan, plan.lanes[name], time.at[at], stack)
    return bottom


def _scale(drawing: Drawing, plan: Plan, ticks: list[int], time: _Time, begin: int, right: float) -> None:
    cycle = period(plan.document)
    last = -100.0
    for t in ticks:
        y = time.at[t]
        if y - last < 13:
            continue
        last = y
        drawing.add(Line(LEFT - 10, y, right, y, "#e7eaee", 0.7),
                    Text(62, y + 3.5, f"{float((t - begin) / cycle):.1f}", 9.5, INK, "end"),
                    Text(LEFT - 14, y + 3.5, f"{(t - begin) / FS_PER_NS:.1f} ns", 9, FAINT, "end"))


def _lifelines(drawing: Drawing, plan: Plan, shown: dict[tuple[str, int], list[dict[str, Any]]], time: _Time,
               state: dict[str, str], top: float, bottom: float) -> None:
    """Draws the coloured part of each lifeline, which shows what its controller may do with the line."""
    for lane in plan.order:
        if not lane.machine:
            continue
        if lane.machine == "Directory":
            mine = [time.at[at] for name, at in shown if name == lane.name]
            if mine:
                drawing.add(Line(lane.x, min(mine), lane.x, max(mine), AT_WORK, 7.0))
            continue
        changes = [(top, state.get(lane.name, ""))]
        for (name, at), stack in sorted(shown.items(), key=lambda item: item[0][1]):
            if name == lane.name:
                changes.append((time.at[at], stack[-1]["next"]))
        changes.append((bottom, changes[-1][1]))
        for (y1, now), (y2, _) in zip(changes, changes[1:], strict=False):
            right = RIGHTS.get(plan.permissions.get(lane.machine, {}).get(now, ""))
            if right and y2 > y1:
                drawing.add(Line(lane.x, y1, lane.x, y2, right[0], right[1]))
        if changes[-1][1]:
            state[lane.name] = changes[-1][1]


def _dram_at_work(drawing: Drawing, plan: Plan, window: tuple[int, int], time: _Time) -> None:
    """Marks the time from the arrival of a request at a DRAM to its answer."""
    asked = {m["id"]: m for m in plan.document["messages"]}
    for m in plan.document["messages"]:
        if m["from"].startswith("DRAM") and window[0] <= m["sent"] < window[1] and m["cause"] is not None:
            x = plan.lanes[plan.lane(m["from"])].x
            drawing.add(Line(x, time.at[asked[m["cause"]]["deliveries"][0]["at"]], x, time.at[m["sent"]],
                             SEGMENTS["dram"][2], 7.0))


def _names_of_fans(plan: Plan, arrows: list[Arrow]) -> dict[int, str]:
    """The text at each arrow, by the arrow's id. A message that fans out to several receivers on one side is named once, at the
    uppermost arrow."""
    fans: dict[tuple[str, int, str, bool], list[Arrow]] = defaultdict(list)
    for a in arrows:
        fans[a.source, a.sent, a.label, plan.lanes[a.target].x > plan.lanes[a.source].x].append(a)
    names = {id(a): "" for a in arrows}
    for (source, sent, label, _), fan in fans.items():
        first = min(fan, key=lambda a: (a.arrives - sent) / max(1.0, abs(plan.lanes[a.target].x - plan.lanes[source].x)))
        count = sum(a.messages for a in fan)
        names[id(first)] = label if count == 1 else f"{label} \N{MULTIPLICATION SIGN}{count}"
    return names


def _arrow(drawing: Drawing, plan: Plan, a: Arrow, name: str, time: _Time, halves: dict[tuple[str, int], float],
           labels: list[tuple[float, float, float]]) -> Text | None:
    """Draws the arrow; returns its name, at a place that earlier names leave free."""
    x1, x2 = plan.lanes[a.source].x, plan.lanes[a.target].x
    y1, y2 = time.at[a.sent], time.at[a.arrives]
    direction = 1 if x2 > x1 else -1
    dx, dy = x2 - x1, y2 - y1
    slope = dy / max(1.0, abs(dx))
    # An arrow begins and ends at the edge of a box, if there is one, otherwise at the bar of the lifeline.
    skip1, skip2 = _to_edge(halves.get((a.source, a.sent)), dx, dy), _to_edge(halves.get((a.target, a.arrives)), dx, dy)
    x1, y1, x2, y2 = x1 + dx * skip1, y1 + dy * skip1, x2 - dx * skip2, y2 - dy * skip2
    colour = KINDS.get(a.kind, OTHER)[0]
    drawing.add(Line(x1, y1, x2, y2, colour, 2.2 if a.data else 1.1, () if a.data or a.kind != "memory" else (4, 2)),
                Head(x2, y2, x2 - x1, y2 - y1, colour, 8.0 if a.data else 6.5, hollow=not a.data))
    if not name:
        return None
    # The name is near the beginning of its arrow, above it; further along if another name is already there.
    width = text_width(name, 10, a.data)
    length = abs(x2 - x1)
    in_box = max(0.0, (halves.get((a.source, a.sent)) or 0.0) - abs(x1 - plan.lanes[a.source].x))  # of the arrow's beginning
    places = []
    for below, share in [(0.0, s) for s in SHARES] + [(14.0, s) for s in SHARES]:
        near = max(in_box, min(5 + share * length, (length - width) / 2 if share == 0.0 else length - width - 10))
        # Above (or below) the part of the arrow that the name covers.
        y = y1 + slope * (near if (slope > 0) == (below == 0.0) else near + width) - 4 + below
        places.append((x1 + direction * (near + width / 2), y))
    x, y = min(places, key=lambda place: _covered(place, width, labels))
    labels.append((x, y, width))
    return Text(x, y, name, 10, colour, "middle", bold=a.data, halo=True, tip=a.tip)


def _covered(place: tuple[float, float], width: float, labels: list[tuple[float, float, float]]) -> float:
    """The area of names that a name at a place would cover; 0 if the place is free."""
    x, y = place
    return sum(max(0.0, (width + lw) / 2 - 3 - abs(x - lx)) * max(0.0, 11 - abs(y - ly)) for lx, ly, lw in labels)


def _to_edge(half_box: float | None, dx: float, dy: float) -> float:
    """The share of an arrow that is inside the box (or the bar) at its end."""
    across = (3.5 if half_box is None else half_box) / max(1.0, abs(dx))
    down = PILL / 2 / abs(dy) if half_box is not None and dy else 1.0
    return min(across, down, 0.45)


def _pill_width(plan: Plan, t: dict[str, Any]) -> float:
    return text_width(_pill_text(plan, t), 10.5, t["state"] != t["next"]) + 12


def _pills(drawing: Drawing, plan: Plan, lane: Lane, y: float, stack: list[dict[str, Any]]) -> None:
    for i, t in enumerate(stack):
        at = y + i * (PILL + 15)
        text = _pill_text(plan, t)
        changed = t["state"] != t["next"]
        width = _pill_width(plan, t)
        right = RIGHTS.get(plan.permissions.get(t["machine"], {}).get(t["next"], ""))
        tip = f"{t['controller']}: {t['event']} in {t['state']} leads to {t['next']} ({t['address']})"
        drawing.add(Box(lane.x - width / 2, at - PILL / 2, width, PILL, "#ffffff", right[0] if right else "#8b95a1", 8, tip),
                    Text(lane.x, at + 3.7, text, 10.5, INK if changed else FAINT, "middle", bold=changed, tip=tip),
                    Text(lane.x, at + PILL / 2 + 9.5, t["event"], 9, FAINT, "middle", halo=True))


def _legend(drawing: Drawing, plan: Plan, y: float, right: float) -> float:
    x = 16.0

    def room(width: float) -> None:
        nonlocal x, y
        if x + width > right and x > 16:
            x, y = 16.0, y + 20

    drawing.add(Line(12, y - 16, right + 8, y - 16, RULE, 1))
    kinds = dict.fromkeys(KINDS.get(a.kind, OTHER) for a in plan.arrows)
    for colour, name in kinds:
        room(44 + text_width(name, 10))
        drawing.add(Line(x, y - 3, x + 24, y - 3, colour, 1.6), Head(x + 26, y - 3, 1, 0, colour, 7, hollow=True),
                    Text(x + 32, y, name, 10, INK))
        x += 48 + text_width(name, 10)
    for width, hollow, name in ((2.2, False, "with data"), (1.1, True, "command only")):
        room(44 + text_width(name, 10))
        drawing.add(Line(x, y - 3, x + 24, y - 3, INK, width), Head(x + 26, y - 3, 1, 0, INK, 7, hollow),
                    Text(x + 32, y, name, 10, INK))
        x += 48 + text_width(name, 10)
    for colour, width, name in dict.fromkeys(RIGHTS.values()):
        room(30 + text_width(name, 10))
        drawing.add(Line(x + 6, y - 11, x + 6, y + 3, colour, width), Text(x + 18, y, name, 10, INK))
        x += 34 + text_width(name, 10)
    if any(lane.machine == "Directory" for lane in plan.order):
        room(130)
        drawing.add(Line(x + 6, y - 11, x + 6, y + 3, AT_WORK, 7.0), Text(x + 18, y, "home at work", 10, INK))
        x += 34 + text_width("home at work", 10)
    event = "transition, its event below"
    room(52 + text_width(event, 10))
    drawing.add(Box(x, y - 12, 46, 15, "#ffffff", "#8b95a1", 7), Text(x + 23, y - 1, "I \u2192 S", 9.5, INK, "middle", bold=True),
                Text(x + 52, y, event, 10, INK))
    x, y = 16.0, y + 20
    for name, (short, meaning, colour) in SEGMENTS.items():
        if any(s["name"] == name for a in plan.document["accesses"] for s in a["segments"]):
            text = f"{short}: {meaning}"
            room(30 + text_width(text, 10))
            drawing.add(Box(x, y - 10, 12, 12, colour), Text(x + 17, y, text, 10, INK))
            x += 34 + text_width(text, 10)
    return y
