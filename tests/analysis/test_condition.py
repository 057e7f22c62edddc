# SPDX-License-Identifier: BSD-3-Clause
"""The conditions of `compare --fail-if`."""

import pytest

from analysis.comparison import condition

FIGURES = {"throughput_per_s": {"difference": -600.0, "relative": -0.06}, "us_per_op": {"difference": 25.0, "relative": 0.25}}


@pytest.mark.parametrize(("expression", "holds"), [
    ("throughput_per_s < -5%", True), ("throughput_per_s<-7%", False), ("throughput_per_s <= -600", True), ("us_per_op > 24.9", True),
    ("us_per_op > 30 or throughput_per_s < -5%", True), ("us_per_op > 30 and throughput_per_s < -5%", False),
    ("(us_per_op > 30 or us_per_op > 20) and throughput_per_s < 0", True),
    ("kernel_share > 0.1 or us_per_op > 20", True), ("us_per_op > 30 and kernel_share > 0.1", False),
])
def test_a_condition_compares_the_difference_of_a_figure(expression: str, holds: bool) -> None:
    assert condition.parse(expression).holds(FIGURES) == holds


@pytest.mark.parametrize(("expression", "holds"), [("idle > 0%", False), ("idle >= 0%", True), ("idle < 5%", True)])
def test_a_change_from_zero_to_zero_is_zero_percent(expression: str, holds: bool) -> None:
    assert condition.parse(expression).holds({"idle": {"difference": 0.0, "relative": None}}) == holds


def test_a_percentage_of_a_figure_that_is_zero_in_a_alone_cannot_be_tested() -> None:
    with pytest.raises(condition.ConditionError, match="^idle: is 0 in A: expected a condition without %$"):
        condition.parse("idle > 5%").holds({"idle": {"difference": 0.25, "relative": None}})


@pytest.mark.parametrize("expression", ["kernel_share > 0", "kernel_share > 0 or us_per_op > 30", "us_per_op > 20 and kernel_share > 0"])
def test_a_condition_that_needs_a_figure_without_a_difference_cannot_be_tested(expression: str) -> None:
    with pytest.raises(condition.ConditionError, match="kernel_share: has no difference between these points"):
        condition.parse(expression).holds(FIGURES)


@pytest.mark.parametrize(("expression", "says"), [
    ("throughput_per_s = 3", '"=" at character 18: expected <, <=, > or >=, such as'),
    ("throughput_per_s <", "the condition ends too early: expected a number"),
    ("us_per_op > 3 busy < 1", '"busy" at character 15: expected'),
    ("", "the condition ends too early: expected"),
])
def test_an_error_in_a_condition_says_where_it_is(expression: str, says: str) -> None:
    with pytest.raises(condition.ConditionError) as error:
        condition.parse(expression)
    assert says in str(error.value)
