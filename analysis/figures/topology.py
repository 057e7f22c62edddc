# SPDX-License-Identifier: BSD-3-Clause
"""Heat map of links and nodes on the topology."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from analysis import style
from analysis.figures import Spec
from analysis.run_directory import Point
from analysis.tables.traffic import point_links, point_nodes

HALF_W, HALF_H = 0.30, 0.22
LEAST_SCALE = 0.01  # share of time in use at the end of the colour scale, where nothing is in use for longer
APART = 0.07  # between the two directions of a link


def place(node: int, wide: bool) -> tuple[float, float]:
    """Nodes are in two rows (two columns on a narrow page): a ladder."""
    along, across = node // 2, node % 2
    return (along * 1.25, -across * 1.15) if wide else (across * 1.7, -along * 1.1)


def leaves(along: tuple[float, float], beside: tuple[float, float]) -> float:
    """The length of a line within a box. It begins `beside` the box's centre and goes `along` (of length 1)."""
    return min((half - at * math.copysign(1, u)) / abs(u) for half, u, at in zip((HALF_W, HALF_H), along, beside, strict=True) if u)


def draw(point: Point, wide: bool) -> Figure | None:
    nodes, links = point_nodes(point), point_links(point)
    if not nodes and not links:
        return None
    count = max([n + 1 for n, _, _ in nodes] + [max(a, b) + 1 for a, b, _, _ in links])
    spots = [place(n, wide) for n in range(count)]
    xs, ys = [x for x, _ in spots], [y for _, y in spots]
    height = 4.2 if wide else 1.6 + 1.25 * -(-count // 2)
    fig = style.figure(wide, height)
    ax = fig.subplots()
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set(xlim=(min(xs) - 0.5, max(xs) + 0.5), ylim=(min(ys) - 0.4, max(ys) + 0.4))
    scale = max(LEAST_SCALE, *(use for *_, use in links), *(use for *_, use in nodes))
    for a, b, rate, use in links:
        _arrow(ax, spots[a], spots[b], use / scale, f"{rate:.2f}")
    for n in range(count):
        rate, use = next(((r, u) for m, r, u in nodes if m == n), (0.0, 0.0))
        x, y = spots[n]
        ax.add_patch(FancyBboxPatch((x - HALF_W, y - HALF_H), 2 * HALF_W, 2 * HALF_H, boxstyle="round,pad=0,rounding_size=0.06",
                                    facecolor=style.color("page"), edgecolor=style.color("muted"), linewidth=1, zorder=3))
        ax.add_patch(FancyBboxPatch((x - HALF_W, y - HALF_H), 2 * HALF_W, 2 * HALF_H, boxstyle="round,pad=0,rounding_size=0.06",
                                    facecolor=(style.color("heat"), style.heat_alpha(use / scale)), edgecolor="none", zorder=4))
        ink = style.text_on_heat(use / scale)
        ax.text(x, y + 0.06, f"node {n}", ha="center", va="center", color=ink, weight="bold", fontsize=9.5, zorder=5)
        ax.text(x, y - 0.09, f"{rate:.2f} GB/s", ha="center", va="center", color=ink, fontsize=8.5, zorder=5)
    style.heat_scale(fig, ax, 100 * scale, "time in use (%)", wide)
    # The title repeats the caption, because a PNG has none.
    title = "GB/s of each direction of a link (with packet" + (" " if wide else "\n") + "headers) and of each node's DRAM"
    ax.set_title(title, fontsize=8.5, weight="normal", color=style.color("muted"))
    return fig


def _arrow(ax: Axes, a: tuple[float, float], b: tuple[float, float], share: float, label: str) -> None:
    (x0, y0), (x1, y1) = a, b
    dx, dy = x1 - x0, y1 - y0
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    ux, uy = dx / length, dy / length
    ox, oy = -uy * APART, ux * APART
    # From edge to edge of the boxes, along a line beside that of the centres.
    start_cut, end_cut = leaves((ux, uy), (ox, oy)) + 0.02, leaves((-ux, -uy), (ox, oy)) + 0.02
    start, end = (x0 + ux * start_cut + ox, y0 + uy * start_cut + oy), (x1 - ux * end_cut + ox, y1 - uy * end_cut + oy)
    ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, shrinkA=0, shrinkB=0, linewidth=1.2 + 3 * share,
                                 color=(style.color("heat"), style.heat_alpha(share)), zorder=2))
    # At a third of the link; on links that cross others closer to the start, to keep the numbers apart.
    at = 0.34 if not dx or not dy else 0.24
    ax.text(start[0] + (end[0] - start[0]) * at + 2.1 * ox, start[1] + (end[1] - start[1]) * at + 1.5 * oy, label, fontsize=8,
            ha="center", va="center", color=style.color("muted"), zorder=2.5,
            bbox={"facecolor": style.color("page"), "edgecolor": "none", "pad": 0.8, "alpha": 0.75})


FIGURE = Spec("topology", "point", 70, "Traffic on links and nodes",
              "Each arrow is one direction of a HyperTransport link, each box the DRAM of a node. A stronger colour means that the link or "
              "the DRAM is in use for a larger share of the time. The numbers are GB/s; those of links include packet headers.", draw)
