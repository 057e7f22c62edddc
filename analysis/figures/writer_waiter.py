# SPDX-License-Identifier: BSD-3-Clause
"""Matrix of functions: whose writes make whom wait."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis import style, tables
from analysis.figures import Spec
from analysis.run_directory import Point


def _largest(fights: dict[tuple[str, str], int], side: int, most: int) -> list[str]:
    sums: dict[str, int] = {}
    for pair, stall in fights.items():
        if pair[side] != tables.NO_WRITER:
            sums[pair[side]] = sums.get(pair[side], 0) + stall
    return sorted((s for s in sums if sums[s]), key=lambda name: (-sums[name], name))[:most]


def draw(point: Point, wide: bool) -> Figure | None:
    fights = {pair: stall for pair, stall in tables.fights(point).items() if pair[0] != tables.NO_WRITER}
    writers, waiters = _largest(fights, 0, 12 if wide else 6), _largest(fights, 1, 12 if wide else 10)
    if not writers or not waiters:
        return None
    whole = point.waiting_fs or sum(fights.values())
    most = max(fights.get((a, b), 0) for a in writers for b in waiters) or 1
    fig = style.figure(wide, 2.6 + 0.36 * len(waiters))
    ax = fig.subplots()
    for y, waiter in enumerate(waiters):
        for x, writer in enumerate(writers):
            stall = fights.get((writer, waiter), 0)
            share = stall / most
            ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=(style.color("heat"), style.heat_alpha(share) if stall else 0.0),
                                   edgecolor=style.color("grid"), linewidth=0.8))
            if stall >= whole * 0.0005:
                ax.text(x, y, f"{100 * stall / whole:.1f}", ha="center", va="center", fontsize=8.5, color=style.text_on_heat(share))
    ax.set(xlim=(-0.5, len(writers) - 0.5), ylim=(len(waiters) - 0.5, -0.5))
    ax.set_xticks(range(len(writers)), [style.shortened(w, 34 if wide else 18) for w in writers], rotation=40 if wide else 60, ha="left", rotation_mode="anchor")
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_yticks(range(len(waiters)), [style.shortened(w, 40 if wide else 20) for w in waiters])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("last wrote the line")
    ax.set_ylabel("waits for it")
    style.heat_scale(fig, ax, 100 * most / whole, "share of all waiting (%)", wide)
    return fig


FIGURE = Spec("writer-waiter", "point", 60, "Who writes, who waits",
              "Stall and spinning of the function in the row for lines that the function in the column wrote last on another core; in per cent "
              "of all waiting, over all lines, of each name the twenty largest pairs. Waits that no other core's write caused are left out.", draw)
