# SPDX-License-Identifier: BSD-3-Clause
"""Kernel and user time per operation, against core count."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import style
from analysis.figures import Spec
from analysis.run_directory import Run


def draw(run: Run, wide: bool) -> Figure | None:
    series = {key: [p for p in points if p.number("system_us_per_op") is not None or p.number("user_us_per_op") is not None]
              for key, points in run.series().items()}
    series = {key: points for key, points in series.items() if points}
    if not series:
        return None
    columns = min(len(series), 2) if wide else 1
    rows = -(-len(series) // columns)
    fig = style.figure(wide, 0.6 + (2.9 if wide else 2.7) * rows)
    axes = fig.subplots(rows, columns, squeeze=False)
    for ax in axes.flat[len(series):]:
        ax.set_visible(False)
    for ax, ((workload, kernel), points) in zip(axes.flat, series.items(), strict=False):
        style.horizontal_grid(ax)
        for x, p in enumerate(points):
            user, system = p.number("user_us_per_op") or 0.0, p.number("system_us_per_op") or 0.0
            ax.bar(x, user, 0.6, color=style.color("user"))
            ax.bar(x, system, 0.6, bottom=user, color=style.color("kernel"))
            share = f"{100 * system / (user + system):.0f} %" if user + system else ""
            ax.annotate(share, (x, user + system), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=8.5)
        ax.set_xticks(range(len(points)), [str(p.cores) for p in points])
        ax.set_xlim(-0.6, max(len(points), 3) - 0.4)
        ax.margins(y=0.12)
        ax.set_title(f"{workload} on {kernel}")
        ax.set(xlabel="cores in use", ylabel=f"core time per {points[0].operation} (µs)")
    style.legend_above(fig, [Patch(color=style.color("user")), Patch(color=style.color("kernel"))],
                       ["user", "kernel (share above the bar)"], 2)
    return fig


FIGURE = Spec("time-per-op", "run", 30, "Kernel and user time per operation",
              "Busy and stalled time of all cores in use, divided by the operations finished, in microseconds; idle time is left out.", draw)
