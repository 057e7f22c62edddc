# SPDX-License-Identifier: BSD-3-Clause
"""Matrix of pairs (writer, waiter) of functions."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis import style
from analysis.figures import Spec
from analysis.run_directory import Point
from analysis.tables.base import NO_WRITER
from analysis.tables.pairs import point_pairs

WORTH_A_NUMBER = 0.0005  # of all waiting: 0.1 % when rounded


def _largest(pairs: dict[tuple[str, str], int], side: int, most: int) -> list[str]:
    sums: dict[str, int] = {}
    for pair, stall in pairs.items():
        if pair[side] != NO_WRITER:
            sums[pair[side]] = sums.get(pair[side], 0) + stall
    return sorted((s for s in sums if sums[s]), key=lambda name: (-sums[name], name))[:most]


def shown(pairs: dict[tuple[str, str], int], wide: bool, least: float) -> tuple[list[str], list[str]]:
    """The writers and the waiters of the matrix: the rows are the largest within the columns, of which a telephone has fewer, and each row
    and column has a value of at least `least`."""
    writers = _largest(pairs, 0, 12 if wide else 6)
    waiters = _largest({pair: waited for pair, waited in pairs.items() if pair[0] in writers}, 1, 12 if wide else 10)
    shown = {pair for pair, waited in pairs.items() if waited >= least and pair[0] in writers and pair[1] in waiters}
    return [w for w in writers if w in {a for a, _ in shown}], [w for w in waiters if w in {b for _, b in shown}]


def draw(point: Point, wide: bool) -> Figure | None:
    pairs = {(one["writer"], one["waiter"]): one["waiting"] for one in point_pairs(point) if one["writer"] != NO_WRITER}
    whole = point.waiting_fs or sum(pairs.values())
    least = max(1.0, whole * WORTH_A_NUMBER)
    writers, waiters = shown(pairs, wide, least)
    if not writers or not waiters:
        return None
    most = max(pairs.get((a, b), 0) for a in writers for b in waiters) or 1
    across, down = ([style.wrapped(name, most_characters) for name in names] for names, most_characters in
                    ((writers, 26 if wide else 20), (waiters, 34 if wide else 18)))
    line = 0.18  # height of a line of text in inches
    row = max(0.36, line * max(name.count("\n") + 1 for name in down) + 0.05)
    fig = style.figure(wide, 2.6 + row * len(waiters))
    ax = fig.subplots()
    for y, waiter in enumerate(waiters):
        for x, writer in enumerate(writers):
            stall = pairs.get((writer, waiter), 0)
            share = stall / most
            ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=(style.color("heat"), style.heat_alpha(share) if stall else 0.0),
                                   edgecolor=style.color("grid"), linewidth=0.8))
            if stall >= least:
                ax.text(x, y, f"{100 * stall / whole:.1f}", ha="center", va="center", fontsize=8.5, color=style.text_on_heat(share))
    ax.set(xlim=(-0.5, len(writers) - 0.5), ylim=(len(waiters) - 0.5, -0.5))
    # Upright where columns are narrow: there slanting names of several lines would run into each other.
    slant = {"rotation": 40, "ha": "left", "rotation_mode": "anchor"} if wide else {"rotation": 90, "fontsize": 9}
    ax.set_xticks(range(len(writers)), across, linespacing=1.1, **slant)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_yticks(range(len(waiters)), down, linespacing=1.1)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("last wrote the line", labelpad=8)
    ax.set_ylabel("waits for it")
    style.heat_scale(fig, ax, 100 * most / whole, "share of all waiting (%)", wide)
    return fig


FIGURE = Spec("writer-waiter", "point", 60, "Who writes, who waits",
              "Stall and spinning of the function in the row, for lines that the function in the column was the last to write, on another "
              "core. In per cent of all waiting, over all lines. Waits for lines whose last writer was not another core are left out.",
              draw)
