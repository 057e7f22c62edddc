# SPDX-License-Identifier: BSD-3-Clause
"""Finished points on disk: what counts as finished, what becomes of the rest, and the tables made of them."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from moscope.errors import UserError
from moscope.sweeps import axes, jobs, results, snakemake, workflow
from moscope.sweeps import points as planning
from moscope.sweeps.jobs.base import Planned
from moscope.sweeps.points import Point
from moscope.sweeps.spec import Spec
from moscope.sweeps.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store(tmp_path / "out")
    found.open()
    return found


def finish(store: Store, digest: str, **figures: object) -> None:
    with store.new_point(digest) as folder:
        (folder / "result.json").write_text(json.dumps({"figures": figures, "seconds": 1.0}))


@pytest.mark.parametrize("left", ["", '{"figures": {', None])
def test_a_point_whose_result_cannot_be_read_is_not_finished_and_is_replaced(store: Store, left: str | None) -> None:
    store.point("d").mkdir()
    (store.point("d") / "point.json").write_text("{}")
    if left is not None:
        (store.point("d") / "result.json").write_text(left)
    assert not Store(store.root).done("d")
    finish(store, "d", cycles=7)
    assert store.done("d") and [p.name for p in store.point("d").iterdir()] == ["result.json"]
    assert not list((store.root / "work").iterdir())


def test_of_two_processes_that_make_a_point_the_first_ones_result_stays(store: Store) -> None:
    finish(store, "d", cycles=7)
    finish(store, "d", cycles=8)
    found = store.result("d")
    assert found is not None and found["figures"] == {"cycles": 7}


def test_a_point_that_an_earlier_job_finishes_meanwhile_is_kept(store: Store, tmp_path: Path) -> None:
    """As when the process of a killed start, or its job on a cluster, runs to its end: Snakemake deletes outputs that it finds
    unexpectedly."""
    script = tmp_path / "worker.py"
    script.write_text("import pathlib, sys\nassert pathlib.Path('points/d/result.json').exists()\n"
                      "pathlib.Path('marks', sys.argv[2]).touch()\n")
    worker = shlex.join([sys.executable, str(script)])
    store.config.write_text(json.dumps({"single": ["d"], "batches": {}, "boots": {},
                                        "points": {"d": {"boot": None, "memory_mb": 1, "threads": 2}}, "worker": worker,
                                        "runtime_minutes": 1}))
    (store.root / "workflow" / "Snakefile").write_text(workflow.SNAKEFILE.read_text())
    finish(store, "d", cycles=7)
    with (store.root / ".lock").open("w") as lock:
        code = snakemake.run(store.root, snakemake.arguments(store.root, "local", 1, 1000), print, lambda: None, lock.fileno())
    assert (code, store.done("d")) == (0, True), snakemake.last_words(store.root)


def test_a_point_is_not_made_from_files_that_changed_after_the_sweep_began(store: Store, root: Path, tmp_path: Path,
                                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    machine = tmp_path / "mine.py"
    machine.write_text((root / "configs" / "small.py").read_text())
    described = Spec("trace", {"machine": "mine.py", "script": "c0 ld A@n1"}, {"seed": [1]})
    config = workflow.write(store, "trace", planning.plan(described, print), 1)
    machine.write_text(machine.read_text().replace('"32KiB"', '"64KiB"'))
    (digest,) = config["points"]
    got = subprocess.run([*shlex.split(config["worker"]), "point", digest], cwd=store.root, capture_output=True, text=True, check=False)
    assert got.returncode == 2 and "has changed since the sweep began: expected the same command again" in got.stderr
    assert not store.done(digest)


def test_a_second_sweep_of_a_process_reads_the_machine_again(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    machine = tmp_path / "mine.py"
    machine.write_text((root / "configs" / "small.py").read_text())
    described = Spec("trace", {"machine": "mine.py", "script": "c0 ld A@n1"}, {"seed": [1]})
    before = {p.digest for p in planning.plan(described, print)}
    machine.write_text(machine.read_text().replace('"32KiB"', '"64KiB"'))
    jobs.look_again()
    assert before != {p.digest for p in planning.plan(described, print)}


def test_a_short_point_whose_result_is_lost_is_made_again(store: Store) -> None:
    described = Spec("trace", {"machine": "small", "script": "c0 ld A@n1"}, {"seed": [1]})
    found = planning.plan(described, print)
    (batch,) = workflow.write(store, "trace", found, 1)["batches"]
    made = store.root / "batches" / f"{batch}.json"
    made.parent.mkdir(exist_ok=True)
    made.touch()
    assert list(workflow.write(store, "trace", found, 1)["batches"]) == [batch] and not made.exists()


def test_files_left_by_a_killed_process_with_the_same_number_do_no_harm(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), store.new_point("d") as left:
        kept = left.with_name("kept")
        left.rename(kept)
        raise KeyboardInterrupt
    kept.rename(left)
    finish(store, "d", cycles=7)
    assert store.done("d")


def planned(digest: str, **params: str | int | float | bool) -> Point:
    point = Point(params, Planned({}, "run"))
    object.__setattr__(point, "planned", type("Fixed", (), {"digest": digest}))
    return point


def test_a_figure_that_differs_from_the_parameter_of_its_name_has_a_column_of_its_own(store: Store) -> None:
    finish(store, "a", windows=10, cores=4)
    finish(store, "b", windows=24, cores=8)
    spec = Spec("run", {"windows": 24}, {"cores": [4, 8]})
    rows = results.table(spec, [planned("a", windows=24, cores=4), planned("b", windows=24, cores=8)], store).to_pylist()
    assert [(r["windows"], r["measured_windows"], "measured_cores" in r) for r in rows] == [(24, 10, False), (24, 24, False)]


def test_an_axis_of_numbers_and_texts_is_text_in_the_table_of_lines(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(store, "a")
    finish(store, "b")
    monkeypatch.setattr(jobs.find("run"), "lines", lambda _: pa.table({"name": ["x", "y"]}))
    found = results.lines(Spec("run", {}, {"k": [1, "two"]}), [planned("a", k=1), planned("b", k="two")], store)
    assert found is not None and found["k"].to_pylist() == ["1", "1", "two", "two"]


def test_an_exclusion_applies_to_switches_that_the_command_line_sets() -> None:
    spec = Spec("trace", {}, {"probe_filter.enabled": ["true", "false"], "seed": [1, 2]}, [],
                [{"probe_filter.enabled": [False], "seed": [2]}])
    assert [(p["probe_filter.enabled"], p["seed"]) for p in axes.points(spec)] == [("true", 1), ("true", 2), ("false", 1)]


def test_the_folder_of_a_run_is_refused_for_a_sweep(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in (".moscope-output", "run.json"):
        (folder / name).touch()
    with pytest.raises(UserError, match=r"has run\.json of another command"):
        Store(folder).open()


def test_what_a_running_job_of_an_earlier_start_holds_is_not_cleaned(store: Store) -> None:
    for name in ("held", "left"):
        (store.root / "work" / f"{name}.host.1").mkdir()
    with store.locked("held"):
        (store.root / "locks" / "left").touch()
        store.clean()
    assert [p.name for p in (store.root / "work").iterdir()] == ["held.host.1"]
    assert [p.name for p in (store.root / "locks").iterdir()] == ["held"]


def test_an_outdated_table_of_lines_is_removed(store: Store) -> None:
    (store.root / results.LINES).touch()
    results.write(Spec("run", {}, {"k": [1]}), [planned("missing", k=1)], store)
    assert not (store.root / results.LINES).exists()
