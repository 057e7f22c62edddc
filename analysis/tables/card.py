# SPDX-License-Identifier: BSD-3-Clause
"""The network card: its queues, and over time what it moved, held and dropped (card.parquet)."""

from collections.abc import Callable

from analysis.described import FS_PER_US
from analysis.run_directory import Point, Run
from analysis.tables.base import Row, Table, key, once, table
from moscope.schema.card import DROP
from moscope.schema.card import DROPS as DROPPED

QUEUE = ("queue", "in_packets", "out_packets", "dropped_no_buffer", "in_waiting_mean", "in_waiting_most", "in_buffers_least",
         "out_waiting_mean", "out_waiting_most")
MOMENT = ("at_us", "length_us", "in_packets", "out_packets", "fifo_frames", "fifo_bytes", "out_fifo_frames", "in_waiting_most",
          "in_buffers_least", "out_waiting", "out_waiting_most", *DROPPED)
DROPS = {name: DROP.label(reason) for name, reason in zip(DROPPED, DROP.names, strict=True)}


@once
def queues(p: Point) -> list[Row]:
    """By queue pair; depths are those at the ends of the intervals."""
    return p.database.rows("""
        SELECT queue, sum(in_packets)::BIGINT AS in_packets, sum(out_packets)::BIGINT AS out_packets,
               sum(dropped)::BIGINT AS dropped_no_buffer, avg(in_waiting) AS in_waiting_mean, max(in_waiting) AS in_waiting_most,
               min(in_buffers) AS in_buffers_least, avg(out_waiting) AS out_waiting_mean, max(out_waiting) AS out_waiting_most
        FROM card WHERE point = ? GROUP BY queue ORDER BY queue""", p.name)


@once
def moments(p: Point) -> list[Row]:
    """By interval, of the card as a whole; `most` and `least` are of its queues. `at_us`: the interval's end, from the begin of the
    first one."""
    return p.database.rows(f"""
        SELECT (begin + any_value(length) - (SELECT min(begin) FROM card WHERE point = $1)) / {FS_PER_US}.0 AS at_us,
               any_value(length) / {FS_PER_US}.0 AS length_us,
               sum(in_packets)::BIGINT AS in_packets, sum(out_packets)::BIGINT AS out_packets,
               any_value(fifo_frames) AS fifo_frames, any_value(fifo_bytes) AS fifo_bytes,
               any_value(out_fifo_frames) AS out_fifo_frames, max(in_waiting) AS in_waiting_most,
               min(in_buffers) AS in_buffers_least, sum(out_waiting)::BIGINT AS out_waiting, max(out_waiting) AS out_waiting_most,
               any_value(dropped_fifo_full) AS dropped_fifo_full, sum(dropped)::BIGINT AS dropped_no_buffer,
               any_value(dropped_not_ready) AS dropped_not_ready, any_value(dropped_bad_request) AS dropped_bad_request
        FROM card WHERE point = $1 GROUP BY begin ORDER BY begin""", p.name)


def made(run: Run, columns: tuple[str, ...], of: Callable[[Point], list[Row]]) -> Table:
    return table(columns, ((*key(p), *(row[c] for c in columns)) for p in run.points for row in of(p)))


TABLES = {"card_queues": lambda run: made(run, QUEUE, queues), "card": lambda run: made(run, MOMENT, moments)}
