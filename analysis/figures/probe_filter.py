# SPDX-License-Identifier: BSD-3-Clause
"""What the probe filter of each node decided, for protocols with HT Assist (the lecture's table of requests and states)."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import filters, style
from analysis.figures import Spec
from analysis.run_directory import Point

# The roles of the outcomes' colours, in their order.
ROLES = ("series1", "kernel", "series2", "upgrade", "capacity", "series3", "series4")


def draw(point: Point, wide: bool) -> Figure | None:
    names, nodes = filters.by_node(point)
    if not any(map(sum, nodes)):
        return None
    fig = style.figure(wide, 3.4 if wide else 3.9)
    ax = fig.subplots()
    style.horizontal_grid(ax)
    for n, counts in enumerate(nodes):
        bottom = 0.0
        for role, count in zip(ROLES, counts, strict=False):
            ax.bar(n, count / 1000, 0.66, bottom=bottom, color=style.color(role), edgecolor=style.color("page"), linewidth=0.6)
            bottom += count / 1000
    ax.set_xticks(range(len(nodes)), [str(n) for n in range(len(nodes))])
    ax.set(xlabel="home node", ylabel="requests (thousands)")
    longest = max(map(sum, nodes))
    seen = [(role, name) for role, name, *counts in zip(ROLES, names, *nodes, strict=False) if max(counts) >= style.SEEN * longest]
    style.legend_above(fig, [Patch(color=style.color(role)) for role, _ in seen], [name for _, name in seen], 3 if wide else 1)
    return fig


FIGURE = Spec("probe-filter", "point", 75, "What the probe filters decided",
              "Requests by home node and by the outcome of the lookup: no probe, a probe to the owner, or a broadcast. Replaced entries "
              "cost probes, too.", draw)
