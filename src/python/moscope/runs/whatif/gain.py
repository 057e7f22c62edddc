# SPDX-License-Identifier: BSD-3-Clause
"""The gain of a what-if run over the run that it repeats, with its error, computed from the windows of both."""

import math
from dataclasses import dataclass
from typing import Any

from moscope.runs.statistics import confidence
from moscope.schema.constants import FS_PER_S


@dataclass(frozen=True)
class Rate:
    """Operations per second of simulated time, or instructions of a program that counts no operations."""

    measure: str
    value: float
    stderr: float | None

    def document(self) -> dict[str, Any]:
        return {"per_s": self.value, "stderr_per_s": self.stderr}


@dataclass(frozen=True)
class Gain:
    """A fraction of the first rate. `error`: its standard error; None if a rate has none."""

    value: float
    error: float | None


def rate(point: dict[str, Any], measure: str) -> Rate:
    """`measure`: operations, or instructions without those of spin loops."""
    key = "ops" if measure == "operations" else "instructions"
    counted, seconds = [float(one[key]) for one in point["windows"]], [one["ticks"] / FS_PER_S for one in point["windows"]]
    found = confidence.of_point(point, counted, seconds, sum(counted) if key == "ops" else None)
    return Rate(measure, found.value, found.stderr)


def measure_of(point: dict[str, Any]) -> str:
    return "operations" if point["ops"] else "instructions"


def gain(before: Rate, after: Rate) -> Gain | None:
    """None if the first rate is zero."""
    if not before.value:
        return None
    ratio = after.value / before.value
    if before.stderr is None or after.stderr is None:
        return Gain(ratio - 1, None)
    return Gain(ratio - 1, math.hypot(before.stderr * ratio, after.stderr) / before.value)
