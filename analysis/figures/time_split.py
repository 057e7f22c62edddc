# SPDX-License-Identifier: BSD-3-Clause
"""Time of the cores by cause, against core count."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import style
from analysis.figures import Spec
from analysis.run_directory import Run
from analysis.tables.time_split import causes

WORTH_A_LABEL = 0.055


def draw(run: Run, wide: bool) -> Figure | None:
    split = {key: [(p.cores, causes(p)) for p in points] for key, points in run.series().items()}
    split = {key: [(n, c) for n, c in rows if c] for key, rows in split.items()}
    split = {key: rows for key, rows in split.items() if rows}
    if not split:
        return None
    shown = [c for c in style.causes() if any(row.get(c, 0.0) >= style.SEEN for rows in split.values() for _, row in rows)]
    columns = min(len(split), 2) if wide else 1
    rows_of = -(-len(split) // columns)
    fig = style.figure(wide, 0.8 + (3.5 if wide else 3.2) * rows_of)
    axes = fig.subplots(rows_of, columns, squeeze=False, sharey=True)
    for ax in axes.flat[len(split):]:
        ax.set_visible(False)
    for ax, ((workload, kernel), rows) in zip(axes.flat, split.items(), strict=False):
        _bars(ax, rows, shown)
        ax.set_title(f"{workload} on {kernel}")
        ax.set_xlabel("cores in use")
    for ax in axes[:, 0]:
        ax.set_ylabel("share of core time (%)")
    handles = [Patch(facecolor=style.color(c), edgecolor=style.color("muted"), linewidth=0.4) for c in shown]
    style.legend_above(fig, handles, [style.LABELS[c] for c in shown], 5 if wide else 3)
    return fig


def _bars(ax: Axes, rows: list[tuple[int, dict[str, float]]], shown: list[str]) -> None:
    style.horizontal_grid(ax)
    for x, (_, row) in enumerate(rows):
        bottom = 0.0
        for cause in shown:
            share = 100 * row.get(cause, 0.0)
            if not share:
                continue
            # The line between areas would cover a thin one.
            edge: dict[str, Any] = {"linewidth": 0, "zorder": 2} if share < 1 else {"edgecolor": style.color("page"), "linewidth": 0.8}
            ax.bar(x, share, 0.66, bottom=bottom, color=style.color(cause), **edge)
            if share >= 100 * WORTH_A_LABEL:
                ax.text(x, bottom + share / 2, f"{share:.0f}", ha="center", va="center", fontsize=8.5, color=style.text_on(cause))
            bottom += share
    ax.set_xticks(range(len(rows)), [str(n) for n, _ in rows])
    ax.set(xlim=style.bar_limits(len(rows)), ylim=(0, 100))


FIGURE = Spec("time-split", "run", 10, "Where the cores' time goes",
              "Time of all cores in use, by cause, in per cent. Busy: the core executes instructions. Core stall: it waits for slow "
              "instructions, such as divisions, or for device registers. Spinning: it repeats a wait loop, with the instruction PAUSE. The "
              "other causes are memory stall, by the reason why the cache line was not in the cache.", draw)
