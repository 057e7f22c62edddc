# SPDX-License-Identifier: BSD-3-Clause
"""Kernel and user time per operation, and the kernel's share, against core count."""

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import paper, style
from analysis.comparison.pairs import figure
from analysis.figures import Spec
from analysis.run_directory import Point, Run
from moscope.wording import significant


def draw(run: Run, wide: bool) -> Figure | None:
    series = {key: [p for p in points if p.number("system_us_per_op") is not None or p.number("user_us_per_op") is not None]
              for key, points in run.series().items()}
    series = {key: points for key, points in series.items() if points}
    if not series:
        return None
    panels = len(series) + 1
    columns = 2 if wide else 1
    rows = -(-panels // columns)
    fig = style.figure(wide, 0.7 + (3.0 if wide else 2.8) * rows)
    axes = fig.subplots(rows, columns, squeeze=False).reshape(-1)
    for ax in axes[panels:]:
        ax.set_visible(False)
    # Panels of one workload have one scale, because a reader compares them.
    longest = {w: max(time(p) for (other, _), points in series.items() if other == w for p in points) for w, _ in series}
    for ax, ((workload, kernel), points) in zip(axes, series.items(), strict=False):
        _bars(ax, points, longest[workload])
        ax.set_title(f"{workload} on {kernel}")
    handles = _shares(axes[panels - 1], series, run.of_paper)
    style.legend_above(fig, [Patch(color=style.color("kernel")), Patch(color=style.color("user")), *handles.values()],
                       ["kernel time", "user time", *handles], 4 if wide else 1)
    return fig


def time(p: Point) -> float:
    """Kernel and user time of an operation, in microseconds."""
    return (p.number("user_us_per_op") or 0.0) + (p.number("system_us_per_op") or 0.0)


def _bars(ax: Axes, points: list[Point], longest: float) -> None:
    style.horizontal_grid(ax)
    for x, p in enumerate(points):
        user, system = p.number("user_us_per_op") or 0.0, p.number("system_us_per_op") or 0.0
        ax.bar(x, user, 0.6, color=style.color("user"), edgecolor=style.color("page"), linewidth=0.6)
        ax.bar(x, system, 0.6, bottom=user, color=style.color("kernel"), edgecolor=style.color("page"), linewidth=0.6)
        ax.annotate(significant(time(p), 4), (x, time(p)), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=8.5)
    ax.set_xticks(range(len(points)), [str(p.cores) for p in points])
    ax.set_xlim(style.bar_limits(len(points)))
    ax.set_ylim(0, longest * 1.12 or 1)  # with room for the label of the highest bar
    ax.set(xlabel="cores in use", ylabel="core time per operation (µs)")


def _shares(ax: Axes, series: dict[tuple[str, str], list[Point]], of_paper: bool) -> dict[str, Any]:
    """Kernel's share against cores with the windows' standard error; returns handles by label."""
    style.horizontal_grid(ax)
    handles: dict[str, Any] = {}
    most = 4
    for number, ((workload, kernel), points) in enumerate(series.items()):
        role, marker = style.series(number)
        known = [p for p in points if p.number("kernel_share") is not None]
        if not known:
            continue
        errors = [standard_error(p) for p in known]
        handles[f"share: {workload} on {kernel}"] = ax.errorbar(
            [p.cores for p in known], [100 * (p.number("kernel_share") or 0.0) for p in known], yerr=errors, color=style.color(role),
            marker=marker, capsize=4, elinewidth=1.4)
        most = max([most, *(p.cores for p in known)])
    counts = {p.cores for points in series.values() for p in points}
    for workload in dict.fromkeys(w for w, _ in series):
        if of_paper and workload in paper.KERNEL_SHARE_1_CORE:
            counts.add(1)
            # Above the run's own marker, which it often hits.
            handles[f"paper: {workload} on 1 core"] = ax.plot([1], [100 * paper.KERNEL_SHARE_1_CORE[workload]], color=style.color("muted"),
                                                              marker="x", markersize=10, markeredgewidth=2, linestyle="none", zorder=4)[0]
    ax.set(xlabel="cores in use", ylabel="kernel's share of active time (%)", ylim=(0, 100), xlim=(0, most * 1.05),
           xticks=style.apart(sorted(counts), most / 14))
    ax.set_title("kernel's share")
    return handles


def standard_error(p: Point) -> float:
    """Of the kernel's share, in per cent; not a number where it is unknown: no bar is drawn."""
    share = figure(p, "kernel_share")
    return math.nan if share is None or share.stderr is None else 100 * share.stderr


FIGURE = Spec("time-per-op", "run", 30, "Kernel and user time per operation",
              "Busy and stalled time of all cores in use, divided by the operations finished, in microseconds; idle time is left out. "
              "The kernel's share is of busy and stalled time, with the standard error over repeated windows.", draw)
