# SPDX-License-Identifier: BSD-3-Clause
"""How well the windows of a point determine a mean: batch means, which allow for windows that depend on each other.

Consecutive windows are grouped into at most `MOST_BATCHES` batches of equal length. Means of long batches depend on each other
less than those of windows, and their spread gives the standard error (A. M. Law, Simulation Modeling and Analysis, "batch means";
B. Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30, 1982: 10 to 30 batches are
enough). The correlation that is left between neighbours is estimated, corrected for the bias that few values have (M. G. Kendall,
"Note on bias in the estimation of autocorrelation", Biometrika 41, 1954), and widens the error as in a series of first order, by
(1 + r) / (1 - r) (N. M. Steiger et al., "ASAP3", ACM TOMACS 15, 2005). The same is done for the windows themselves; the larger
error counts. The interval is that of Student's distribution, with no more degrees of freedom than independent windows would have.
Fewer than `FEWEST_TO_CORRECT` windows are taken as independent, which makes their error a lower bound.

Counts of operations are whole numbers, but the first window begins and the last one ends within an operation. Two uniform rounding
errors add up to an error of the whole count with a standard deviation of sqrt(1/6) operation (`COUNT_ERROR`), however little the
windows differ. Where operations are counted, the standard error is at least that.

That holds for operations that follow each other evenly. If all windows together contain none, nothing shows how evenly they come. The
interval then ends at the rate that leaves windows without an operation in 5 % of cases if operations come independently of each other
(Poisson): `NONE_SEEN`, 3.0 operations in the time of all windows (J. A. Hanley and A. Lippman-Hand, "If nothing goes wrong, is
everything all right?", JAMA 249, 1983). The standard error is that of a normal variable with this interval.

`enough` says when to stop. Rules that stop at the first small error tend to stop too early, because the error is itself an estimate.
So either there have to be so many windows that it is known well, more if they are correlated; or the error has to be so small that
its upper limit is below the wanted error. That is the limit at 95 % by the chi-square distribution, with as many degrees of freedom as
the interval, and for the upper limit of the correlation, whose estimate from n windows has a variance of (1 - r^2) / n (M. S. Bartlett,
"On the theoretical specification and sampling properties of autocorrelated time-series", Supplement to the JRSS 8, 1946).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

LEVEL = 0.95
FEWEST_BATCHES, MOST_BATCHES = 10, 19
FEWEST_TO_CORRECT = 8
MOST_CORRELATION = 0.95
COUNT_ERROR = math.sqrt(1 / 6)  # operations
NONE_SEEN = -math.log(1 - LEVEL)  # operations: the half-width of the interval if none is counted
# Student's t for a two-sided interval of 95 %, by degrees of freedom.
STUDENT = (math.inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
           2.101, 2.093)
NORMAL = 1.645  # what a normal variable exceeds with a probability of 5 %
NORMAL_BOTH = 1.960  # what the absolute value of a normal variable exceeds with a probability of 5 %
# What a chi-square variable exceeds with 95 % probability, by degrees of freedom.
CHI_SQUARE = (0.0, 0.00393, 0.103, 0.352, 0.711, 1.145, 1.635, 2.167, 2.733, 3.325, 3.940, 4.575, 5.226, 5.892, 6.571, 7.261, 7.962, 8.672,
              9.390)


@dataclass(frozen=True)
class Mean:
    """A ratio of sums over windows with its error. `half_width`: of the interval that holds the long-run value with 95 %
    confidence. Both are None for a single window. `correlation`: of neighbouring windows, 0 if negative or unknown."""

    value: float
    stderr: float | None
    half_width: float | None
    windows: int
    batches: int
    correlation: float = 0.0

    @property
    def relative(self) -> float:
        """The standard error as a fraction of the value; infinite if unknown."""
        return self.stderr / abs(self.value) if self.stderr is not None and self.value else math.inf

    @property
    def upper(self) -> float:
        """An upper limit of the relative standard error at 95 %."""
        if self.windows < 2:
            return math.inf
        r, degrees = self.correlation, degrees_of_freedom(self.windows, self.batches, self.correlation)
        most = min(r + NORMAL * math.sqrt((1 - r * r) / self.windows), MOST_CORRELATION)
        return self.relative * math.sqrt(degrees / CHI_SQUARE[degrees] * widened(most) / widened(r))

    def enough(self, relative: float) -> bool:
        """Whether the standard error is below a fraction of the value, and known well enough to say so."""
        independent = independent_windows(self.windows, self.correlation)
        known = independent >= FEWEST_BATCHES * (1 + 2 * self.correlation) or self.upper < relative
        return self.relative < relative and self.windows >= FEWEST_BATCHES and known

    def document(self) -> dict[str, Any]:
        return {"value": self.value, "stderr": self.stderr, "half_width": self.half_width}

    def without_error(self) -> "Mean":
        return replace(self, stderr=None, half_width=None)


def estimate(amounts: Sequence[float], per: Sequence[float], operations: float | None = None) -> Mean:
    """The ratio of the sums of `amounts` and `per`, given by window: operations and seconds, or core time and operations.
    `operations`: of all windows, where `amounts` or `per` counts them; `per` only if there are any."""
    windows, whole = len(amounts), sum(per)
    value = sum(amounts) / whole if whole else 0.0
    batches = batched(amounts), batched(per)
    if windows < 2 or not whole:
        return Mean(value, None, None, windows, len(batches[0]))
    r = correlation(residuals(amounts, per, value))
    spread = math.sqrt(max(variance(residuals(*batches, value)), variance(residuals(amounts, per, value))))
    stderr = max(spread, 0.0 if operations is None else least_error(value, operations, whole))
    factor = NORMAL_BOTH if operations == 0 else STUDENT[degrees_of_freedom(windows, len(batches[0]), r)]
    return Mean(value, stderr, stderr * factor, windows, len(batches[0]), r)


def of_point(point: dict[str, Any], amounts: Sequence[float], per: Sequence[float], operations: float | None = None) -> Mean:
    """As `estimate`, for the windows of a POINT of the contracts. If the point has no error (`stderr_per_s` is null), for example
    because its windows are different parts of the work, there is none here."""
    mean = estimate(amounts, per, operations)
    return mean.without_error() if point.get("stderr_per_s", 0.0) is None else mean


def least_error(value: float, operations: float, whole: float) -> float:
    """The standard error of a ratio that results from counting alone, if `operations` are counted in all windows together. If
    none are counted, the ratio is their number divided by `whole`."""
    return abs(value) * COUNT_ERROR / operations if operations else NONE_SEEN / NORMAL_BOTH / whole


def batched(values: Sequence[float]) -> list[float]:
    """Sums of batches. Windows that fill no batch belong to the first one."""
    windows = len(values)
    length = 1 if windows <= MOST_BATCHES else windows // FEWEST_BATCHES
    starts = [0, *range(windows - (windows // length - 1) * length, windows, length)]
    return [sum(values[a:b]) for a, b in zip(starts, [*starts[1:], windows], strict=True)]


def residuals(amounts: Sequence[float], per: Sequence[float], value: float) -> list[float]:
    """The linear part of the ratio's error: its mean is zero, and it has the ratio's unit. Deviations that may be mere rounding
    are set to zero."""
    scale, rounding = len(per) / sum(per), 1e-9 * abs(value)
    found = [(amount - value * weight) * scale for amount, weight in zip(amounts, per, strict=True)]
    return [0.0 if abs(d) < rounding else d for d in found]


def variance(deviations: Sequence[float]) -> float:
    """The squared standard error of a mean, from deviations whose neighbours may be correlated."""
    n = len(deviations)
    r = correlation(deviations)
    return sum(d * d for d in deviations) / (n - 1) / n * (1 + r) / (1 - r)


def widened(r: float) -> float:
    """The factor by which correlation increases the variance of a mean."""
    return (1 + r) / (1 - r)


def correlation(deviations: Sequence[float]) -> float:
    """The correlation of neighbours, limited to 0 .. `MOST_CORRELATION`."""
    n, squares = len(deviations), sum(d * d for d in deviations)
    if n < FEWEST_TO_CORRECT or not squares:
        return 0.0
    lag = sum(a * b for a, b in zip(deviations, deviations[1:], strict=False)) / squares
    return min(max((n * lag + 1) / (n - 3), 0.0), MOST_CORRELATION)


def degrees_of_freedom(windows: int, batches: int, r: float) -> int:
    """Of the standard error of at least two windows: no more than independent windows would have."""
    return min(batches, max(2, int(independent_windows(windows, r)))) - 1


def independent_windows(windows: int, r: float) -> float:
    """The number of independent windows that would determine the mean equally well."""
    return windows * (1 - r) / (1 + r)
