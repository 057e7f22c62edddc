# SPDX-License-Identifier: BSD-3-Clause
"""Tables on terminals of any width."""

import re

import pytest
from rich.table import Table

from moscope import terminal

NUMBERS = [["55,275,612", "538,481", "-37.0 % ± 2.7 %", "8 per core"], ["2,901,570", "12", "+10893.1 % ± 47303.3 %", "1"]]
HEADS = ("per second", "+-", "loaded latency, cycles", "in flight")
KEYS = ("throughput_per_s", "memory stall without a class")


def printed(capsys: pytest.CaptureFixture[str], keys: int = 1) -> list[str]:
    made = Table(title="What was measured")
    for name in ("figure", "kernel")[:keys]:
        made.add_column(name)
    for name in HEADS:
        made.add_column(name, justify="right")
    made.add_column("")
    made.add_column("waits at")
    for key, numbers in zip(KEYS, NUMBERS, strict=True):
        made.add_row(*(key, "distro")[:keys], *numbers, "within the error", "/a/long/path/of/a/file/that/no/terminal/has/room/for.c:17")
    terminal.print_table(terminal.console(), made, keys)
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("keys", [1, 2])
def test_a_table_is_whole_on_a_terminal_of_any_width(width: int, keys: int, capsys: pytest.CaptureFixture[str],
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    lines = printed(capsys, keys)
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    cells = {cell.strip() for line in lines for cell in re.split("[│┃]", line)}
    assert cells >= {number for row in NUMBERS for number in row}
    if width >= 60:
        assert "throughput_per_s" in cells
    words = {word for cell in cells for word in cell.split()}
    assert words >= {word for name in (*HEADS, *KEYS[1:], "within the error", "What was measured") for word in name.split()}


def test_each_part_of_a_split_table_repeats_the_first_columns(capsys: pytest.CaptureFixture[str],
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    text = "\n".join(printed(capsys))
    assert text.count("figure") == text.count("throughput_per_s") > 1
    assert text.count("What was measured") == 1
    marks = next(line for line in text.splitlines() if "within" in line)
    assert "8 per core" in marks, "a column without a heading stays beside the one before it"


def test_a_table_that_fits_is_printed_in_one_piece(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = "\n".join(printed(capsys))
    assert text.count("figure") == 1
    assert "memory stall without a class" in text


@pytest.mark.parametrize("columns, width", [("40", terminal.WIDTH), ("200", 200)])
def test_in_a_pipe_columns_make_a_table_wider_but_not_narrower(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal.console().width == width


def test_a_key_without_wrapping_stays_on_one_line_where_headings_can_be_folded(capsys: pytest.CaptureFixture[str],
                                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "50")
    made = Table()
    made.add_column("", no_wrap=True)
    for _ in range(3):
        made.add_column("home queue", justify="right")
    made.add_row("DRAM 2 hops *", "12345678", "12345678", "1")
    terminal.print_table(terminal.console(), made)
    assert "DRAM 2 hops *" in capsys.readouterr().out
