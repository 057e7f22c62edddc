# SPDX-License-Identifier: BSD-3-Clause
"""A figure of a sweep over one axis: curves for the values of a second one, panels for those of others, with standard errors."""

import math
from itertools import product
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from analysis import style
from analysis.run_directory import RunDirectoryError
from analysis.sweep.expression import Expression
from analysis.sweep.table import ERRORS, Sweep, quantities, shown

MOST_PANELS, MOST_SERIES = 24, 4
TITLE_COLUMNS = 34
LEGEND_COLUMNS = {True: 27, False: 22}  # of a label, on a wide page and on a telephone
SAME = 0.01  # of the largest value: curves closer together are drawn so that both are seen
MARKER = 6.5  # points
PLAIN = 1e5  # values below are written without a prefix such as k or M


def mean_and_error(rows: list[dict[str, Any]], figure: str, of: int = 1) -> tuple[float, float | None]:
    """The mean, and its standard error: from the spread of several points, but at least what follows from their own errors, since few
    points may agree by chance; of a single one its own. `of`: the number of points if none had failed; if only one of several is left,
    there is no error, because its own does not say how they differ."""
    values = [float(r[figure]) for r in rows]
    mean = sum(values) / len(values)
    if len(values) > 1:
        own = [float(r.get(ERRORS.get(figure, "")) or 0.0) for r in rows]
        spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))
        return mean, max(spread, math.hypot(*own) / len(values))
    error = rows[0].get(ERRORS.get(figure, "")) if of == 1 else None
    return mean, None if error is None else float(error)


def default_expressions(sweep: Sweep, figure: str) -> list[Expression]:
    """One for each axis: curves for the largest other axis that has colours for all its values, panels for as many of the rest as fit.
    Points that differ only in axes without a place, or in their seeds, are averaged."""
    found = []
    for x in sweep.varied:
        if x == "seed" and len(sweep.varied) > 1:
            continue
        rest = {name: len(values) for name, values in sweep.varied.items() if name not in (x, "seed")}
        colours = [n for n in sorted(rest, key=lambda n: -rest[n]) if rest[n] <= MOST_SERIES] or list(rest)
        by, panels = colours[:1], 1
        for name in sorted(rest, key=lambda n: -rest[n]):
            if name not in by and panels * rest[name] <= MOST_PANELS:
                by.append(name)
                panels *= rest[name]
        found.append(Expression(figure, x, tuple(by)))
    return found


def lacking(sweep: Sweep, wanted: Expression) -> int:
    """Points that have failed, which means leave out; 0 if the figure has no means."""
    return len(sweep.rows) - len(sweep.done) if averaged(sweep, wanted) else 0


def averaged(sweep: Sweep, wanted: Expression) -> list[str]:
    """Axes that a figure has no place for."""
    return [name for name in sweep.varied if name not in (wanted.x, *wanted.by)]


def has_errors(sweep: Sweep, wanted: Expression) -> bool:
    """Whether a point of the figure has an error bar."""
    places: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in sweep.rows:
        places.setdefault(tuple(shown(row[name]) for name in (wanted.x, *wanted.by)), []).append(row)
    found = ((len(rows), [r for r in rows if r["status"] == "done" and r.get(wanted.figure) is not None]) for rows in places.values())
    return any((mean_and_error(rows, wanted.figure, of)[1] or 0.0) > 0 for of, rows in found if rows)


