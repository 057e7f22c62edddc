# SPDX-License-Identifier: BSD-3-Clause
"""Distribution of the latency of transactions, and the mean latency by segment."""

import math

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis import paper, style
from analysis.described import SEGMENT
from analysis.figures import Spec
from analysis.run_directory import Point
from analysis.tables.latency import point_latency


def draw(point: Point, wide: bool) -> Figure | None:
    buckets, beyond = point_latency(point)
    whole = sum(n for *_, n in buckets)
    if not whole:
        return None
    segments = [(SEGMENT.short(s) if s in SEGMENT.names else s, fs) for s, fs in (point.attribution.get("segments") or {}).items()]
    fig = style.figure(wide, 4.0 if wide else 6.0)
    left, right = fig.subplots(1, 2, width_ratios=(1.6, 1)) if wide else fig.subplots(2, 1, height_ratios=(1.3, 1))
    style.horizontal_grid(left)
    for x, (_, _, n) in enumerate(buckets):
        left.bar(x + 0.5, 100 * n / whole, 0.92, color=style.color("series1"))
    edges = [0, *(2**b for b in range(len(buckets)))]
    step = 2 if len(edges) > (14 if wide else 9) else 1
    left.set_xticks(range(0, len(edges), step), [_short(e) for e in edges[::step]])
    left.set(xlabel="latency (ns, in powers of two)", ylabel="transactions (%)", xlim=(0, len(buckets)))
    left.set_title("Distribution")
    handles: list[Artist] = [Patch(color=style.color("series1")), Patch(color=style.color("series2"))]
    names = ["transactions", "mean time by segment"]
    if point.of_paper:
        handles.insert(1, _references(left, len(buckets), wide))
        names.insert(1, "published idle load latency")
    style.legend_above(fig, handles, names, 3 if wide else 1)
    transactions = max(int(point.attribution.get("transactions") or whole), 1)
    right.barh(range(len(segments)), [fs / 1e6 / transactions for _, fs in segments], 0.7, color=style.color("series2"))
    for y, (_, fs) in enumerate(segments):
        right.annotate(f"{fs / 1e6 / transactions:.1f}", (fs / 1e6 / transactions, y), xytext=(4, 0), textcoords="offset points",
                       va="center", fontsize=8.5)
    right.set_yticks(range(len(segments)), [s for s, _ in segments])
    right.invert_yaxis()
    right.margins(x=0.18)
    right.spines["left"].set_visible(False)
    right.tick_params(axis="y", length=0)
    right.set_xlabel("mean ns per transaction")
    right.set_title("Mean by segment")
    if beyond:
        fig.supxlabel(f"{beyond:,} more transactions have no recorded end", fontsize=8.5, color=style.color("muted"))
    return fig


def _short(ns: float) -> str:
    return f"{ns / 1e6:g}m" if ns >= 1e6 else f"{ns / 1024:g}k" if ns >= 1024 else f"{ns:g}"


# Of a reference line's label, in parts of the axes: the height of its row, and the width of a character.
ROW, CHARACTER = {True: 0.055, False: 0.085}, {True: 0.0115, False: 0.0245}


def _references(ax: Axes, buckets: int, wide: bool) -> Line2D:
    """Lines at the paper's idle latencies. The labels are in rows above the bars. Each is to the right of its
    line and below the labels of the lines before it, so that it crosses no other line. The axis is extended where that needs room."""
    known = [(name, 1 + math.log2(ns)) for name, ns in paper.IDLE_LATENCY_NS if 1 + math.log2(ns) < buckets]
    bars = ax.get_ylim()[1]
    ticks = [y for y in ax.get_yticks() if 0 <= y <= bars]
    ax.set_ylim(0, bars / (1 - ROW[wide] * (len(known) + 0.4)))
    ax.set_yticks(ticks)
    ax.set_xlim(0, max([buckets, *((x + 0.1) / (1 - CHARACTER[wide] * len(name)) for name, x in known)]))
    for n, (name, x) in enumerate(known):
        top = 1 - ROW[wide] * n
        ax.axvline(x, ymax=top, color=style.color("muted"), linestyle=":", linewidth=1.2)
        ax.text(x + 0.1, top, name, transform=ax.get_xaxis_transform(), fontsize=8, va="top", ha="left", color=style.color("muted"))
    return Line2D([], [], color=style.color("muted"), linestyle=":", linewidth=1.2)


def caption(point: Point) -> str:
    text = "All transactions of all cores in the measured windows. Segments: " + "; ".join(
        f"{SEGMENT.short(s)}, {SEGMENT.label(s)}" for s in SEGMENT.names if s in (point.attribution.get("segments") or {})) + "."
    if point.of_paper:
        text += (" Dotted lines mark the idle load latencies published for the machine. Transactions slower than the farthest DRAM "
                 "waited in queues or for other cores.")
    return text


FIGURE = Spec("latency", "point", 80, "Latency of transactions beyond L1", caption, draw)
