# SPDX-License-Identifier: BSD-3-Clause
"""The network card's activity over time, queue by queue: card.parquet, for points with a card (docs/run-directory.md). Counts are
those of an interval, depths those at its end."""

from pathlib import Path
from typing import Any

from moscope.runs import engine
from moscope.runs.over_time import Rows
from moscope.schema.card import DROPS as DROPPED

NAME, SCHEMA = "card.parquet", "moscope.card/1"
DROPS = tuple(name for name in DROPPED if name != "dropped_no_buffer")  # each queue has its own count of the latter
COUNTS = ("in_packets", "out_packets", "dropped")  # of a queue
COLUMNS = ("begin", "length", "queue", *COUNTS, "in_waiting", "in_buffers", "out_waiting", "fifo_frames", "fifo_bytes",
           "out_fifo_frames", *DROPS)


class CardLoad:
    """Records the card's counts; it begins with their present values. The columns from `fifo_frames` on are for the card as a
    whole, and equal for all queues."""

    def __init__(self, system: engine.System) -> None:
        self._system = system
        self._before: dict[str, int] = system.network()["counts"]
        self._rows = Rows(NAME, SCHEMA, COLUMNS)

    def read(self, begin: int, length: int) -> None:
        now: dict[str, Any] = self._system.network()
        counts, depths = now["counts"], now["depths"]
        more = {name: n - self._before[name] for name, n in counts.items()}
        self._before = counts
        card = depths["fifo_frames"], depths["fifo_bytes"], depths["out_fifo_frames"], *(more[name] for name in DROPS)
        for queue, (in_waiting, in_buffers, out_waiting) in enumerate(depths["queues"]):
            of_queue = (more[f"queue{queue}_{name}"] for name in COUNTS)
            self._rows.add(begin, length, queue, *of_queue, in_waiting, in_buffers, out_waiting, *card)

    def keep(self) -> None:
        self._rows.keep()

    def write(self, folder: Path) -> None:
        self._rows.write(folder)
