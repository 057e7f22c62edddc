# SPDX-License-Identifier: BSD-3-Clause
"""Detects a lasting change of throughput during the measurement: the warm-up was too short, or the system has no steady state.

Two models of a change are compared with a constant. A step divides the windows where their means differ most, relative to the error
of the difference; it detects a collapse. A line fitted by least squares detects slow rises and falls. The errors take into account
that residuals depend on each other, as in `confidence`, and that counts are whole numbers.

The largest of many possible steps exceeds a single step by chance, and the correlation of few windows is not known well. The bounds
were therefore found with random series of first order without a change. Of series with correlations up to 0.5, at most one in 20 is
taken for a change; with a correlation of 0.8, one in 8 (tests/python/runs/statistics/test_trend.py). A change after the last window
cannot be seen.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from moscope.runs.statistics import confidence

# The smallest change that counts, as a fraction of the mean: a step, or what a line adds up to over all windows.
LEAST = 0.1
STEP = 7.0  # the smallest size of a step, relative to its standard error


def least_slope(windows: int) -> float:
    """The smallest slope that counts, relative to its standard error."""
    return 3 + 14 / windows


@dataclass(frozen=True)
class Step:
    """Means of the ratio before and after a change, with the number of windows before it."""

    windows: int
    before: float
    after: float

    def document(self) -> dict[str, Any]:
        return asdict(self)


def of(amounts: Sequence[float], per: Sequence[float]) -> Step | None:
    """The change of the ratio of `amounts` and `per`, given by window; None if there is none, or if there are too few windows to
    correct errors."""
    n, whole = len(amounts), sum(per)
    if n < confidence.FEWEST_TO_CORRECT or not sum(amounts):
        return None
    rates, unit = [amount / weight for amount, weight in zip(amounts, per, strict=True)], n / whole
    found, size = max((_step(rates, before, unit) for before in range(1, n)), key=lambda one: one[1])
    slope, steepness = _line(rates, unit)
    least = LEAST * sum(rates) / n
    steps = size > STEP and abs(found.after - found.before) >= least
    return found if steps or (steepness > least_slope(n) and abs(slope) * n >= least) else None


def _step(rates: list[float], n: int, unit: float) -> tuple[Step, float]:
    """The step after `n` windows, and its size relative to its standard error."""
    others = len(rates) - n
    step = Step(n, sum(rates[:n]) / n, sum(rates[n:]) / others)
    left = [y - step.before for y in rates[:n]] + [y - step.after for y in rates[n:]]
    return step, abs(step.after - step.before) / _error(left, unit, 1 / n + 1 / others)


def _line(rates: list[float], unit: float) -> tuple[float, float]:
    """The slope of a line for each window, and the same relative to its standard error. Windows are equally long."""
    n = len(rates)
    mean, places = sum(rates) / n, [i - (n - 1) / 2 for i in range(n)]
    square = sum(x * x for x in places)
    slope = sum(x * (y - mean) for x, y in zip(places, rates, strict=True)) / square
    left = [y - mean - slope * x for x, y in zip(places, rates, strict=True)]
    return slope, abs(slope) / _error(left, unit, 1 / square)


def _error(left: list[float], unit: float, weight: float) -> float:
    """The standard error of a change. `left`: residuals; `unit`: the rate of one operation in a window; `weight`: the squared
    error relative to the variance of the residuals."""
    r = confidence.correlation(left)
    variance = max(sum(d * d for d in left) / (len(left) - 2), unit * unit)
    return math.sqrt(variance * weight * (1 + r) / (1 - r))


def said(point: dict[str, Any]) -> str:
    """`trend` of POINT in words."""
    found = point["trend"]
    verb = "rises" if found["after"] > found["before"] else "falls"
    return (f"throughput {verb} from {found['before']:,.0f} per second in the first {_windows(found['windows'])} to {found['after']:,.0f} "
            f"in the last {_windows(len(point['windows']) - found['windows'])}: "
            "expected a longer --warmup, unless the system has no steady state")


def _windows(n: int) -> str:
    return "window" if n == 1 else f"{n} windows"
