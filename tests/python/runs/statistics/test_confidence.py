# SPDX-License-Identifier: BSD-3-Clause
"""Intervals against series of first order, AR(1), whose mean is known."""

import math
import random

import pytest
from random_series import MEAN, series

from moscope.runs.statistics import confidence
from moscope.runs.statistics.confidence import Mean, estimate


def holds(mean: Mean) -> bool:
    assert mean.half_width is not None
    return abs(mean.value - MEAN) <= mean.half_width


def covered(correlation: float, windows: int, repetitions: int = 400) -> float:
    numbers = random.Random(20)
    return sum(holds(estimate(series(correlation, windows, numbers), [1.0] * windows)) for _ in range(repetitions)) / repetitions


@pytest.mark.parametrize(("correlation", "windows"), [
    (-0.5, 20), (0.0, 3), (0.0, 10), (0.0, 50), (0.3, 20), (0.6, 20), (0.6, 50), (0.8, 50), (0.9, 100)])
def test_the_interval_holds_the_mean_in_nine_of_ten_series(correlation: float, windows: int) -> None:
    assert covered(correlation, windows) >= 0.9


def test_of_the_errors_of_batches_and_of_windows_the_larger_one_counts() -> None:
    alternating, blocks = [99.0, 101.0] * 15, [99.0, 99.0, 99.0, 101.0, 101.0, 101.0] * 5
    for values, larger in ((alternating, alternating), (blocks, confidence.batched(blocks))):
        mean = estimate(values, [1.0] * 30)
        spread = confidence.variance(confidence.residuals(larger, [30 / len(larger)] * len(larger), 100.0))
        assert mean.stderr == pytest.approx(math.sqrt(spread)) and mean.half_width == pytest.approx(2.262 * math.sqrt(spread))


def test_intervals_that_take_windows_as_independent_are_too_narrow() -> None:
    numbers = random.Random(20)
    naive = 0
    for _ in range(200):
        values = series(0.8, 50, numbers)
        spread = math.sqrt(sum((v - sum(values) / 50) ** 2 for v in values) / 49 / 50)
        naive += abs(sum(values) / 50 - MEAN) <= 2.01 * spread
    assert naive / 200 < 0.7


@pytest.mark.parametrize(("correlation", "least"), [(-0.3, 0.95), (0.0, 0.9), (0.3, 0.9), (0.6, 0.85)])
def test_stopping_at_the_wanted_error_keeps_the_interval(correlation: float, least: float) -> None:
    numbers, repetitions, held = random.Random(7), 150, 0
    for _ in range(repetitions):
        values, windows = series(correlation, 400, numbers), confidence.FEWEST_BATCHES
        while windows < 400 and not (mean := estimate(values[:windows], [1.0] * windows)).enough(0.03):
            windows += 1
        held += holds(mean)
    assert held / repetitions >= least


@pytest.mark.parametrize(("correlation", "most"), [(0.3, 20), (0.6, 35), (0.8, 65)])
def test_an_error_far_below_the_wanted_one_ends_correlated_windows_early(correlation: float, most: int) -> None:
    numbers, taken, missed = random.Random(7), 0, 0
    for _ in range(40):
        values, windows = series(correlation, 400, numbers), confidence.FEWEST_BATCHES
        while windows < 400 and not (mean := estimate(values[:windows], [1.0] * windows)).enough(0.1):
            windows += 1
        taken += windows
        missed += abs(mean.value - MEAN) > 2 * 0.1 * MEAN
    assert taken / 40 < most and not missed


def test_the_upper_limit_of_an_error_needs_to_be_below_the_wanted_one_if_windows_are_few() -> None:
    mean = Mean(1.0, 0.01, None, 24, 12, 0.41)  # worth ten independent windows; 18 would be known well
    assert mean.enough(0.1) and not mean.enough(0.02) and mean.upper == pytest.approx(0.0264, abs=0.001)
    assert Mean(1.0, 0.0, None, 9, 9).upper == 0 and not Mean(1.0, 0.0, None, 9, 9).enough(0.1)


