# SPDX-License-Identifier: BSD-3-Clause
"""What `protocol verify` says about a violation that has no script."""

from pathlib import Path
from typing import Any

import pytest

from moscope.commands.protocol.verify import _print, without_a_script
from moscope.protocol.counterexample.replay import Candidate, Played
from moscope.protocol.verify_script import names

STEP = {"what": "core 0 asks for LD of line 1"}


@pytest.mark.parametrize("steps, seconds, why", [
    ([STEP, {**STEP, "evicts": "L1Cache-0"}], 20, "the path contains an eviction"),
    ([STEP, {**STEP, "device": 0}], 20, "the path contains an access of a device"),
    ([STEP], 20, "no script that fails on the engine was found"),
    ([STEP], 0, "--shrink is 0"),
])
def test_a_violation_without_a_script_has_a_reason(steps: list[dict[str, Any]], seconds: int, why: str, tmp_path: Path) -> None:
    assert without_a_script(steps, tmp_path / "MSI.counterexample.toml", seconds) == f"no script was written: {why}"


def test_a_script_of_an_earlier_run_is_named_as_such(tmp_path: Path) -> None:
    file = tmp_path / "MSI.counterexample.toml"
    file.write_text("script = 'c0 ld A@n0'\n")
    assert without_a_script([STEP], file, 20).endswith(f"; {file} is from an earlier run")


def test_the_step_of_a_violation_is_not_another_depth(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {"protocol": "MSI", "caches": 2, "chips": 1, "homes": 1, "lines": 1, "requests": ["st"], "device": [], "states": 312,
              "depth": 10, "steps_taken": 900, "seconds": 0.1, "memory": 0, "renamings": 2}
    steps = [{"what": "core 0 asks", "transitions": []}] * 11
    _print({**counts, "violation": "two copies", "steps": steps, "counterexample": None,
            "end": {"states": ["L1Cache-0: line 1 in M"], "messages": []}}, "no script was written")
    said = capsys.readouterr().out
    assert "312 states seen, 10 steps deep, " in said and "violation at the end of these 11 steps: two copies" in said
    assert "in the end:\n      L1Cache-0: line 1 in M\n      no message is under way\n" in said


@pytest.mark.parametrize("limit, means", [("memory", "--memory"), ("time", "--seconds"), ("states", "their numbers have 32 bits")])
def test_an_incomplete_exploration_names_its_limit(limit: str, means: str, capsys: pytest.CaptureFixture[str]) -> None:
    _print({"protocol": "MSI", "caches": 2, "chips": 1, "homes": 1, "lines": 1, "requests": ["st"], "device": [], "states": 312,
            "depth": 10, "steps_taken": 900, "seconds": 0.1, "memory": 0, "renamings": 2, "violation": None, "complete": False,
            "limit": limit}, "")
    assert f"incomplete: the exploration reached its limit of {limit} ({means})" in capsys.readouterr().out


def test_the_lines_and_cores_of_a_path_have_their_names_in_the_script() -> None:
    steps: list[dict[str, Any]] = [{"access": 0, "core": 1, "line": 2, "request": "LD"}, {"takes": 0, "line": 2},
                                   {"access": 1, "core": 0, "line": 1}, {"access": 2, "core": 1, "line": 2}]
    played = Candidate((Played(2, 0, "ld", 0x10008, 8, 0), Played(1, 1, "st", 0x10040, 8, 0)))
    assert names(steps, played, 1 << 22) == ["line 2 is A@n0 (0x10000)", "line 1 is B@n0 (0x10040)", "core 1 is c0", "core 0 is c1"]
