# SPDX-License-Identifier: BSD-3-Clause
"""Transactions beyond L1 and the stall that they cost, by class of miss, against core count."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import style
from analysis.described import CLASSES, MISS_CLASS
from analysis.figures import Spec
from analysis.run_directory import FS_PER_MS, FS_PER_US, Point, Run


def draw(run: Run, wide: bool) -> Figure | None:
    series = {key: [p for p in points if p.attribution.get("classes")] for key, points in run.series().items()}
    series = {key: points for key, points in series.items() if points}
    if not series:
        return None
    rows, columns = (len(series), 2) if wide else (2 * len(series), 1)
    fig = style.figure(wide, 0.7 + (3.0 if wide else 2.8) * rows)
    axes = fig.subplots(rows, columns, squeeze=False).reshape(-1)
    used = set()
    for n, ((workload, kernel), points) in enumerate(series.items()):
        by_op = all(p.record.get("ops") for p in points)
        per = "per operation" if by_op else "per ms of a core"
        for ax, what, unit, scale in ((axes[2 * n], "count", "transactions", 1), (axes[2 * n + 1], "stall", "stall (µs)", FS_PER_US)):
            style.horizontal_grid(ax)
            bars = [{k: (p.attribution["classes"].get(k) or {}).get(what, 0) / scale / _divisor(p, by_op) for k in CLASSES} for p in points]
            longest = max(sum(bar.values()) for bar in bars)
            for x, bar in enumerate(bars):
                bottom = 0.0
                for k, value in bar.items():
                    ax.bar(x, value, 0.6, bottom=bottom, color=style.color(k), edgecolor=style.color("page"), linewidth=0.6)
                    bottom += value
                    if value >= style.SEEN * longest > 0:
                        used.add(k)
            ax.set_xticks(range(len(points)), [str(p.cores) for p in points])
            ax.set_xlim(style.bar_limits(len(points)))
            ax.set(xlabel="cores in use", ylabel=f"{unit} {per}")
            ax.set_title((f"{workload} on {kernel}: " if len(series) > 1 else "") + ("number" if what == "count" else "stall"))
    kinds = [k for k in CLASSES if k in used]
    style.legend_above(fig, [Patch(color=style.color(k)) for k in kinds], [style.LABELS[k] for k in kinds], 5 if wide else 3)
    return fig


def _divisor(p: Point, by_op: bool) -> float:
    return float(p.record["ops"]) if by_op else max(p.window_fs / FS_PER_MS * max(p.cores, 1), 1e-9)


FIGURE = Spec("misses", "run", 40, "Misses by class",
              "Transactions beyond L1, and the stall that they cause. " + " ".join(
                  f"{MISS_CLASS.label(c).capitalize()}: {MISS_CLASS[c].sentence}." for c in CLASSES), draw)