def test_the_limits_of_chi_square_are_exceeded_with_95_per_cent() -> None:
    for degrees, limit in enumerate(confidence.CHI_SQUARE[1:], 1):
        term, below = 1 / math.gamma(degrees / 2 + 1), 0.0
        for n in range(1, 200):
            below, term = below + term, term * (limit / 2) / (degrees / 2 + n)
        assert below * (limit / 2) ** (degrees / 2) * math.exp(-limit / 2) == pytest.approx(0.05, rel=0.01)


def test_a_ratio_weighs_windows_by_what_they_are_divided_by() -> None:
    mean = estimate([30.0, 10.0], [3.0, 1.0])
    assert (mean.value, mean.stderr) == (10, 0)
    assert estimate([1.0, 3.0], [1.0, 1.0]).stderr == pytest.approx(1.0)


def test_a_count_of_whole_operations_has_the_error_of_two_rounded_ends() -> None:
    numbers, squares = random.Random(3), 0.0
    for _ in range(20_000):
        begin, length = numbers.random(), numbers.uniform(5, 6)  # in operations, which end at whole numbers
        squares += (math.floor(begin + length) - math.floor(begin) - length) ** 2
    assert math.sqrt(squares / 20_000) == pytest.approx(confidence.COUNT_ERROR, rel=0.02)


def test_counts_that_do_not_vary_leave_the_error_of_their_sum() -> None:
    ones = [1.0] * 10
    throughput, time = estimate(ones, [0.001] * 10, 10), estimate([5.0] * 10, ones, 10)
    assert [throughput.relative, time.relative] == [pytest.approx(confidence.COUNT_ERROR / 10)] * 2
    assert throughput.enough(0.05) and not throughput.enough(0.04)
    assert throughput.half_width == pytest.approx(2.262 * 1000 * confidence.COUNT_ERROR / 10)
    assert estimate(ones, ones).stderr == 0, "a share of time has no such bound"
    scattered = [10.0, 30.0] * 5
    assert estimate(scattered, ones, sum(scattered)) == estimate(scattered, ones), "the spread counts where it is larger"


def test_no_operations_have_no_relative_error() -> None:
    none = estimate([0.0] * 10, [1.0] * 10, 0)
    assert (none.value, none.relative) == (0, math.inf) and not none.enough(0.5)


@pytest.mark.parametrize("windows", [2, 3, 12, 50])
def test_the_interval_of_no_operations_holds_rates_that_leave_windows_empty_in_5_per_cent_of_cases(windows: int) -> None:
    none = estimate([0.0] * windows, [100e-6] * windows, 0)
    assert none.half_width is not None and none.stderr is not None
    assert math.exp(-none.half_width * windows * 100e-6) == pytest.approx(0.05), "the probability of no operation at that rate"
    assert none.half_width == pytest.approx(1.96 * none.stderr)


@pytest.mark.parametrize(("point", "known"), [({}, True), ({"stderr_per_s": 0.0}, True), ({"stderr_per_s": None}, False)])
def test_a_figure_of_a_point_without_an_error_has_none(point: dict[str, float | None], known: bool) -> None:
    mean = confidence.of_point(point, [1.0, 3.0], [1.0, 1.0])
    assert mean.value == 2 and (mean.stderr is not None, mean.half_width is not None) == (known, known)


def test_one_window_has_no_error_and_is_never_enough() -> None:
    mean = estimate([5.0], [1.0])
    assert mean.stderr is None and mean.half_width is None and not mean.enough(1.0)


def test_long_series_are_grouped_into_ten_to_nineteen_batches() -> None:
    for windows in range(1, 300):
        sums = confidence.batched([1.0] * windows)
        assert sum(sums) == windows and min(windows, 10) <= len(sums) <= 19
        assert len(set(sums[1:])) <= 1
