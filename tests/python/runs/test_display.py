# SPDX-License-Identifier: BSD-3-Clause
"""Progress where there is no terminal: a line at each phase and now and then within one, with speed and time left. The table of
results."""

from types import SimpleNamespace
from typing import Any

import pytest

from moscope.runs import display, table
from moscope.runs.guest import Progress
from moscope.schema.enumerations import TIME_KIND


def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, quiet: bool = False) -> list[str]:
    now = [100.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    job: Any = SimpleNamespace(point=SimpleNamespace(name="exim-distro-48"), called="exim-distro-48")
    with display.Display(quiet, 1, 0) as shown:
        shown.live = False
        shown.show(job, None)
        for seconds, progress in ((0, Progress("boot", 0.1, 0.0, 0.0)), (10, Progress("boot", 0.2, 90.0, 0.0)),
                                  (35, Progress("boot", 0.5, 95.0, 0.0)),
                                  (40, Progress("window 1 of 2", 0.6, 4.5, 0.25)), (60, Progress("window 2 of 2", 0.7, 4.5, 0.5)),
                                  (61, Progress("window 2 of 2", 0.7, 4.5, 0.5))):
            now[0] = 100.0 + seconds
            shown.show(job, progress)
    return capsys.readouterr().err.splitlines()


def test_a_line_has_speed_and_time_left_as_soon_as_they_are_known(capsys: pytest.CaptureFixture[str],
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(capsys, monkeypatch) == [
        "exim-distro-48: boot, 0.100000 s simulated", "exim-distro-48: boot, 0.500000 s simulated, 95.0 MIPS",
        "exim-distro-48: window 1 of 2, 0.600000 s simulated, 4.5 MIPS",
        "exim-distro-48: window 2 of 2, 0.700000 s simulated, 4.5 MIPS, 0:40 left"]


def test_quiet_prints_no_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert not said(capsys, monkeypatch, quiet=True)


POINT = {"workload": "mine", "operation": "operations", "kernel": "distro", "cores": 4, "ops": 0, "throughput_per_s": 0.0,
         "stderr_per_s": 0.0, "cycles": {**dict.fromkeys(TIME_KIND.names, 0.0), "busy": 1.0}, "spin_cycles": 0.0, "kernel_share": 0.1,
         "bottleneck": "computing", "top_names": [], "host_s": 61}


def test_a_program_that_counts_no_operations_has_no_rate(capsys: pytest.CaptureFixture[str]) -> None:
    table.show({"machine": "opteron48", "points": [POINT]})
    assert capsys.readouterr().out.count(" - ") == 2
    job: Any = SimpleNamespace(point=SimpleNamespace(name="mine-distro-4"), called="mine-distro-4")
    display.Display(False, 1, 0).finished(job, POINT)
    assert capsys.readouterr().err == "mine-distro-4 finished (1 of 1): 1:01\n"


@pytest.mark.parametrize(("changed", "says"), [({}, False), ({"ops": 9}, True), ({"ops": 9, "stderr_per_s": None}, False)])
def test_the_table_says_that_its_errors_are_standard_errors(
        capsys: pytest.CaptureFixture[str], changed: dict[str, Any], says: bool) -> None:
    table.show({"machine": "opteron48", "points": [POINT | changed]})
    assert ("\n+-: the standard error\n" in capsys.readouterr().out) == says


def test_a_throughput_that_is_not_steady_is_named_below_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    unsteady = {**POINT, "windows": [{}] * 24, "trend": {"windows": 10, "before": 880.0, "after": 118.0}}
    expected = "    throughput falls from 880 per second in the first 10 windows to 118 in the last 14 windows: "
    for point, times in ((POINT, 0), (unsteady, 1)):
        table.show({"machine": "opteron48", "points": [point]})
        assert capsys.readouterr().out.count(expected) == times


@pytest.mark.parametrize(("reached", "says"), [(0.429, "42.9 %, above the wanted 10 % after"),
                                               (0.08, "8.0 %: not known to be below 10 % after"),
                                               (None, "unknown: not known to be below 10 % after")])
def test_an_error_above_the_wanted_one_is_said_to_be(reached: float | None, says: str) -> None:
    found = {"wanted": 0.1, "reached": reached, "met": False, "windows": 50, "limit": 50, "why": "expected a higher --windows"}
    assert table.until_error(found) == f"standard error of throughput {says} 50 windows of at most 50: expected a higher --windows"


def test_notes_of_a_point_are_shown_unless_quiet_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    job: Any = SimpleNamespace(point=SimpleNamespace(name="mine-distro-4"), called="mine-distro-4")
    for quiet, wanted in ((False, ["mine-distro-4: f was not called"]), (True, [])):
        display.Display(quiet, 1, 0).finished(job, {**POINT, "notes": ["f was not called"]})
        assert capsys.readouterr().err.splitlines()[1:] == wanted


NAME: dict[str, Any] = {"name": "page cache", "writers": ["server:put"],
                        "waiters": ["python3 (no symbols)", "python3:eval", "libc.so.6:strlen"]}


WRITERS, WAITERS = "written by        server:put", "waits in          python3 (no symbols), python3:eval"  # without source lines


def place(share: float, line: int = 7) -> dict[str, Any]:
    return {"function": "libc.so.6:strlen", "source": f"strlen.S:{line}", "inlined": [], "share": share}


def test_functions_stand_in_for_source_lines_with_little_of_the_waiting() -> None:
    assert table.places(NAME | {"waited_at": [place(0.003)]}) == [WRITERS, WAITERS]
    assert table.places(NAME | {"waited_at": [place(0.6), place(0.3, 8), place(0.1, 9)]}) == [
        WRITERS, "waits at    60 %  libc.so.6:strlen  strlen.S:7", "waits at    30 %  libc.so.6:strlen  strlen.S:8"]


def test_places_with_the_same_text_are_one_row() -> None:
    """Two lines of a library's function that was inlined at one line of the program."""
    inlined = {"function": "rs:work", "inlined": ["read called at main.rs:27"]}
    waits = [inlined | {"source": f"library/std/src/rwlock.rs:{line}", "share": share} for line, share in ((5, 0.4), (9, 0.25))]
    other = {"function": "rs:work", "source": "main.rs:30", "inlined": [], "share": 0.35}
    assert table.places(NAME | {"waited_at": [waits[0], other, waits[1]]}) == [
        WRITERS, "waits at    65 %  rs:work  main.rs:27, in read", "waits at    35 %  rs:work  main.rs:30"]


def test_code_without_source_lines_is_listed_by_function() -> None:
    unknown = {"function": "metis:map", "source": "", "inlined": [], "share": 0.55}
    listed = NAME | {"waited_at": [unknown, place(0.1)], "written_at": [place(0.9)]}
    waits = ["waits at    55 %  metis:map", "waits at    10 %  libc.so.6:strlen  strlen.S:7"]
    assert table.places(listed | {"after_writes": 0.3}) == ["written at  90 %  libc.so.6:strlen  strlen.S:7", *waits]
    assert table.places(listed | {"after_writes": 0.1}) == waits, "hardly any of the waiting is after a write"


def test_source_lines_with_small_shares_are_left_out() -> None:
    assert table.places(NAME | {"written_at": [place(0.9), place(0.01, 8)], "called_at": [place(0.02)]}) == [
        "written at  90 %  libc.so.6:strlen  strlen.S:7", WAITERS]


def test_without_source_lines_the_functions_that_write_and_wait_are_listed() -> None:
    assert table.places(NAME) == [WRITERS, WAITERS]
    assert table.places(NAME | {"after_writes": 0.1, "called_at": [place(0.9)]}) == [
        WAITERS, "called at   90 %  libc.so.6:strlen  strlen.S:7"]
    assert table.places(NAME | {"writers": [], "waiters": []}) == []


@pytest.mark.parametrize(("kind", "spin", "said"), [
    ("false_sharing", 0.0, " 55 %  stats.lock  false sharing"), ("upgrade", 0.0, " 55 %  stats.lock  upgrades"),
    ("true_sharing", 0.11, " 55 %  stats.lock  true sharing, 20 % spinning")])
def test_a_name_has_its_class_in_the_words_of_the_sentence_on_its_point(kind: str, spin: float, said: str) -> None:
    assert table.waiting({"name": "stats.lock", "class": kind, "wait_share": 0.55, "spin_share": spin}) == said
