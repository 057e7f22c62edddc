# SPDX-License-Identifier: BSD-3-Clause
"""The results of a run for people: what is printed below a name."""

from typing import Any

from moscope.runs.table import places

NAME: dict[str, Any] = {"name": "page cache", "writers": ["server:put"], "waiters": ["python3 (no symbols)", "python3:eval", "libc.so.6:strlen"]}


def place(share: float, line: int = 7) -> dict[str, Any]:
    return {"function": "libc.so.6:strlen", "source": f"strlen.S:{line}", "inlined": [], "share": share}


def test_functions_stand_in_for_source_lines_with_little_of_the_waiting() -> None:
    assert places(NAME | {"waited_at": [place(0.003)]}) == ["waits in         python3 (no symbols), python3:eval"]
    assert places(NAME | {"waited_at": [place(0.6), place(0.3, 8), place(0.1, 9)]}) == [
        "waits at    60%  libc.so.6:strlen  strlen.S:7", "waits at    30%  libc.so.6:strlen  strlen.S:8"]


def test_source_lines_with_small_shares_are_left_out() -> None:
    assert places(NAME | {"written_at": [place(0.9), place(0.01)], "called_at": [place(0.02)]}) == [
        "written at  90%  libc.so.6:strlen  strlen.S:7"]
    assert places(NAME) == []
