# SPDX-License-Identifier: BSD-3-Clause
"""Points side by side: how many, in which order, and what is left when one fails or all are interrupted."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest

from moscope import errors
from moscope.errors import GuestDied, SimulatorBug, TimeEnded, UserError
from moscope.gem5.binary import Gem5Died
from moscope.protocol.check import Broken
from moscope.runs import job, pool
from moscope.runs.options import Plan
from moscope.schema.constants import FS_PER_MS
from moscope.schema.errors import ConfigError

MakePlan = Callable[..., Plan]

# What a point's process does, as Python, by core count.
DONE = "print(json.dumps({'progress': {'phase': 'x', 'simulated_s': 1, 'mips': 2, 'part': 0.5}})); time.sleep(0.1); " \
       "print(json.dumps({'done': {'cores': cores}}))"
DIED = "print(json.dumps({'error': 'GuestDied', 'text': 'kernel panic'})); sys.exit(4)"
CRASHED = "print('a trace', file=sys.stderr); os.abort()"
STUCK = "time.sleep(600)"


class Runner:
    """Notes what runs at the same time."""

    def __init__(self, plan: Plan, does: Callable[[int], str]) -> None:
        self.jobs = [job.job(plan, p, Path("nowhere")) for p in plan.points]
        self.does = does
        self.started: list[int] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.most = 0
        self.finished: list[int] = []

    def start(self, wanted: job.Job, stderr: IO[bytes]) -> "subprocess.Popen[bytes]":
        n = wanted.point.cores
        code = f"import json, os, sys, time; cores = {n}; {self.does(n)}"
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=stderr)
        self.started.append(n)
        self.processes.append(process)
        self.most = max(self.most, sum(p.poll() is None for p in self.processes))
        return process

    def run(self, progress: Callable[..., None] = lambda *_: None, **more: Any) -> list[Any]:
        def finished(which: job.Job, point: dict[str, Any]) -> None:
            assert point["cores"] == which.point.cores
            self.finished.append(which.point.cores)

        more = {"processors": 2, "available": lambda: 1 << 60, **more}
        return pool.run(self.jobs, progress, finished, self.start, **more)


def test_the_largest_go_first_and_no_more_at_once_than_processors(plan: MakePlan) -> None:
    runner = Runner(plan(1, 12, 24, 48), lambda n: DONE)
    assert runner.run() == []
    assert runner.started == [48, 24, 12, 1] and runner.most == 2
    assert sorted(runner.finished) == [1, 12, 24, 48]


def test_where_memory_is_short_one_runs_at_a_time(plan: MakePlan) -> None:
    runner = Runner(plan(1, 2, 4), lambda n: DONE)
    assert runner.run(available=lambda: 1 << 20) == []
    assert runner.most == 1 and len(runner.finished) == 3


def test_a_point_that_fails_lets_the_others_finish(plan: MakePlan) -> None:
    runner = Runner(plan(1, 2, 4), lambda n: DIED if n == 2 else DONE)
    failed = runner.run()
    assert [type(e) for e in failed] == [GuestDied] and "fake-distro-2: kernel panic" in str(failed[0])
    assert sorted(runner.finished) == [1, 4]
    assert errors.failures(failed) == {"failed": [
        {"point": "fake-distro-2", "kind": "GuestDied", "error": "fake-distro-2: kernel panic", "exit_code": 4}]}


def test_a_process_that_crashes_is_a_simulator_bug_with_its_last_words(plan: MakePlan) -> None:
    failed = Runner(plan(1), lambda n: CRASHED).run()
    assert [type(e) for e in failed] == [SimulatorBug] and "a trace" in str(failed[0])


def test_a_process_that_is_killed_is_no_simulator_bug(plan: MakePlan) -> None:
    (failed,) = Runner(plan(1), lambda _: "os.kill(os.getpid(), 9)").run()
    assert type(failed) is UserError and str(failed).startswith("fake-distro-1: its process: was killed by signal 9 (SIGKILL)")


def test_a_process_that_ends_before_it_has_read_a_long_job_is_a_simulator_bug(plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(1, programs={f"work/{n}": Path("/somewhere/file") for n in range(20_000)})
    wanted = job.job(made, made.points[0], Path("nowhere"))
    assert len(wanted.text()) > 1 << 17  # more than a pipe holds
    monkeypatch.setattr(pool.sys, "executable", "/bin/false")
    (error,) = pool.run([wanted], lambda *_: None, lambda *_: None)
    assert isinstance(error, SimulatorBug) and "its process ended with 1" in str(error)


def test_an_error_of_a_class_derived_from_user_error_is_a_user_error(plan: MakePlan, tmp_path: Path) -> None:
    made = plan(1, sets=["core.clock=fast"])
    (error,) = pool.run([job.job(made, made.points[0], tmp_path / "point")], lambda *_: None, lambda *_: None)
    assert type(error) is UserError and "core.clock" in str(error)


def test_each_error_has_the_nearest_kind_that_it_derives_from() -> None:
    found = [errors.kind_of(e) for e in (ConfigError("a", "b"), UserError("x"), Broken("x", {}), Gem5Died("x"), errors.MoscopeError("x"))]
    assert found == ["UserError", "UserError", "ProtocolError", "SimulatorBug", "SimulatorBug"]


def test_a_point_that_reaches_the_end_of_simulated_time_is_reported_as_stopped(plan: MakePlan) -> None:
    said = f"print(json.dumps({{'error': '{errors.kind_of(TimeEnded('late'))}', 'text': 'late'}})); sys.exit(4)"
    (failed,) = Runner(plan(1), lambda _: said).run()
    assert failed.report() == "moscope: the guest was stopped: fake-distro-1: late" and failed.exit_code == 4
    (again,) = errors.of_failures(errors.failures([failed]))
    assert type(again) is TimeEnded


def test_an_interruption_ends_all_processes(plan: MakePlan) -> None:
    runner = Runner(plan(1, 2), lambda n: STUCK)

    def interrupted(*_: Any) -> None:
        if len(runner.started) == 2:
            raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        runner.run(interrupted)
    assert all(p.poll() is not None for p in runner.processes) and time.monotonic() - begun < 60


def test_a_job_survives_conversion_to_text_and_back(plan: MakePlan) -> None:
    made = job.job(plan(2), plan(2).points[0], Path("somewhere"))
    assert job.parse(made.text()) == made
    assert json.loads(made.text())["point"]["cores"] == 2


def test_long_windows_on_many_cores_need_more_memory_than_short_ones(plan: MakePlan) -> None:
    (one,) = [job.job(plan, p, Path("nowhere")) for plan in [plan(48)] for p in plan.points]
    long = replace(one, point=replace(one.point, windows=12, window=3 * FS_PER_MS))
    # 12 windows of 3 ms with exim on 48 cores took some 10 GB.
    assert 8 << 30 < pool.wanted_bytes(long) < 14 << 30
    assert pool.wanted_bytes(replace(long, attribution=False)) < 3 << 30
    assert pool.wanted_bytes(long, 10 << 20) == pytest.approx(pool.machine_bytes(48) + 36 * (10 << 20) * pool.SPARE)
