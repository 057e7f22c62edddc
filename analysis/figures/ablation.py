# SPDX-License-Identifier: BSD-3-Clause
"""Throughput by setting of the kernel's fixes: the stock kernel with some fixes, the patched one without some."""

import re

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import style
from analysis.figures import Spec
from analysis.run_directory import Point, Run

ROLES = {False: "series1", True: "series2"}  # by whether it starts from pk
MIX = re.compile(r"(stock\+|pk-)([0-9]+(?:,[0-9]+)*)")


def panels(run: Run) -> list[list[Point]]:
    """Points of one workload and core count that hold a mix of fixes: from `stock` over the mixes to `pk`."""
    found: dict[tuple[str, int], list[Point]] = {}
    for p in run.points:
        if p.number("throughput_per_s") is not None and (p.kernel in ("stock", "pk") or MIX.fullmatch(p.kernel)):
            found.setdefault((p.workload, p.cores), []).append(p)
    return [sorted(points, key=_place) for points in found.values() if any(MIX.fullmatch(p.kernel) for p in points)]


def _place(p: Point) -> tuple[int, list[int]]:
    if match := MIX.fullmatch(p.kernel):
        return 1 if match.group(1) == "stock+" else 2, [int(n) for n in match.group(2).split(",")]
    return 0 if p.kernel == "stock" else 3, []


def draw(run: Run, wide: bool) -> Figure | None:
    found = panels(run)
    if not found:
        return None
    fig = style.figure(wide, sum(0.9 + 0.3 * len(points) for points in found))
    axes = fig.subplots(len(found), 1, squeeze=False, height_ratios=[2 + len(points) for points in found]).reshape(-1)
    for ax, points in zip(axes, found, strict=True):
        _bars(ax, points)
    style.legend_above(fig, [Patch(color=style.color(r)) for r in ROLES.values()], ["starting from stock", "starting from pk"], 2)
    return fig


def _bars(ax: Axes, points: list[Point]) -> None:
    for y, p in enumerate(points):
        value, error = p.number("throughput_per_s") or 0.0, p.number("stderr_per_s")
        ax.barh(y, value, 0.7, xerr=error, capsize=3, color=style.color(ROLES[p.kernel.startswith("pk")]),
                ecolor=style.color("ink"), edgecolor=style.color("page"), linewidth=0.5)
        ax.annotate(f"{value:,.0f}", (value + (error or 0.0), y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8.5)
    ax.set_yticks(range(len(points)), [p.kernel for p in points])
    ax.invert_yaxis()
    ax.margins(x=0.14)
    ax.set_title(f"{points[0].workload} on {points[0].cores} core{'s' if points[0].cores != 1 else ''}")
    ax.set_xlabel(f"{points[0].operations} per second")


FIGURE = Spec("ablation", "run", 22, "Effect of each fix alone",
              "stock+N is the stock kernel with fix N alone, pk-N the patched kernel without fix N. The numbers are those of figure 1 of "
              "the MOSBENCH paper. Error bars are the standard error over repeated windows. Fixes are not independent: one bottleneck "
              "hides the next.", draw, in_page=False)
