# SPDX-License-Identifier: BSD-3-Clause
"""Figure 3 of the paper: throughput per core on the most cores relative to one core, two bars for each application."""

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis import paper, style
from analysis.mosbench.data import Results
from analysis.mosbench.published import bar

CAPTION = ("1.0 is perfect scaling. Thin lines are standard errors. Black brackets show the paper's bars as far as its text and the "
           "talk on it give them, because the paper's figure has no numbers. moscope's bars are predictions for Linux 6.1, for some "
           "applications with a replica.")
WIDTH = 0.36


def draw(results: Results, wide: bool) -> Figure | None:
    shown = [a for a in results.applications if any(c.ratio is not None for c in (a.curves[0], a.curves[-1]))]
    if not shown:
        return None
    fig = style.figure(wide, 3.6)
    ax = fig.subplots()
    style.horizontal_grid(ax)
    top, bracket = 1.0, False
    for x, one in enumerate(shown):
        for side, place in enumerate((0, len(one.curves) - 1)):
            curve, known = one.curves[place], bar(results, one, place)
            at = x + (side - 0.5) * (WIDTH + 0.02)
            if curve.ratio is not None:
                ax.bar(at, curve.ratio, WIDTH, yerr=curve.ratio_stderr, color=style.color(style.SERIES[side][0]), ecolor=style.color("ink"),
                       error_kw={"elinewidth": 1.0, "capsize": 2})
                end = curve.ratio + (curve.ratio_stderr or 0.0)
                ax.annotate(f"{curve.ratio:.2f}", (at, end), xytext=(0, 4), textcoords="offset points", ha="center", fontsize=8.5)
                top = max(top, end * 1.1)
            if known is not None:
                bracket = True
                _bracket(ax, at, known)
    ax.set_xticks(range(len(shown)), [a.title for a in shown], rotation=0 if wide else 40, ha="center" if wide else "right")
    ax.set(ylabel=f"per core on {results.most_cores} cores / on 1 core", ylim=(0, top * 1.06), xlim=(-0.6, len(shown) - 0.4))
    handles: list[Artist] = [Patch(color=style.color(style.SERIES[0][0])), Patch(color=style.color(style.SERIES[1][0]))]
    labels = ["stock kernel and application", "PK and modified application"]
    if bracket:
        handles.append(Line2D([], [], color=style.color("ink"), marker="_", linewidth=1.6))
        labels.append("paper")
    style.legend_above(fig, handles, labels, 3 if wide else 1)
    return fig


def _bracket(ax: Axes, at: float, known: paper.Ratio) -> None:
    """From the low to the high value, with a bar across each end."""
    half = WIDTH / 4
    ink = style.color("ink")
    for y in {known.low, known.high}:
        ax.plot([at - half, at + half], [y, y], color=ink, linewidth=1.8, zorder=5)
    ax.plot([at, at], [known.low, known.high], color=ink, linewidth=1.2, zorder=5)
