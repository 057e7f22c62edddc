# SPDX-License-Identifier: BSD-3-Clause
"""Whether throughput changes for good while it is measured: the warm-up was too short, or the system has no steady state.

Two models of a change are compared with a constant. A step divides the windows where their means differ most, relative to the error
of the difference; this is how a collapse shows. A line by least squares shows what falls or rises slowly. Errors allow for
residuals that depend on each other, as in `confidence`. The most of many steps is larger than a single one by chance, so its bound
`STEP` was found with random series: of AR(1) series without a change, with correlations up to 0.5, at most one in 20 has a step or a
line (tests/python/runs/errors/test_trend.py). A change after the last window cannot be seen.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from moscope.runs import confidence
from moscope.wording import number

# The smallest change that counts, as a fraction of the mean.
LEAST = 0.1
# A step or slope relative to its standard error. LINE is Student's t for a two-sided level of 1 % and the fewest windows' six degrees.
STEP, LINE = 7.0, 3.707
# Of each side of a step.
FEWEST_WINDOWS = 3


@dataclass(frozen=True)
class Step:
    """Means of the ratio before and after a change, with the number of windows before it."""

    windows: int
    before: float
    after: float

    def document(self) -> dict[str, Any]:
        return asdict(self)


def of(amounts: Sequence[float], per: Sequence[float]) -> Step | None:
    """The change of the ratio of `amounts` and `per`, given by window; None without one, and for fewer windows than it takes to
    correct errors."""
    n = len(amounts)
    if n < confidence.FEWEST_TO_CORRECT or not sum(amounts):
        return None
    rates = [amount / weight for amount, weight in zip(amounts, per, strict=True)]
    steps = [_step(rates, n_before) for n_before in range(FEWEST_WINDOWS, n - FEWEST_WINDOWS + 1)]
    found, size = max(steps, key=lambda one: one[1])
    large = abs(found.after - found.before) >= LEAST * sum(rates) / n
    return found if large and (size > STEP or _line(rates) > LINE) else None


def _step(rates: list[float], n: int) -> tuple[Step, float]:
    """The step after `n` windows, and its size relative to its standard error."""
    others = len(rates) - n
    step = Step(n, sum(rates[:n]) / n, sum(rates[n:]) / others)
    left = [y - step.before for y in rates[:n]] + [y - step.after for y in rates[n:]]
    return step, _relative(step.after - step.before, left, 1 / n + 1 / others)


def _line(rates: list[float]) -> float:
    """The slope of a line, relative to its standard error. Windows are equally long."""
    n = len(rates)
    mean, places = sum(rates) / n, [i - (n - 1) / 2 for i in range(n)]
    square = sum(x * x for x in places)
    slope = sum(x * (y - mean) for x, y in zip(places, rates, strict=True)) / square
    return _relative(slope, [y - mean - slope * x for x, y in zip(places, rates, strict=True)], 1 / square)


def _relative(size: float, left: list[float], weight: float) -> float:
    """The size of a change relative to its error. `left`: residuals; `weight`: the error's square relative to their variance."""
    r = confidence.correlation(left)
    error = math.sqrt(sum(d * d for d in left) / (len(left) - 2) * weight * (1 + r) / (1 - r))
    return abs(size) / error if error else math.inf if size else 0.0


def said(point: dict[str, Any]) -> str:
    """`trend` of POINT in words."""
    found = point["trend"]
    verb = "rises" if found["after"] > found["before"] else "falls"
    return (f"throughput {verb} from {found['before']:,.0f} per second in the first {number(found['windows'], 'window')} to "
            f"{found['after']:,.0f} in the other {len(point['windows']) - found['windows']}: expected a longer --warmup")
