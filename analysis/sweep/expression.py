# SPDX-License-Identifier: BSD-3-Clause
"""Which figure to draw: `FIGURE ~ AXIS`, or `FIGURE ~ AXIS | AXIS, ..`: the first axis behind the bar is a curve for each value, the
others are panels. FIGURE may be the beginning of one column's name: `throughput` is `throughput_per_s`."""

from dataclasses import dataclass

from analysis.run_directory import RunDirectoryError
from analysis.sweep.table import Sweep
from moscope.errors import UserError, unknown_name
from moscope.sweeps.report import matching


@dataclass(frozen=True)
class Expression:
    figure: str
    x: str
    by: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.figure} ~ {self.x}" + (f" | {', '.join(self.by)}" if self.by else "")

    @property
    def file(self) -> str:
        return "-".join((self.figure, self.x, *self.by)).replace("/", "_")


def parse(text: str, sweep: Sweep) -> Expression:
    figure, tilde, right = text.partition("~")
    x, _, by = right.partition("|")
    if not tilde or not figure.strip() or not x.strip():
        raise RunDirectoryError(f"--plot: {text!r}: expected FIGURE ~ AXIS or FIGURE ~ AXIS | AXIS, ..")
    others = tuple(name.strip() for name in by.split(",") if name.strip())
    columns = list(sweep.rows[0]) if sweep.rows else []
    for name in (x.strip(), *others):
        if name not in columns:
            raise RunDirectoryError(str(unknown_name("--plot", "parameter", name, sweep.axes)))
    return Expression(column(figure.strip(), sweep.figures), x.strip(), others)


def column(name: str, known: list[str]) -> str:
    """The column that a name, or its beginning, means."""
    try:
        return matching(name, known)
    except UserError as error:
        raise RunDirectoryError(str(error)) from None
