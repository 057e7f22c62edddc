# SPDX-License-Identifier: BSD-3-Clause
"""Changes of throughput: series without one, AR(1), and series that collapse, fall or rise by a known amount."""

import random

import pytest
from random_series import series

from moscope.runs import windows
from moscope.runs.statistics import trend
from moscope.runs.windows import Moment
from moscope.schema.constants import FS_PER_MS


def counts(values: list[float]) -> list[float]:
    """Of a thousand operations in the mean."""
    return [1000.0 * v for v in values]


def found(values: list[float]) -> trend.Step | None:
    return trend.of(values, [1.0] * len(values))


@pytest.mark.parametrize(("correlation", "length", "most"), [
    (0.0, 8, 0.01), (0.0, 24, 0.01), (0.5, 8, 0.05), (0.5, 12, 0.05), (0.5, 24, 0.05), (0.8, 8, 0.125), (0.8, 24, 0.125)])
def test_a_series_without_a_change_rarely_has_one(correlation: float, length: int, most: float) -> None:
    """The bounds of docs/comparing.md, and less without correlation."""
    numbers = random.Random(27)
    assert sum(bool(found(counts(series(correlation, length, numbers, 0.3)))) for _ in range(2000)) / 2000 <= most


@pytest.mark.parametrize(("before", "after"), [(10, 14), (1, 23), (20, 4), (22, 2)])
def test_a_collapse_is_found_where_it_happens(before: int, after: int) -> None:
    numbers = random.Random(29)
    step = found([880_000 * n for n in series(0.0, before, numbers, 0.03)] + [118_000 * n for n in series(0.0, after, numbers, 0.2)])
    assert step is not None and step.windows == before
    assert step.before == pytest.approx(880_000, rel=0.05) and step.after == pytest.approx(118_000, rel=0.3)


def test_the_collapse_of_postgresql_is_found() -> None:
    """Rows in each millisecond, as counted on 48 cores of `stock` with a `write_high` of 24."""
    step = found([880, 352, 176, 208, 128, 80, 112, 144, 176, 48, 112, 64, 64, 64, 48, 96, 160, 128, 48, 96, 192, 128, 208, 80])
    assert step is not None and step.windows in (1, 2)


@pytest.mark.parametrize("change", [-0.5, 0.5])
def test_a_slow_change_is_found(change: float) -> None:
    numbers = random.Random(28)
    step = found(counts([n + change * (i + 0.5) / 20 for i, n in enumerate(series(0.0, 20, numbers, 0.05))]))
    assert step is not None and (step.after - step.before) * change > 0 and 7 <= step.windows <= 13


@pytest.mark.parametrize(("part", "counted"), [(0.09, False), (0.11, True)])
def test_a_change_counts_from_a_tenth_of_the_mean(part: float, counted: bool) -> None:
    line = [1 - part * (n - 9.5) / 20 for n in range(20)]
    step = [1 + part / 2] * 10 + [1 - part / 2] * 10
    assert [bool(found(counts(values))) for values in (line, step)] == [counted, counted]


def test_counts_that_differ_by_one_operation_are_no_change() -> None:
    assert found([5.0] * 5 + [6.0] * 3) is None


def test_few_windows_and_windows_without_operations_or_changes_have_none() -> None:
    assert found([1.0 * n for n in range(7)]) is None
    assert found([0.0] * 20) is None and found([5.0] * 20) is None


def moments(operations: list[int]) -> list[Moment]:
    return [Moment(tick=FS_PER_MS, operations=n, instructions=1, spun=0, spent={("busy", "user"): 1}) for n in operations]


def test_a_point_says_so_only_if_its_throughput_changes() -> None:
    point = windows.summary(moments([1000] * 8 + [100] * 4))
    assert point["trend"] == {"windows": 8, "before": pytest.approx(1e6), "after": pytest.approx(1e5)}
    assert trend.said(point) == ("throughput falls from 1,000,000 per second in the first 8 windows to 100,000 in the last 4 windows: "
                                 "expected a longer --warmup, unless the system has no steady state")
    assert "trend" not in windows.summary(moments([1000] * 12))


def test_parts_of_one_period_of_the_work_have_no_trend() -> None:
    falling = moments([1000 - 40 * n for n in range(12)])
    assert "trend" not in windows.summary(falling, 7 * FS_PER_MS)
    assert "trend" in windows.summary(falling, 6 * FS_PER_MS)
