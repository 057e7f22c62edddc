# SPDX-License-Identifier: BSD-3-Clause
"""Quantities parse exactly and refuse everything else with the unit that is wanted."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pytest

from moscope.config import ConfigError, Count, Cycles, Flag, Frequency, Name, Size, Time, Width


@pytest.mark.parametrize(
    ("quantity", "amount"),
    [
        (Frequency("2.4GHz"), 2_400_000_000),
        (Frequency("1 Hz"), 1),
        (Frequency("0.1GHz"), 10**8),
        (Time("5ns"), 5_000_000),
        (Time("50.8 ns"), 50_800_000),
        (Time("1fs"), 1),
        (Time("2.5ms"), 2_500_000_000_000),
        (Size("64KiB"), 65536),
        (Size("0.5GiB"), 1 << 29),
        (Cycles("14cycles"), 14),
        (Cycles("3"), 3),
        (Cycles(3), 3),
        (Width("x16"), 16),
        (Width("8bit"), 8),
    ],
)
def test_a_text_with_a_unit_is_exact(quantity: object, amount: int) -> None:
    assert quantity.amount == amount  # type: ignore[attr-defined]


def test_a_period_is_an_exact_fraction() -> None:
    assert Frequency("2.2GHz").period == Fraction(5_000_000, 11)


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        (Frequency, "5ns", "is a time.*a frequency, such as 2.4GHz"),
        (Time, "2.4GHz", "is a frequency.*a time, such as 5ns"),
        (Size, "2.4GHz", "is a frequency.*a size"),
        (Size, "64KB", "write KiB"),
        (Size, "64", "has no unit.*such as 64KiB"),
        (Size, "0.3B", "whole number of B"),
        (Time, "0.5fs", "whole number of fs"),
        (Time, "-1ns", "out of range"),
        (Frequency, "0GHz", "out of range"),
        (Frequency, "fast", "not a number with a unit"),
        (Frequency, "2.4 Gigs", "unknown unit 'Gigs'"),
        (Frequency, "", "not a number"),
        (Frequency, True, "not a frequency"),
        (Frequency, None, "not a frequency"),
        (Time, Size("1B"), "1B is a size.*a time"),
        (Time, "1e5ns", "not a number"),
        (Time, "9" * 400 + "ns", "not a number"),
        (Size, "999999999TiB", "out of range"),
        (Cycles, "3ns", "is a time"),
        (Cycles, "1.5", "whole number of cycles"),
        (Width, "x0", "out of range"),
        (Width, "x2000", "not a link width"),
        (Count, "-1", "not a count"),
        (Count, 2.5, "not a count"),
        (Count, True, "not a count"),
        (Flag, "maybe", "true or false"),
        (Flag, 1, "true or false"),
        (Name, "no spaces", "not a name"),
        (Name, 5, "not a name"),
    ],
)
def test_anything_else_is_refused_with_what_is_wanted(kind: type, text: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        kind(text)


def test_the_source_takes_no_part_in_comparisons() -> None:
    assert Size("1KiB", "P") == Size("1024B", "x")
    assert Count(8, "P") == 8
    assert Time("1ns") != Size("1B")


@pytest.mark.parametrize("value", [Frequency("2.4GHz", "P"), Count(8, "P"), Flag(True, "P"), Name("lru", "P")])
def test_a_quantity_survives_the_way_to_another_process(value: object) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert again.source == "P"