def draw(sweep: Sweep, wanted: Expression, wide: bool) -> Figure | None:
    rows = [r for r in sweep.done if r.get(wanted.figure) is not None]
    if not rows:
        return None
    values = {name: _values(sweep, rows, name) for name in (wanted.x, *wanted.by)}
    panels = [dict(zip(wanted.by[1:], combination, strict=True)) for combination in product(*(values[n] for n in wanted.by[1:]))]
    panels = [p for p in panels if _select(rows, p)]
    if len(panels) > MOST_PANELS:
        raise RunDirectoryError(f"--plot: {wanted}: has {len(panels)} panels: expected at most {MOST_PANELS}; name fewer "
                                "axes after |")
    columns = min(len(panels), 3 if wide else 1)
    lines = -(-len(panels) // columns)
    with style.house():
        fig = style.figure(wide, 0.8 + lines * (3.6 if len(panels) == 1 else 2.7))
        axes = fig.subplots(lines, columns, squeeze=False).reshape(-1)
        handles: dict[str, Any] = {}
        for ax, panel in zip(axes, panels, strict=False):
            _panel(ax, _select(rows, panel), _select(sweep.rows, panel), wanted, values, handles)
            ax.set_title(_title(panel), fontsize=9)
        for ax in axes[len(panels):]:
            ax.set_axis_off()
        labels = [style.wrapped(label, LEGEND_COLUMNS[wide]) for label in handles]
        style.legend_above(fig, list(handles.values()), labels, 4 if wide else 2)
    return fig


def _title(panel: dict[str, Any]) -> str:
    """Parameters of a panel, on as many lines as they need."""
    lines = [""]
    for item in (f"{name} {shown(value)}" for name, value in panel.items()):
        if lines[-1] and len(lines[-1]) + len(item) > TITLE_COLUMNS:
            lines.append("")
        lines[-1] += (", " if lines[-1] else "") + item
    return ",\n".join(style.wrapped(line, TITLE_COLUMNS) for line in lines)


def _values(sweep: Sweep, rows: list[dict[str, Any]], name: str) -> list[Any]:
    """In the order of the sweep file; of quantities, by size."""
    there = {shown(r[name]) for r in rows}
    listed = [v for v in sweep.axes.get(name, [r[name] for r in rows]) if shown(v) in there]
    distinct = list({shown(v): v for v in listed}.values())
    numbers = quantities(distinct)
    return [v for _, v in sorted(zip(numbers[0], distinct, strict=True), key=lambda p: p[0])] if numbers else distinct


def _select(rows: list[dict[str, Any]], panel: dict[str, Any]) -> list[dict[str, Any]]:
    return [r for r in rows if all(shown(r[n]) == shown(v) for n, v in panel.items())]


def _panel(ax: Axes, rows: list[dict[str, Any]], every: list[dict[str, Any]], wanted: Expression, values: dict[str, list[Any]],
           handles: dict[str, Any]) -> None:
    xs = values[wanted.x]
    numbers = quantities(xs)
    series = values[wanted.by[0]] if wanted.by else [None]
    style.horizontal_grid(ax)
    top = 0.0
    drawn: list[tuple[list[Any], list[float]]] = []
    for i, one in enumerate(series):
        mine = _select(rows, {wanted.by[0]: one}) if wanted.by else rows
        there = [(j, x) for j, x in enumerate(xs) if _select(mine, {wanted.x: x})]
        if not there:
            continue
        all_mine = _select(every, {wanted.by[0]: one}) if wanted.by else every
        found = [mean_and_error(_select(mine, {wanted.x: x}), wanted.figure, len(_select(all_mine, {wanted.x: x}))) for _, x in there]
        role, marker = style.SERIES[i % len(style.SERIES)]
        apart = 0.0 if numbers else (i - (len(series) - 1) / 2) * 0.12
        at = [numbers[0][j] if numbers else j + apart for j, _ in there]
        errors = [math.nan if e is None else e for _, e in found]
        means = [m for m, _ in found]
        covered = sum(_coincide(there, means, *other) for other in drawn) if numbers else 0
        drawn.append((there, means))
        label = f"{wanted.by[0]} {shown(one)}" if wanted.by else wanted.figure
        line: Any = (0, (3, 3 * covered)) if covered else "-" if numbers else "none"
        handles[label] = ax.errorbar(at, means, yerr=errors if any(e > 0 for e in errors) else None,
                                     color=style.color(role), marker=marker, linestyle=line,
                                     markersize=max(2.0, MARKER - 2 * covered), capsize=4, elinewidth=1.4, zorder=2 + covered,
                                     fillstyle="full" if i < len(style.SERIES) else "none")
        top = max([top, *(m + (e or 0.0) for m, e in found)])
    ax.set_ylim(0, top * 1.08 or 1)
    _label(ax, wanted, xs, numbers, top)


def _coincide(xs: list[Any], ys: list[float], others: list[Any], other_ys: list[float]) -> bool:
    """Whether a curve would hide another one."""
    return xs == others and all(abs(a - b) <= SAME * max(map(abs, ys + other_ys)) for a, b in zip(ys, other_ys, strict=True))


def _label(ax: Axes, wanted: Expression, xs: list[Any], numbers: tuple[list[float], str] | None, top: float) -> None:
    ax.set_ylabel(style.wrapped(wanted.figure, 22), fontsize=9)
    if numbers:
        ax.set_xlabel(wanted.x + (f" ({numbers[1]})" if numbers[1] else ""), fontsize=9)
        ax.set_xlim(0, max(numbers[0]) * 1.06 or 1)
        if all(number.is_integer() for number in numbers[0]):
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        ax.set_xlabel(wanted.x, fontsize=9)
        ax.set_xlim(-0.5, len(xs) - 0.5)
        long = sum(len(shown(x)) for x in xs) > 24
        ax.set_xticks(range(len(xs)), [style.wrapped(shown(x), 14) for x in xs], rotation=20 if long else 0, fontsize=8.5)
    if top >= PLAIN:
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))
