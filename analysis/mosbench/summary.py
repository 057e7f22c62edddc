# SPDX-License-Identifier: BSD-3-Clause
"""Figure 3 of the paper: throughput per core on the most cores relative to one core, two bars for each application."""

from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import paper, style
from analysis.mosbench.data import Results
from analysis.mosbench.published import bar, is_compared

CAPTION = ("1.0 is perfect scaling. Thin lines are standard errors. The paper's figure has no numbers, so the paper's bars show the values "
           "in its text and in the talk on it. A hatched part is a range: the exact value is not given. A dash marks a bar without "
           "any value. moscope's bars are predictions for Linux 6.1; programs of moscope imitate some of the "
           "applications.")
WIDTH = 0.19
PLACES = ((-0.315, -0.115), (0.105, 0.305))  # of a bar and the paper's beside it, by side


def draw(results: Results, wide: bool) -> Figure | None:
    shown = [a for a in results.applications if any(c.ratio is not None for c in (a.curves[0], a.curves[-1]))]
    if not shown:
        return None
    fig = style.figure(wide, 3.6)
    ax = fig.subplots()
    style.horizontal_grid(ax)
    top, with_paper = 1.0, False
    for x, one in enumerate(shown):
        for side, place in enumerate((0, len(one.curves) - 1)):
            curve, known = one.curves[place], bar(results, one, place)
            at, beside = (x + offset for offset in PLACES[side])
            if curve.ratio is not None:
                ax.bar(at, curve.ratio, WIDTH, yerr=curve.ratio_stderr, color=style.color(style.SERIES[side][0]), ecolor=style.color("ink"),
                       error_kw={"elinewidth": 1.0, "capsize": 2})
                end = curve.ratio + (curve.ratio_stderr or 0.0)
                ax.annotate(f"{curve.ratio:.2f}", (at, end), xytext=(0, 3), textcoords="offset points", ha="center",
                            fontsize=8.5 if wide else 6)
                top = max(top, end * 1.1)
            if known is not None:
                with_paper = True
                _published(ax, beside, known)
            elif is_compared(results):
                ax.annotate("–", (beside, 0), xytext=(0, 2), textcoords="offset points", ha="center", color=style.color("muted"))
    ax.set_xticks(range(len(shown)), [a.title for a in shown], rotation=0 if wide else 40, ha="center" if wide else "right")
    ax.set(ylabel=f"per core on {results.most_cores} cores / on 1 core", ylim=(0, top * 1.06), xlim=(-0.6, len(shown) - 0.4))
    handles: list[Artist] = [Patch(color=style.color(style.SERIES[0][0])), Patch(color=style.color(style.SERIES[1][0]))]
    labels = ["stock kernel and application", "PK and modified application"]
    if with_paper:
        handles += [_area(), _area(hatched=True)]
        labels += ["paper", "paper: somewhere in this range"]
    style.legend_above(fig, handles, labels, 4 if wide else 1)
    return fig


def _published(ax: Axes, at: float, known: paper.Ratio) -> None:
    """The paper's bar up to the low value, and the range above it hatched."""
    for low, high, hatched in ((0.0, known.low, False), (known.low, known.high, True)):
        if high > low:
            ax.bar(at, high - low, WIDTH, low, **_looks(hatched))


def _looks(hatched: bool) -> dict[str, Any]:
    fill = "none" if hatched else style.color("grid")
    return {"facecolor": fill, "edgecolor": style.color("muted"), "linewidth": 0.8, "hatch": "////" if hatched else ""}


def _area(hatched: bool = False) -> Patch:
    return Patch(**_looks(hatched))
