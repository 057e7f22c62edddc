# SPDX-License-Identifier: BSD-3-Clause
"""The links of each variant of the machine, side by side."""

import math
from itertools import combinations
from typing import Any

from matplotlib.figure import Figure

from analysis import style
from analysis.sweep.table import Sweep, shown

SHAPE = ("machine", "topology", "chips")  # parameters that decide the links
MOST = 12
AROUND = 0.5  # of a picture, in the units of the arrangements
Spots = list[tuple[float, float]]
Edges = list[tuple[int, int]]


def variants(sweep: Sweep) -> dict[str, Edges]:
    """Each distinct set of links, by the parameters that decide it."""
    found: dict[tuple[tuple[int, int], ...], list[str]] = {}
    for row in sweep.rows:
        edges = sweep.edges.get(row["point"])
        if edges:
            name = ", ".join(shown(row[n]) for n in SHAPE if n in row) or "the machine"
            names = found.setdefault(tuple(sorted(edges)), [])
            if name not in names:
                names.append(name)
    return {"\n".join(names[:3]): list(edges) for edges, names in found.items()}


def ladder(count: int) -> Spots:
    return [(node // 2 * 1.2, -(node % 2) * 1.2) for node in range(count)]


def circle(count: int) -> Spots:
    radius = 1.3
    angles = [2 * math.pi * n / max(count, 1) for n in range(count)]
    return [(radius * math.sin(a), radius * math.cos(a)) for a in angles]


def best(count: int, edges: Edges) -> Spots:
    """The arrangement in which fewer links cross or pass over a chip."""
    return min((ladder(count), circle(count)), key=lambda spots: clashes(spots, edges))


def clashes(spots: Spots, edges: Edges) -> int:
    crossing = sum(_cross(spots[a], spots[b], spots[c], spots[d]) for (a, b), (c, d) in combinations(edges, 2) if not {a, b} & {c, d})
    over = sum(_near(spots[n], spots[a], spots[b]) for a, b in edges for n in range(len(spots)) if n not in (a, b))
    return crossing + 5 * over


def _side(a: Any, b: Any, c: Any) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _cross(a: Any, b: Any, c: Any, d: Any) -> bool:
    return _side(a, b, c) * _side(a, b, d) < -1e-9 and _side(c, d, a) * _side(c, d, b) < -1e-9


def _near(p: Any, a: Any, b: Any) -> bool:
    length = math.dist(a, b)
    along = ((p[0] - a[0]) * (b[0] - a[0]) + (p[1] - a[1]) * (b[1] - a[1])) / length**2
    return 0 < along < 1 and abs(_side(a, b, p)) / length < 0.2


def _around(values: list[float], width: float) -> tuple[float, float]:
    """The limits of an axis of this width with the values in the middle."""
    middle = (min(values) + max(values)) / 2
    return middle - width / 2, middle + width / 2


def draw(sweep: Sweep, wide: bool) -> Figure | None:
    shapes = dict(list(variants(sweep).items())[:MOST])
    if not shapes:
        return None
    columns = min(len(shapes), 4 if wide else 2)
    lines = -(-len(shapes) // columns)
    with style.house():
        fig = style.figure(wide, lines * (2.6 if wide else 2.4))
        axes = fig.subplots(lines, columns, squeeze=False).reshape(-1)
        for ax in axes:
            ax.set_axis_off()
            ax.set_aspect("equal")
        arranged = [best(1 + max(max(e) for e in edges), edges) for edges in shapes.values()]
        # All pictures have one size, so that their titles have one height.
        sizes = [tuple(max(s[i] for s in spots) - min(s[i] for s in spots) + 2 * AROUND for i in (0, 1)) for spots in arranged]
        width, height = (max(size[i] for size in sizes) for i in (0, 1))
        for ax, (name, edges), spots in zip(axes, shapes.items(), arranged, strict=False):
            ax.set(xlim=_around([x for x, _ in spots], width), ylim=_around([y for _, y in spots], height))
            for a, b in edges:
                ax.plot(*zip(spots[a], spots[b], strict=True), color=style.color("muted"), linewidth=1.6, zorder=1)
            for n, (x, y) in enumerate(spots):
                ax.scatter([x], [y], s=300, color=style.color("page"), edgecolors=style.color("ink"), linewidths=1.2, zorder=2,
                           clip_on=False)
                ax.text(x, y, str(n), ha="center", va="center_baseline", fontsize=9, zorder=3)
            ax.set_title(f"{name}\n{len(edges)} links", fontsize=9, weight="normal")
    return fig
