# SPDX-License-Identifier: BSD-3-Clause
"""What the probe filter of each node decided, for protocols with HT Assist (the lecture's table of requests and states)."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import style
from analysis.figures import Spec
from analysis.run_directory import Point

# (label, colour role, what follows): each request that reaches a home node has one of these outcomes.
OUTCOMES = (("no entry: DRAM, no probe", "series1"), ("shared: DRAM, no probe", "kernel"), ("directed probe", "series2"),
            ("broadcast invalidation", "upgrade"), ("entry replaced: probes", "capacity"))
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
    """Per home node, how often each outcome came."""
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


def draw(point: Point, wide: bool) -> Figure | None:
    nodes = by_node(point) if point.machine.get("protocol") == "MOESI_HTAssist" else []
    if not any(map(sum, nodes)):
        return None
    fig = style.figure(wide, 3.4 if wide else 3.9)
    ax = fig.subplots()
    style.horizontal_grid(ax)
    for n, counts in enumerate(nodes):
        bottom = 0.0
        for (_, role), count in zip(OUTCOMES, counts, strict=True):
            ax.bar(n, count / 1000, 0.66, bottom=bottom, color=style.color(role), edgecolor=style.color("page"), linewidth=0.6)
            bottom += count / 1000
    ax.set_xticks(range(len(nodes)), [str(n) for n in range(len(nodes))])
    ax.set(xlabel="home node", ylabel="requests (thousands)")
    style.legend_above(fig, [Patch(color=style.color(r)) for _, r in OUTCOMES], [name for name, _ in OUTCOMES], 3 if wide else 1)
    return fig


FIGURE = Spec("probe-filter", "point", 75, "What the probe filters decided",
              "Requests by home node and by what the filter's entry made of them: no probe, a probe to the one owner, or a broadcast; and entries "
              "that were replaced, which costs probes too.", draw)
