# SPDX-License-Identifier: BSD-3-Clause
"""`moscope bench instructions`: profiles are read as callgrind writes them, and the figures stay as recorded."""

import dataclasses
import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import jsonio
from moscope.bench import callgrind, instructions
from moscope.cli import Shared
from moscope.errors import UserError

Moscope = Callable[..., subprocess.CompletedProcess[str]]
RECORDED = Path(__file__).with_name("instructions.json")
TOLERANCE = 0.05  # a change beyond it is recorded by hand, with the change that explains it

PROFILE = """\
positions: line
events: Ir

ob=(1) /usr/lib/libmoscope_engine.so
fl=(1) ???
fn=(1) moscope::EventQueue::run_before(long)
0 100
+3 20
cob=(2) /usr/bin/python3
cfn=(2) moscope::ruby::Router::wake(long)
calls=7 0
* 5000
fn=(2)
0 900

ob=(2)
fn=(3) _PyEval_EvalFrameDefault
12 4000
"""


def test_a_profile_has_own_instructions_and_calls_without_the_interpreter() -> None:
    profile = callgrind.parse(PROFILE)
    assert profile.own == Counter({"moscope::EventQueue::run_before(long)": 120, "moscope::ruby::Router::wake(long)": 900})
    assert profile.calls == Counter({("moscope::EventQueue::run_before(long)", "moscope::ruby::Router::wake(long)"): 7})


def test_a_row_is_the_difference_of_two_lengths_for_each_unit() -> None:
    short = callgrind.parse(PROFILE)
    long = callgrind.Profile(Counter({k: 3 * v for k, v in short.own.items()}), Counter({k: 3 * v for k, v in short.calls.items()}))
    row = instructions.row("dram_far", short, long, units=10)
    assert row["instructions"] == pytest.approx(2 * 1020 / 10) == sum(row["parts"].values())
    assert row["wake_ups"] == pytest.approx(1.4)
    assert row["parts"]["event queue"] == 24 and row["parts"]["crossbar and network"] == 180


def test_a_window_is_counted_without_and_with_the_instructions_in_spin_loops() -> None:
    row = instructions.window_row(callgrind.parse(PROFILE), units=100, spun=300, guest={"kernel": "1f", "programs": "2e"})
    assert row["instructions"] == 1020 / 100 and row["with_spinning"] == 1020 / 400
    jsonio.validate({"schema": instructions.SCHEMA, "machine": "opteron48", "protocol": "MOESI_HTAssist", "rows": [row]})


def check(moscope: Moscope, loads: list[str]) -> None:
    """Skips a workload if the recorded figure is another guest's, for example because the distribution has updated its kernel."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    got = moscope("bench", "instructions", "--json", *(f"--load={name}" for name in loads), timeout=900)
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    jsonio.validate(document)
    for row in document["rows"]:
        if (guest := row.get("guest")) != recorded["guest"].get(row["name"]):
            pytest.skip(f"{row['name']} is recorded for {recorded['guest'][row['name']]}, the guest here is {guest}")
        assert row["instructions"] == pytest.approx(recorded[row["name"]], rel=TOLERANCE), row["name"]


def test_instructions_of_hits_and_misses_are_as_recorded(moscope: Moscope) -> None:
    check(moscope, ["l1_hit", "l3_hit", "dram_far"])


@pytest.mark.long
def test_instructions_of_the_other_loads_are_as_recorded(moscope: Moscope) -> None:
    check(moscope, ["l2_hit", "tester"])


@pytest.mark.long
def test_instructions_of_a_window_of_exim_are_as_recorded(moscope: Moscope) -> None:
    check(moscope, ["exim_48"])


def test_the_window_of_exim_is_counted_only_when_chosen() -> None:
    shared = Shared(quiet=True)
    assert instructions.EXIM not in instructions.names(shared, [])
    assert instructions.names(shared, ["exim_48", "l1_hit"]) == ["l1_hit", "exim_48"]


def test_a_protocol_without_pure_hits_has_no_load_that_hits_the_l1(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = instructions.prepare(Shared(quiet=True))
    machines = [machine | {"pure_hits": []} for machine in subject.interface["machines"]]
    without = dataclasses.replace(subject, interface=subject.interface | {"machines": machines})
    monkeypatch.setattr(instructions, "prepare", lambda shared: without)
    assert "l2_hit" in instructions.names(Shared(quiet=True), [])
    with pytest.raises(UserError, match="--load: l1_hit: expected one of l2_hit"):
        instructions.names(Shared(quiet=True), ["l1_hit"])


def test_what_the_user_has_to_change_is_not_called_a_bug_of_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = "==7== Callgrind\nTraceback (most recent call last):\nmoscope.errors.UserError: bench: another protocol\n==7== Events : Ir\n"
    monkeypatch.setattr(callgrind.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, "", stderr))
    monkeypatch.setattr(callgrind, "missing_valgrind", list)
    with pytest.raises(UserError, match="^bench: another protocol$"):
        callgrind.count("moscope.bench.counted", "{}", lambda text: None)


def test_a_load_that_does_not_exist_is_refused(moscope: Moscope) -> None:
    got = moscope("bench", "instructions", "--load", "l4_hit")
    assert got.returncode == 2 and "--load: l4_hit: expected one of l1_hit" in got.stderr
