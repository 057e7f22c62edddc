# SPDX-License-Identifier: BSD-3-Clause
"""Transactions beyond L1 and the stall that they cost, by class of miss, against core count."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import style
from analysis.described import CLASSES, FS_PER_MS, FS_PER_US, MISS_CLASS
from analysis.figures import Spec
from analysis.run_directory import Point, Run


def draw(run: Run, wide: bool) -> Figure | None:
    series = {key: [p for p in points if p.attribution.get("classes")] for key, points in run.series().items()}
    series = {key: points for key, points in series.items() if points}
    if not series:
        return None
    rows, columns = (len(series), 2) if wide else (2 * len(series), 1)
    fig = style.figure(wide, 0.7 + (3.0 if wide else 2.8) * rows)
    axes = fig.subplots(rows, columns, squeeze=False).reshape(-1)
    panels = []
    for n, ((workload, kernel), points) in enumerate(series.items()):
        by_op = all(p.record.get("ops") for p in points)
        for ax, what in ((axes[2 * n], "count"), (axes[2 * n + 1], "stall")):
            ax.set_title((f"{workload} on {kernel}: " if len(series) > 1 else "") + ("number" if what == "count" else "stall"))
            panels.append((ax, what, (workload, by_op, what), points, [_bar(p, what, by_op) for p in points]))
    # Panels of one workload and one unit have one scale, because a reader compares them.
    longest: dict[tuple[str, bool, str], float] = {}
    for *_, scale, _, bars in panels:
        longest[scale] = max(longest.get(scale, 0.0), *(sum(bar.values()) for bar in bars))
    used: set[str] = set()
    for ax, what, scale, points, bars in panels:
        used |= _panel(ax, bars, longest[scale])
        ax.set_xticks(range(len(points)), [str(p.cores) for p in points])
        unit = "transactions" if what == "count" else "stall (µs)"
        ax.set(xlabel="cores in use", ylabel=f"{unit} {'per operation' if scale[1] else 'per ms of a core'}")
    kinds = [k for k in CLASSES if k in used]
    style.legend_above(fig, [Patch(color=style.color(k)) for k in kinds], [style.LABELS[k] for k in kinds], 5 if wide else 3)
    return fig


def _bar(p: Point, what: str, by_op: bool) -> dict[str, float]:
    """The number or the stall of a point's misses, by class."""
    unit = (FS_PER_US if what == "stall" else 1) * _divisor(p, by_op)
    return {k: (p.attribution["classes"].get(k) or {}).get(what, 0) / unit for k in CLASSES}


def _panel(ax: Axes, bars: list[dict[str, float]], longest: float) -> set[str]:
    """Draws the bars on an axis for the longest one of all; returns the classes that are seen."""
    style.horizontal_grid(ax)
    used = set()
    for x, bar in enumerate(bars):
        bottom = 0.0
        for k, value in bar.items():
            ax.bar(x, value, 0.6, bottom=bottom, color=style.color(k), edgecolor=style.color("page"), linewidth=0.6)
            bottom += value
            if value >= style.SEEN * longest > 0:
                used.add(k)
    ax.set(xlim=style.bar_limits(len(bars)), ylim=(0, longest * 1.05 or 1))
    return used


def _divisor(p: Point, by_op: bool) -> float:
    return float(p.record["ops"]) if by_op else max(p.window_fs / FS_PER_MS * max(p.cores, 1), 1e-9)


FIGURE = Spec("misses", "run", 40, "Misses by class",
              "Transactions beyond L1, and the stall that they cause. " + " ".join(
                  f"{MISS_CLASS.label(c).capitalize()}: {MISS_CLASS[c].sentence}." for c in CLASSES), draw)
