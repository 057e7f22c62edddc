# SPDX-License-Identifier: BSD-3-Clause
"""card.parquet: counts of each interval, depths at its end, only windows that count, and a guest that stops early."""

from pathlib import Path
from typing import Any

from pyarrow import parquet

from moscope.runs import card_load, over_time
from moscope.runs.card_load import CardLoad
from moscope.runs.over_time import OverTime


class Machine:
    """A card with two queues: queue n receives n + 1 packets in each step. `ends`: the time at which the guest stops."""

    def __init__(self, ends: int) -> None:
        self.now, self.steps, self.ends = 0, 3, ends
        self.system: Any = self

    def until_time(self, tick: int, part: Any) -> bool:
        self.now, self.steps = min(tick, self.ends), self.steps + 1
        return tick < self.ends

    def counts(self) -> dict[str, int]:
        return {"ticks": self.now}

    def network(self) -> dict[str, Any]:
        of_queues = {f"queue{n}_{name}": self.steps * (n + 1) * (name == "in_packets") for n in range(2) for name in card_load.COUNTS}
        return {"counts": {**dict.fromkeys(card_load.DROPS, 0), "dropped_fifo_full": 7 * self.steps, **of_queues},
                "depths": {"fifo_frames": self.steps, "fifo_bytes": 60, "out_fifo_frames": 9, "queues": [(0, 250, 1), (2, 240, 3)]}}


def test_rows_have_the_counts_of_their_interval_and_windows_that_do_not_count_have_none(tmp_path: Path) -> None:
    guest: Any = Machine(ends=1500)
    load = OverTime(guest, 0, [CardLoad(guest)])
    assert load.until_time(1000, lambda tick: 0.0)
    load.keep()
    assert not load.until_time(2000, lambda tick: 0.0)
    load.write(tmp_path)
    table = parquet.read_table(tmp_path / card_load.NAME)
    assert table.schema.metadata[b"schema"] == card_load.SCHEMA.encode()
    rows = table.to_pylist()
    assert len(rows) == 2 * over_time.PARTS
    assert [(row["begin"], row["length"]) for row in rows[::2]] == [(40 * n, 40) for n in range(over_time.PARTS)]
    assert {(row["queue"], row["in_packets"], row["in_buffers"], row["out_waiting"], row["dropped_fifo_full"]) for row in rows} == {
        (0, 1, 250, 1, 7), (1, 2, 240, 3, 7)}
    assert [row["fifo_frames"] for row in rows[::2]] == list(range(4, 4 + over_time.PARTS))


def test_without_anything_to_watch_the_machine_runs_in_one_step() -> None:
    guest: Any = Machine(ends=1500)
    assert OverTime(guest, 0, []).until_time(1000, lambda tick: 0.0) and guest.steps == 4
