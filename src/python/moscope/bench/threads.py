# SPDX-License-Identifier: BSD-3-Clause
"""Estimates the speed of a detailed window with several host processors, from the processor time of each chip in each epoch.

The window runs twice: as one logical process, and with each chip as a logical process on one host thread, which records the
processor time of every part of every epoch (sim/parallel/epoch_record.hh). Two models then place the recorded work on P processors:

- `as_built`: the scheduler of sim/parallel/parallel_scheduler.cc. Each thread runs its own chips and then those that no thread
  has begun; a barrier ends each epoch.
- `by_pairs`: no barrier. A chip begins an epoch when each chip at a distance of h links has ended the epoch h earlier, as a message
  needs at least one lookahead per link. Threads run only their own chips. Serial phases still stop all chips.

Both are relative to one thread that runs all chips. `division` is the cost of the division into chips: the work of all chips
divided by the work of the single logical process. It compares two processes and so depends on the host's load. The models leave out
contention for the host's caches and memory, and for processors that share a physical core.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moscope.bench.point import measured, planned
from moscope.cli import Shared
from moscope.errors import SimulatorBug
from moscope.runs import job, options
from moscope.runs.point import EPOCHS

SCHEMA = "moscope.bench.threads/1"
WARMUP, WINDOW = "1ms", "1ms"
PROCESSORS = (2, 4, 8, 16)
# The cost of a barrier: the threads change one cache line of the host in turn, then all read the line that releases them.
BARRIER_NS, BARRIER_NS_PER_THREAD = 100, 50
OF_THE_RECORD = 0.001  # the quantile of the chips' times that is taken for the cost of recording
OTHERS = 3  # columns after the chips: serial phase, shared work, longest part of the shared work

Times = NDArray[np.float64]


@dataclass(frozen=True)
class Epochs:
    """Processor time in nanoseconds, by epoch."""

    chips: Times  # [epoch, chip]
    serial: Times  # work of one thread while all chips are at rest
    shared: Times  # work of all threads while all chips are at rest
    shared_part: Times  # its longest part

    @staticmethod
    def of(record: bytes, chips: int) -> "Epochs":
        columns = chips + OTHERS
        numbers = np.frombuffer(record, np.uint32)
        if not numbers.size or numbers.size % columns:
            raise SimulatorBug(f"bench threads: {numbers.size} numbers recorded: expected a multiple of {columns}")
        rows = numbers.reshape(-1, columns).astype(np.float64)
        # An epoch without events still takes the time of the record itself: two readings of the host's clock.
        rows = np.maximum(rows - np.quantile(rows[:, :chips], OF_THE_RECORD), 0.0)
        return Epochs(rows[:, :chips], rows[:, chips], rows[:, chips + 1], rows[:, chips + 2])

    @property
    def count(self) -> int:
        return len(self.chips)

    @property
    def total(self) -> float:
        return float(self.chips.sum() + self.serial.sum() + self.shared.sum())

    def at_rest(self, threads: int) -> Times:
        """Time in which no chip runs: the serial phase, and the shared work divided among this many threads."""
        return self.serial + np.maximum(self.shared_part, self.shared / threads)


def barrier_ns(threads: int) -> float:
    return BARRIER_NS + BARRIER_NS_PER_THREAD * threads if threads > 1 else 0.0


def barriers(epochs: Epochs, threads: int) -> float:
    """Time of all barriers: one per epoch, two more around a serial phase, one more after shared work."""
    return barrier_ns(threads) * (epochs.count + 2 * np.count_nonzero(epochs.serial) + np.count_nonzero(epochs.shared))


def longest(work: Times, threads: int) -> Times:
    """By epoch, the time of the thread that ends last. A thread takes its own chips in ascending order, then the others in descending
    order (ParallelScheduler::run_epoch)."""
    epochs, chips = work.shape
    order = np.array([[c for c in range(chips) if c % threads == t] + [c for c in reversed(range(chips)) if c % threads != t]
                      for t in range(threads)])
    busy, taken, every = np.zeros((epochs, threads)), np.zeros((epochs, chips), bool), np.arange(epochs)
    for _ in range(chips):
        thread = busy.argmin(axis=1)
        wanted = order[thread]
        chip = wanted[every, np.take_along_axis(taken, wanted, axis=1).argmin(axis=1)]
        taken[every, chip] = True
        busy[every, thread] += work[every, chip]
    return np.asarray(busy.max(axis=1))


def as_built(epochs: Epochs, threads: int) -> dict[str, float]:
    """Nanoseconds: the total, and its parts in which a thread waits."""
    chips = float(longest(epochs.chips, threads).sum())
    at_rest, waits = float(epochs.at_rest(threads).sum()), barriers(epochs, threads)
    return {"whole": chips + at_rest + waits, "imbalance": chips - float(epochs.chips.sum()) / threads, "at_rest": at_rest,
            "barriers": waits}


def by_pairs(epochs: Epochs, hops: list[list[int]], threads: int) -> float:
    """Nanoseconds in total. Waiting for a neighbour costs as much as a barrier of two threads."""
    chips = epochs.chips.shape[1]
    distance = np.maximum(np.array(hops), 1)
    farthest, columns = int(distance.max()), np.arange(chips)
    ends = np.zeros((farthest + 1, chips))  # when each chip ended its last epochs, by epoch modulo farthest + 1
    owner = [[c for c in range(chips) if c % threads == t] for t in range(threads)]
    rest, stops = epochs.at_rest(threads), epochs.serial + epochs.shared > 0
    work = epochs.chips + barrier_ns(2)
    for number in range(epochs.count):
        ready = ends[(number - distance) % (farthest + 1), columns].max(axis=1)
        now = ends[number % (farthest + 1)]
        last = ends[(number - 1) % (farthest + 1)]
        for own in owner:
            free = max((last[c] for c in own), default=0.0)
            for c in own:
                free = now[c] = max(free, ready[c]) + work[number, c]
        if stops[number]:
            ends[:] = now.max() + rest[number] + barrier_ns(threads)
    return float(ends.max())


def model(epochs: Epochs, hops: list[list[int]]) -> list[dict[str, Any]]:
    """A row for each number of processors. More threads than chips are of no use."""
    rows = []
    for processors in PROCESSORS:
        threads = min(processors, epochs.chips.shape[1])
        built, pairs = as_built(epochs, threads), by_pairs(epochs, hops, threads)
        whole = built["whole"]
        rows.append({"processors": processors, "threads": threads, "as_built_s": whole / 1e9, "as_built": whole / epochs.total,
                     "by_pairs_s": pairs / 1e9, "by_pairs": pairs / epochs.total,
                     "waits": {part: built[part] / whole for part in ("imbalance", "at_rest", "barriers")}})
    return rows


def run(shared: Shared, given: options.Options) -> dict[str, Any]:
    """moscope.bench.threads/1."""
    plan = planned(shared, "bench threads", given, WARMUP, WINDOW)
    with tempfile.TemporaryDirectory(prefix="moscope-") as place:
        one = measured(shared, job.job(plan, plan.points[0], Path(place) / "one"), "one logical process")
        apart = replace(job.job(plan, plan.points[0], Path(place) / "apart"), record_epochs=True)
        chips = measured(shared, apart, "a logical process for each chip")
        record = (Path(apart.folder) / EPOCHS).read_bytes()
    hops = plan.machine.hops()
    return document(plan.machine.name, one, chips, Epochs.of(record, len(hops)), hops)


def document(machine: str, one: dict[str, Any], chips: dict[str, Any], epochs: Epochs, hops: list[list[int]]) -> dict[str, Any]:
    """The results from the two points (one logical process; each chip a logical process) and the second point's record."""
    one_process_s = float(one["windows"][0]["host_cpu_s"])
    return {"schema": SCHEMA, "estimate": True, "machine": machine, "workload": one["workload"], "cores": one["cores"],
            "window_ms": one["window_ms"], "chips": len(hops), "epochs": epochs.count, "one_process_s": one_process_s,
            "chips_s": float(chips["windows"][0]["host_cpu_s"]), "recorded_s": epochs.total / 1e9,
            "us_per_epoch": epochs.total / epochs.count / 1e3, "idle_chips": float((epochs.chips < 0.1 * epochs.chips.mean()).mean()),
            "division": epochs.total / 1e9 / one_process_s, "rows": model(epochs, hops)}
