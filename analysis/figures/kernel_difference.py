# SPDX-License-Identifier: BSD-3-Clause
"""The difference between two kernels: stall and spinning per operation by line and by waiting function, on the most cores."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import style
from analysis.comparison.pairs import difference, figure
from analysis.comparison.words import change
from analysis.figures import Spec
from analysis.run_directory import Run
from analysis.tables.differences import kernel_pairs, wait_per_operation
from moscope.wording import significant

MOST = 8


def draw(run: Run, wide: bool) -> Figure | None:
    found = [pair for pair in kernel_pairs(run) if wait_per_operation(*pair)]
    if not found:
        return None
    rows = [(first, second, kind) for first, second in found for kind in ("line", "function")]
    kernels = list(dict.fromkeys(p.kernel for pair in found for p in pair))
    roles = _roles(run, kernels)
    fig = style.figure(wide, 0.6 + sum(0.9 + 0.36 * MOST for _ in rows))
    axes = fig.subplots(len(rows), 1, squeeze=False).reshape(-1)
    for ax, (first, second, kind) in zip(axes, rows, strict=True):
        most = [row for row in wait_per_operation(first, second) if row[0] == kind][:MOST]
        _bars(ax, most, [roles[p.kernel] for p in (first, second)], wide)
        point = f"{first.workload} on {first.cores} core{'s' if first.cores != 1 else ''}:"
        ax.set_title(point + (" " if wide else "\n") + ("by line" if kind == "line" else "by waiting function"))
        ax.set_xlabel(f"{'core time ' if wide else ''}waited per {first.operations.removesuffix('s')} (µs)")
    style.legend_above(fig, [Patch(color=style.color(roles[kernel])) for kernel in kernels], kernels, 4 if wide else 2)
    return fig


def _roles(run: Run, kernels: list[str]) -> dict[str, str]:
    """The colours that the kernels have in the figure of throughput, or where two of them are one, colours by their order."""
    roles = {one: style.series(run.kernels.index(one))[0] for one in kernels}
    distinct = len(set(roles.values())) == len(roles)
    return roles if distinct else {one: style.series(number)[0] for number, one in enumerate(kernels)}


def _bars(ax: Axes, rows: list[tuple[str, str, float, float]], roles: list[str], wide: bool) -> None:
    for y, (_, _, *values) in enumerate(rows):
        for n, (value, role) in enumerate(zip(values, roles, strict=True)):
            ax.barh(y + 0.38 * (n - 0.5), value, 0.36, color=style.color(role), edgecolor=style.color("page"), linewidth=0.4)
            ax.annotate(significant(value, 2), (value, y + 0.38 * (n - 0.5)), xytext=(4, 0),
                        textcoords="offset points", va="center", fontsize=8)
    ax.set_yticks(range(len(rows)), [style.wrapped(name, 48 if wide else 20, 3) for _, name, *_ in rows], linespacing=1.1,
                  fontsize=9.5 if wide else 8.5)
    ax.invert_yaxis()
    ax.margins(x=0.12 if wide else 0.2)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


TEXT = ("Memory stall and spinning of all cores in use, divided by the operations finished: the lines and the waiting functions with "
        "the largest difference between two kernels, on the most cores on which both were measured. Lines of one name are added "
        "up.")


def caption(run: Run) -> str:
    text = TEXT
    for first, second in kernel_pairs(run):
        found = difference(figure(first, "throughput_per_s"), figure(second, "throughput_per_s"))
        if found is not None:
            within = ", which is within the error of the windows" if found["within_error"] else ""
            text += f" {first.workload} on {first.cores} cores: {second.kernel} against {first.kernel}, {change(found)} throughput{within}."
    return text


FIGURE = Spec("kernel-difference", "run", 32, "What accounts for the difference between the kernels", caption, draw)
