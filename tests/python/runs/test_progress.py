# SPDX-License-Identifier: BSD-3-Clause
"""What a run reports as it proceeds and when it is interrupted, with and without --json."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from moscope.cli import Shared
from moscope.errors import SimulatorBug
from moscope.runs import directory, inputs, main, pool
from moscope.runs.guest import Progress
from moscope.runs.options import Plan

MakePlan = Callable[..., Plan]


@pytest.fixture
def run(plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs two points without their processes; each reports progress and finishes. `building`, `measured` and `reporting` are called
    meanwhile; an interruption may come there."""

    def go(shared: Shared, building: Callable[[], None] = lambda: None, measured: Callable[[], None] = lambda: None,
           reporting: Callable[[], None] = lambda: None) -> main.Outcome:

        def points(jobs: list[Any], progress: Callable[..., None], finished: Callable[..., None]) -> list[Any]:
            for job in jobs:
                progress(job, None)
                progress(job, Progress("warm-up", 0.1, 0.0, 0.0))
                finished(job, {"kernel": "distro", "kernel_image": {}, "throughput_per_s": 5, "ops": 5, "operation": "turns", "host_s": 7})
                measured()
            return []

        def of(point: Any) -> Any:
            building()
            return SimpleNamespace(digests=lambda: {})

        def report(*_: Any) -> bool:
            reporting()
            return True

        monkeypatch.setattr(inputs, "Gatherer", lambda *_: SimpleNamespace(of=of))
        monkeypatch.setattr(directory, "outdated", lambda *_: {})
        monkeypatch.setattr(pool, "run", points)
        monkeypatch.setattr(main, "report", report)
        return main.run(plan(1, 2), shared)

    return go


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("json", [False, True])
def test_progress_goes_to_stderr_beside_a_json_object_too(run: Callable[..., Any], capfd: pytest.CaptureFixture[str], json: bool) -> None:
    assert run(Shared(json=json)).document["ok"]
    out, err = capfd.readouterr()
    assert not out and err.splitlines() == [
        "fake-distro-1: warm-up, 0.100000 s simulated", "fake-distro-1 finished (1 of 2): 5 turns per second, 0:07",
        "fake-distro-2: warm-up, 0.100000 s simulated", "fake-distro-2 finished (2 of 2): 5 turns per second, 0:07"]


@pytest.mark.parametrize("json", [False, True])
def test_quiet_prints_no_progress_with_and_without_json(run: Callable[..., Any], capfd: pytest.CaptureFixture[str], json: bool) -> None:
    run(Shared(json=json, quiet=True))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("quiet", [False, True])
def test_a_repeated_run_shows_the_notes_of_its_finished_points(run: Callable[..., Any], plan: MakePlan, capfd: pytest.CaptureFixture[str],
                                                               quiet: bool) -> None:
    directory.open_for(plan(1, 2))
    folder = directory.point_folder(plan().out, plan(1, 2).points[1])
    folder.mkdir(parents=True)
    (folder / "point.json").write_text(json.dumps({"kernel": "distro", "kernel_image": {}, "notes": ["f was not called"]}))
    run(Shared(quiet=quiet))
    said = capfd.readouterr().err.splitlines()
    assert said[1:2] == ([] if quiet else ["fake-distro-2: f was not called"]) and (not said) == quiet


def test_a_report_that_fails_is_one_more_failure_and_the_points_stay(run: Callable[..., Any]) -> None:
    def fails() -> None:
        raise RuntimeError("no figure")

    outcome = run(Shared(), reporting=fails)
    assert len(outcome.document["points"]) == 2 and [type(e) for e in outcome.failed] == [SimulatorBug] and outcome.exit_code == 5


@pytest.mark.parametrize(("when", "kept"), [({"building": interrupted}, 0), ({"measured": interrupted}, 1),
                                            ({"reporting": interrupted}, 2)])
def test_an_interrupted_run_tells_what_is_kept_wherever_it_was(run: Callable[..., Any], plan: MakePlan, capfd: pytest.CaptureFixture[str],
                                                               when: dict[str, Any], kept: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Shared(), **when)
    assert capfd.readouterr().err.splitlines()[-1] == (
        f"{kept} of 2 points are finished and kept in {plan().out}; repeat the command to resume")
