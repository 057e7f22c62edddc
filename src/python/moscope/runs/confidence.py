# SPDX-License-Identifier: BSD-3-Clause
"""How well the windows of a point determine a mean: batch means, which allow for windows that depend on each other.

Consecutive windows are grouped into at most `MOST_BATCHES` batches of equal length. Means of long batches depend on each other
less than those of windows, and their spread gives the standard error (A. M. Law, Simulation Modeling and Analysis, "batch means";
B. Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30, 1982: 10 to 30 batches are
enough). What correlation is left between neighbouring batches is estimated, corrected for the bias that few batches have
(M. G. Kendall, "Note on bias in the estimation of autocorrelation", Biometrika 41, 1954), and widens the error as in a series of
first order, by (1 + r) / (1 - r) (Steiger, Wilson et al., "ASAP3", ACM TOMACS 15, 2005). The interval is that of Student's
distribution. Fewer than `FEWEST_TO_CORRECT` windows are taken as independent, which makes their error a lower bound.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LEVEL = 0.95
FEWEST_BATCHES, MOST_BATCHES = 10, 19
FEWEST_TO_CORRECT = 8
MOST_CORRELATION = 0.8
# Student's t for a two-sided interval of 95 %, by degrees of freedom.
STUDENT = (math.inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
           2.101, 2.093)


@dataclass(frozen=True)
class Mean:
    """A ratio of sums over windows with its error. `half_width`: of the interval that holds the long-run value with 95 %
    confidence. Both are None for a single window."""

    value: float
    stderr: float | None
    half_width: float | None
    batches: int
    windows_per_batch: int

    @property
    def relative(self) -> float:
        """The standard error as a fraction of the value; infinite if unknown."""
        return self.stderr / abs(self.value) if self.stderr is not None and self.value else math.inf

    def document(self) -> dict[str, Any]:
        return {"stderr": self.stderr, "half_width": self.half_width}


def batch_length(windows: int) -> int:
    """Windows per batch."""
    return 1 if windows <= MOST_BATCHES else windows // FEWEST_BATCHES


def estimate(amounts: Sequence[float], per: Sequence[float]) -> Mean:
    """The ratio of the sums of `amounts` and `per`, given by window: operations and seconds, or core time and operations. Windows
    that fill no batch belong to the first one: it begins earlier."""
    windows = len(amounts)
    length = batch_length(windows)
    starts = [0, *range(windows - (windows // length - 1) * length, windows, length)]
    ends = [*starts[1:], windows]
    sums = [(sum(amounts[a:b]), sum(per[a:b])) for a, b in zip(starts, ends, strict=True)]
    whole = sum(per)
    value = sum(amounts) / whole if whole else 0.0
    if len(sums) < 2 or not whole:
        return Mean(value, None, None, len(sums), length)
    # The linear part of the ratio's error: zero on average, and of the ratio's unit.
    parts = [(amount - value * weight) * len(sums) / whole for amount, weight in sums]
    stderr = math.sqrt(variance_of_mean(parts))
    return Mean(value, stderr, stderr * student(len(parts) - 1), len(parts), length)


def variance_of_mean(values: Sequence[float]) -> float:
    """The squared standard error of the mean of values that neighbours may share a part of."""
    n = len(values)
    mean = sum(values) / n
    squares = sum((v - mean) ** 2 for v in values)
    independent = squares / (n - 1) / n
    if n < FEWEST_TO_CORRECT or not squares:
        return independent
    lag = sum((a - mean) * (b - mean) for a, b in zip(values, values[1:], strict=False)) / squares
    r = min(max((n * lag + 1) / (n - 3), 0.0), MOST_CORRELATION)
    return independent * (1 + r) / (1 - r)


def student(degrees: int) -> float:
    return STUDENT[min(degrees, len(STUDENT) - 1)]
