# SPDX-License-Identifier: BSD-3-Clause
"""What the network card moved, held and dropped over time."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import style
from analysis.figures import Spec
from analysis.run_directory import Point
from analysis.tables.base import Row
from analysis.tables.card import DROPS, moments

IN, OUT, OUT_FIFO = "series1", "series2", "series3"


def draw(point: Point, wide: bool) -> Figure | None:
    rows = moments(point)
    if not rows:
        return None
    dropped = [name for name in DROPS if any(row[name] for row in rows)]
    panels = 3 + bool(dropped)
    fig = style.figure(wide, 2.1 * panels)
    axes = fig.subplots(panels, 1, sharex=True)
    at = [0.0, *(row["at_us"] / 1000 for row in rows)]

    def line(ax: Axes, values: list[float], role: str, label: str) -> None:
        ax.plot(at, [values[0], *values], color=style.color(role), label=label, drawstyle="steps-pre", linewidth=1.4)

    for name, role, label in (("in_packets", IN, "received"), ("out_packets", OUT, "sent")):
        line(axes[0], [row[name] / row["length_us"] for row in rows], role, label)
    axes[0].set(title="Packets", ylabel="millions per second")
    line(axes[1], [row["fifo_frames"] for row in rows], IN, "in the receive FIFO")
    line(axes[1], [row["out_waiting"] for row in rows], OUT, "in all transmit queues")
    line(axes[1], [row["out_fifo_frames"] for row in rows], OUT_FIFO, "in the transmit FIFO")
    axes[1].set(title="Waiting frames", ylabel="frames")
    line(axes[2], [row["in_buffers_least"] for row in rows], IN, "in the queue with the fewest")
    axes[2].set(title="Free receive buffers", ylabel="buffers")
    if dropped:
        for name, (role, _) in zip(dropped, style.SERIES, strict=False):
            line(axes[3], [row[name] for row in rows], role, DROPS[name])
        axes[3].set(title="Packets dropped", ylabel="packets")
    for ax in axes:
        style.horizontal_grid(ax)
        _, most = ax.get_ylim()
        ax.set_ylim(0, max(most, 1.0 if ax is axes[0] else 4.0) * (1.25 if wide else 1.45))  # room for the legend
        ax.legend(loc="upper left", ncols=4 if wide else 1, borderaxespad=0.1)
    axes[-1].set_xlabel("time in the windows (ms)")
    return fig


def total(rows: list[Row], name: str) -> int:
    return sum(int(row[name]) for row in rows)


def caption(point: Point) -> str:
    rows = moments(point)
    received, sent = total(rows, "in_packets"), total(rows, "out_packets")
    lost = [f"{total(rows, name):,} ({reason})" for name, reason in DROPS.items() if total(rows, name)]
    return (f"{received:,} packets received, {sent:,} sent; dropped: {' and '.join(lost) if lost else 'none'}. Each window is "
            "divided into 25 intervals. Packets are counted over an interval; frames and buffers are those at its end. The table "
            "card_queues has each queue.")


FIGURE = Spec("card", "point", 80, "Packets and queues of the network card", caption, draw)
