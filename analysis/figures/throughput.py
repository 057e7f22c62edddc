# SPDX-License-Identifier: BSD-3-Clause
"""Throughput against core count, per core and in total, with standard errors and the paper's results beside."""

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import paper, style
from analysis.figures import Spec
from analysis.run_directory import Point, Run

PAPER_MARKERS = ("x", "+", "1", "2")


def draw(run: Run, wide: bool) -> Figure | None:
    series = {key: [p for p in points if p.throughput is not None] for key, points in run.series().items()}
    series = {key: points for key, points in series.items() if points}
    if not series:
        return None
    workloads = list(dict.fromkeys(w for w, _ in series))
    panels = 2 * len(workloads)
    rows, columns = (len(workloads), 2) if wide else (panels, 1)
    fig = style.figure(wide, 0.9 + (3.4 if wide else 3.0) * rows)
    axes = fig.subplots(rows, columns, squeeze=False).reshape(-1)
    handles: dict[str, Any] = {}
    for n, workload in enumerate(workloads):
        mine = {kernel: points for (w, kernel), points in series.items() if w == workload}
        for ax, per_core in ((axes[2 * n], True), (axes[2 * n + 1], False)):
            _panel(ax, workload, mine, per_core, handles, len(workloads) > 1, run)
    style.legend_above(fig, list(handles.values()), list(handles), 4 if wide else 1)
    return fig


def _panel(ax: Axes, workload: str, mine: dict[str, list[Point]], per_core: bool, handles: dict[str, Any], several: bool,
           run: Run) -> None:
    style.horizontal_grid(ax)
    top = paper.PER_CORE_AXIS.get(workload, 0.0) if per_core and run.of_paper else 0.0
    counts = {p.cores for points in mine.values() for p in points}
    for kernel, points in mine.items():
        role, marker = style.series(run.kernels.index(kernel))
        share = [1 / max(p.cores, 1) if per_core else 1.0 for p in points]
        values = [(p.number("throughput_per_s") or 0.0) * s for p, s in zip(points, share, strict=True)]
        known = [p.number("stderr_per_s") for p in points]
        errors = [math.nan if e is None else e * s for e, s in zip(known, share, strict=True)]
        handles[f"moscope: {kernel}"] = ax.errorbar([p.cores for p in points], values, yerr=errors, color=style.color(role),
                                                    marker=marker, capsize=4, elinewidth=1.4)
        top = max([top, *(v + (0.0 if math.isnan(e) else e) for v, e in zip(values, errors, strict=True))])
    for published, marker in zip(paper.THROUGHPUT.get(workload, ()) if run.of_paper else (), PAPER_MARKERS, strict=False):
        at = [n for n, _ in published.points]
        values = [v / n if per_core else v for n, v in published.points]
        handles[published.label] = ax.plot(at, values, color=style.color("muted"), linestyle=":", marker=marker, markeredgewidth=2,
                                           markersize=8, linewidth=1.2)[0]
        top = max(top, *values)
        counts |= set(at)
    name = next(iter(mine.values()))[0].operations
    ax.set_title((f"{workload}: " if several else "") + ("per core" if per_core else "in total"))
    ax.set(xlabel="cores in use", ylabel=f"{name} per second" + (" and core" if per_core else ""), ylim=(0, top * 1.06 or 1))
    ax.set_xlim(0, max([*counts, 4]) * 1.05)
    ax.set_xticks(style.apart(sorted(counts), max(counts) / 14))


def caption(run: Run) -> str:
    text = "Error bars are the standard error over repeated windows. A flat curve of throughput per core is perfect scaling."
    if run.of_paper and any(p.workload in paper.THROUGHPUT for p in run.points):
        text += (" The paper's values were measured on the real machine with Linux 2.6.35 and the real application. moscope's values are "
                 "predictions for another kernel and a program that imitates the application. Compare the shapes of the curves first, then "
                 "the values.")
    return text


FIGURE = Spec("throughput", "run", 20, "Throughput against core count", caption, draw)
