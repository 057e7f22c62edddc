# SPDX-License-Identifier: BSD-3-Clause
"""The names of lines with the most waiting, each by miss class and spinning. The page has a list of them; this figure is its PNG."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import style
from analysis.described import WAITS
from analysis.figures import Spec
from analysis.run_directory import Point
from analysis.tables.base import Row
from analysis.tables.names import hot_names

MOST = 15


def draw(point: Point, wide: bool) -> Figure | None:
    lines = hot_names(point)[:MOST]
    if not lines:
        return None
    longest = max(line["wait_share"] for line in lines)
    fig = style.figure(wide, 1.2 + 0.34 * len(lines))
    ax = fig.subplots()
    used = []
    for y, line in enumerate(lines):
        left = 0.0
        for cause, share in split(line):
            ax.barh(y, 100 * share, 0.7, left=left, color=style.color(cause), edgecolor=style.color("page"), linewidth=0.5)
            left += 100 * share
            used.append((cause, share))
        ax.annotate(f"{100 * line['wait_share']:.1f} %", (left, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8.5)
    ax.set_yticks(range(len(lines)), [label(one, wide) for one in lines])
    ax.invert_yaxis()
    # From zero: by default the axis begins where a thin first part of a bar ends.
    ax.set_xlim(0, 110 * longest or 1)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("share of all waiting (%)")
    kinds = seen(used, longest)
    style.legend_above(fig, [Patch(color=style.color(c)) for c in kinds], [style.LABELS[c] for c in kinds], 6 if wide else 3)
    return fig


def label(one: Row, wide: bool) -> str:
    many = f" ({one['waited']:,} lines)" if one["waited"] > 1 else ""
    return style.shortened(one["name"], (56 if wide else 26) - len(many)) + many


def seen(parts: list[tuple[str, float]], longest: float) -> list[str]:
    """The causes that a legend lists: those with a visible area in a bar."""
    used = {cause for cause, share in parts if share >= style.SEEN * longest > 0}
    return [cause for cause in (*WAITS, "without_class", "memory") if cause in used]


def split(line: Row) -> list[tuple[str, float]]:
    """A line's share of all waiting by cause. Stall without a class (analysis/tables/time_split.py) is last."""
    classes, whole = line["classes"], line["wait_share"]
    waited = ((line["stall_us"] or 0.0) + (line["spin_us"] or 0.0)) * 1e9
    if not waited or not any(classes.values()):
        cause = line["class"] if line["class"] in WAITS else "memory"
        return [(cause, whole)]
    parts = [(k, whole * classes[k] / waited) for k in WAITS if classes.get(k)]
    rest = whole - sum(share for _, share in parts)
    return parts + [("without_class", rest)] if rest > 1e-3 * whole else parts


FIGURE = Spec("hot-lines", "point", 5, "The cache lines that cost most",
              "Share of all waiting of the cores in use: memory stall, and spinning on a line.", draw, in_page=False)
