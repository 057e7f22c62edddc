# SPDX-License-Identifier: BSD-3-Clause
"""Progress of points that run in parallel. A terminal shows a table that is redrawn; other output gets a line at each phase,
and periodically within a long phase. The remaining time is shown once a point is in detailed mode, whose length is known.
"""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from moscope.runs.guest import Progress
from moscope.runs.job import Job

# Seconds between two lines of one phase where there is no terminal.
QUIET_S = 30.0


class Display(AbstractContextManager["Display"]):
    """`show` receives the messages of the pool."""

    def __init__(self, quiet: bool, points: int, done: int) -> None:
        self.quiet, self.points, self.done = quiet, points, done
        self.console = Console(stderr=True, markup=False, emoji=False)  # names of lines have brackets and colons
        self.live = self.console.is_terminal and not quiet
        self.bars = Bars(TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), TextColumn("{task.percentage:>3.0f} %"),
                         TextColumn("{task.fields[state]}"), TimeElapsedColumn(), console=self.console, transient=True,
                         disable=not self.live)
        self.tasks: dict[str, TaskID] = {}
        self.phases: dict[str, str] = {}
        self.said: dict[str, float] = {}
        self.begun: dict[str, tuple[float, float]] = {}

    def __enter__(self) -> "Display":
        self.bars.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.bars.__exit__(kind, value, trace)

    def show(self, job: Job, progress: Progress | None) -> None:
        name = job.called
        if progress is None:
            if name in self.tasks:
                self.bars.remove_task(self.tasks.pop(name))
            elif self.live and name not in self.phases:
                self.tasks[name] = self.bars.add_task(name, total=1.0, state="starting")
            return
        state = self.state(name, progress)
        if self.live:
            self.bars.update(self.tasks[name], completed=progress.part, state=state)
        elif not self.quiet and (self.phases.get(name) != progress.phase or time.monotonic() - self.said[name] > QUIET_S):
            print(f"{name}: {state}", file=sys.stderr, flush=True)
            self.said[name] = time.monotonic()
        self.phases[name] = progress.phase

    def state(self, name: str, progress: Progress) -> str:
        speed = f", {progress.mips:.1f} MIPS" if progress.mips > 0 else ""
        text = f"{progress.phase}, {progress.simulated_s:.6f} s simulated{speed}"
        left = self.left_s(name, progress.part)
        return text if left is None else f"{text}, {clock(left)} left"

    def left_s(self, name: str, part: float) -> float | None:
        """Remaining seconds, from the speed of the detailed part so far."""
        if not 0 < part < 1:
            return None
        first = self.begun.setdefault(name, (time.monotonic(), part))
        gone, done = time.monotonic() - first[0], part - first[1]
        return gone * (1 - part) / done if done > 0.01 else None

    def finished(self, job: Job, point: dict[str, Any]) -> None:
        self.done += 1
        if not self.quiet:
            rate = f"{point['throughput_per_s']:,.0f} {point['operation']} per second, " if point["ops"] else ""
            self.console.print(f"{job.called} finished ({self.done} of {self.points}): {rate}{clock(point['host_s'])}", highlight=False,
                               soft_wrap=True)
            say_notes(lambda text: self.console.print(text, highlight=False, soft_wrap=True), {job.called: point})


def say_notes(say: Callable[[str], None], points: dict[str, dict[str, Any]]) -> None:
    """What a reader should know of points, by what they are called."""
    for name, point in points.items():
        for note in point.get("notes") or []:
            say(f"{name}: {note}")


def clock(seconds: float) -> str:
    whole = int(seconds + 0.5)
    return f"{whole // 60}:{whole % 60:02d}"
