# SPDX-License-Identifier: BSD-3-Clause
"""Numbers with their noun, in the singular or the plural, and command lines."""

import subprocess

import pytest

from moscope.wording import command_line, number, percent, significant


@pytest.mark.parametrize("count, said", [(0, "0 cores"), (1, "1 core"), (48, "48 cores"), (1200, "1,200 cores")])
def test_one_is_no_plural(count: int, said: str) -> None:
    assert number(count, "core") == said


@pytest.mark.parametrize("value, digits, said", [
    (813, 4, "813.0"), (793.71, 4, "793.7"), (0.181, 4, "0.1810"), (-142, 4, "-142.0"), (2.42, 4, "2.420"), (999.96, 4, "1,000"),
    (12345.6, 4, "12,346"), (0, 4, "0"), (-0.0, 4, "0"), (0.5, 2, "0.50"), (9, 2, "9.0"), (9.96, 2, "10"), (10.4, 2, "10")])
def test_a_number_keeps_its_zeros_at_the_end(value: float, digits: int, said: str) -> None:
    assert significant(value, digits) == said


def test_a_percentage_has_a_space() -> None:
    assert (percent(0.554), percent(0.0799, 1)) == ("55 %", "8.0 %")


def test_a_command_line_has_no_quotes_within_quotes_of_the_same_kind() -> None:
    assert command_line(["run", "--program", "./cnt 'a b' '$HOME'", "c0 ld A"]) == """run --program "./cnt 'a b' '\\$HOME'" 'c0 ld A'"""


def test_a_shell_reads_a_command_line_as_its_words() -> None:
    words = ["a'b", "it's $HOME", "`ls` isn't \"x\" \\ or \\n", "don't!", "", "a b", "'\n'"]
    got = subprocess.run(["bash", "-c", "printf '%s\\0' " + command_line(words)], capture_output=True, text=True, check=True)
    assert got.stdout.split("\0")[:-1] == words
