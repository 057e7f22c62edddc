# SPDX-License-Identifier: BSD-3-Clause
"""Changes of throughput: series without one, AR(1), and series that collapse, fall or rise by a known amount."""

import random

import pytest
from random_series import series

from moscope.runs import trend, windows
from moscope.runs.windows import FS_PER_MS, Moment


def found(values: list[float]) -> trend.Step | None:
    return trend.of(values, [1.0] * len(values))


@pytest.mark.parametrize(("correlation", "length", "most"), [
    (0.0, 8, 0.03), (0.0, 24, 0.01), (0.5, 12, 0.05), (0.5, 24, 0.04), (0.8, 24, 0.12)])
def test_a_series_without_a_change_rarely_has_one(correlation: float, length: int, most: float) -> None:
    numbers = random.Random(27)
    assert sum(bool(found(series(correlation, length, numbers, 0.3))) for _ in range(400)) / 400 <= most


@pytest.mark.parametrize(("before", "after"), [(10, 14), (4, 20), (20, 4)])
def test_a_collapse_is_found_where_it_happens(before: int, after: int) -> None:
    numbers = random.Random(29)
    step = found([880_000 * n for n in series(0.0, before, numbers, 0.03)] + [118_000 * n for n in series(0.0, after, numbers, 0.2)])
    assert step is not None and step.windows == before
    assert step.before == pytest.approx(880_000, rel=0.05) and step.after == pytest.approx(118_000, rel=0.3)


@pytest.mark.parametrize("change", [-0.5, 0.5])
def test_a_slow_change_is_found(change: float) -> None:
    numbers = random.Random(28)
    step = found([n + change * (i + 0.5) / 20 for i, n in enumerate(series(0.0, 20, numbers, 0.05))])
    assert step is not None and (step.after - step.before) * change > 0 and 7 <= step.windows <= 13


def test_a_change_of_less_than_a_tenth_does_not_count() -> None:
    assert found([1.0 - 0.004 * n for n in range(20)]) is None
    assert found([1.0 - 0.012 * n for n in range(20)]) is not None


def test_few_windows_and_windows_without_operations_or_changes_have_none() -> None:
    assert found([1.0 * n for n in range(7)]) is None
    assert found([0.0] * 20) is None and found([5.0] * 20) is None


def moments(operations: list[int]) -> list[Moment]:
    return [Moment(FS_PER_MS, n, 1, 0, 1, {("busy", "user"): 1}) for n in operations]


def test_a_point_says_so_only_if_its_throughput_changes() -> None:
    point = windows.summary(moments([1000] * 8 + [100] * 4))
    assert point["trend"] == {"windows": 8, "before": pytest.approx(1e6), "after": pytest.approx(1e5)}
    assert trend.said(point) == ("throughput falls from 1,000,000 per second in the first 8 windows to 100,000 in the other 4: "
                                 "expected a longer --warmup")
    assert "trend" not in windows.summary(moments([1000] * 12))


def test_parts_of_one_period_of_the_work_have_no_trend() -> None:
    falling = moments([1000 - 40 * n for n in range(12)])
    assert "trend" not in windows.summary(falling, 7 * FS_PER_MS)
    assert "trend" in windows.summary(falling, 6 * FS_PER_MS)
