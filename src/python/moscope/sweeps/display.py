# SPDX-License-Identifier: BSD-3-Clause
"""What a sweep prints for people: progress on stderr, then failed points with their commands, and where the results are."""

import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from moscope import terminal
from moscope.cli import Shared
from moscope.sweeps import figures, jobs
from moscope.sweeps.spec import text
from moscope.wording import number

if TYPE_CHECKING:
    from moscope.sweeps.main import Outcome
    from moscope.sweeps.spec import Spec

EVERY_S, UNCHANGED_S = 30.0, 120.0  # seconds between lines, and between equal lines, if stderr is no terminal
FAILURES_SHOWN = POINTS_SHOWN = 20


class Bar:
    """A changing line on a terminal; elsewhere, occasional lines."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.live = sys.stderr.isatty() and not shared.quiet
        self.started = self.last = time.monotonic()
        self.shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def say(self, text: str) -> None:
        self._clear()
        self.shared.say(text)

    def show(self, done: int, points: int, under_way: Sequence[str] = ()) -> None:
        """`under_way`: the state of each running point."""
        if self.shared.quiet:
            return
        now = time.monotonic()
        text = f"{done} of {number(points, 'point')} finished"
        at = f"; {'; '.join(under_way)}" if under_way else ""
        line = f"{text}, {now - self.started:.0f} s{at}"
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{line[:width]}", end="", file=sys.stderr, flush=True)
        elif now - self.last >= (EVERY_S if text + at != self.shown else UNCHANGED_S):
            self.last, self.shown = now, text + at
            self.shared.say(line)

    def _clear(self) -> None:
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def run(spec: "Spec", shared: Shared, **options: Any) -> int:
    """Runs a sweep as a command, with progress, results on stdout and failures on stderr; returns the exit code."""
    from moscope.sweeps import main

    with Bar(shared) as bar:
        outcome = main.run(spec, shared.out, say=bar.say, progress=bar.show, **options)
    show(outcome, shared)
    return outcome.exit_code


def show(outcome: "Outcome", shared: Shared) -> None:
    document = outcome.document
    if shared.json:
        shared.result(document)
    elif "estimated_s" not in document:
        points_table(Path(document["table"]))
        print(f"{document['done']} of {number(document['points'], 'point')} finished")
        print(f"table: {document['table']}\nreport: {document['report']}")
        if "plot" in document:
            print(f"plot: {document['plot']}")
    failures(outcome)
    found = document.get("findings", [])
    for one in found[:FAILURES_SHOWN]:
        print(f"found: {one['finding'].splitlines()[0]}\n  to repeat it: {one['command']}", file=sys.stderr)
    if len(found) > FAILURES_SHOWN:
        print(f"and {number(len(found) - FAILURES_SHOWN, 'finding')} more (sweep.json lists all)", file=sys.stderr)
    if outcome.wrong:
        print(outcome.wrong.report(), file=sys.stderr)


def points_table(file: Path) -> None:
    """Prints the axes, the main figures and the host's time of the first points."""
    from pyarrow import parquet
    from rich.table import Table

    found = parquet.read_table(file, partitioning=None)
    about = {key.decode(): value.decode() for key, value in (found.schema.metadata or {}).items()}
    job = jobs.find(about["job"])
    main = figures.main(found.column_names, job.figures_first, lambda name: len(set(found[name].drop_null().to_pylist())))
    axes = about["axes"].split("\n") if about["axes"] else []
    rows = found.slice(0, POINTS_SHOWN).to_pylist()
    names = figures.columns(found.column_names, main, job.figures_beside)

    def table(heading: Callable[[str], str]) -> Table:
        made = Table()
        for name in [*axes, "status"]:
            made.add_column(heading(name))
        for name in names:
            made.add_column(heading(name), justify="right")
        for row in rows:
            made.add_row(*(text(row[n]) for n in axes), row["status"], *(_figure(row[n]) for n in names))
        return made

    console = terminal.console()
    plain = table(str)
    terminal.print_table(console, plain if terminal.fits(console, plain) else table(_in_two_lines), keys=len(axes))
    if found.num_rows > len(rows):
        print(f"and {number(found.num_rows - len(rows), 'point')} more")


def _in_two_lines(name: str) -> str:
    """A name that is broken after the `_` or `.` nearest to its middle: throughput_ / per_s."""
    parts = re.split(r"(?<=[_.])(?=.)", name)
    lines = [("".join(parts[:n]), "".join(parts[n:])) for n in range(1, len(parts))]
    return "\n".join(min(lines, key=lambda two: max(map(len, two)))) if lines else name


def _figure(value: Any) -> str:
    if value is None or isinstance(value, str | bool):
        return "-" if value is None else text(value)
    return f"{value:,.0f}" if abs(value) >= 1000 or round(value, 3) == round(value) else f"{value:,.3f}"


def failures(outcome: "Outcome") -> None:
    """The failed points with their commands, on stderr."""
    for failure in outcome.failed[:FAILURES_SHOWN]:
        print(f"failed: {failure['error'].splitlines()[0]}\n  to repeat it: {failure['command']}", file=sys.stderr)
    if len(outcome.failed) > FAILURES_SHOWN:
        print(f"and {number(len(outcome.failed) - FAILURES_SHOWN, 'failed point')} more (sweep.json lists all)", file=sys.stderr)
