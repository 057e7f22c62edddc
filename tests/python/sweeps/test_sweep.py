# SPDX-License-Identifier: BSD-3-Clause
"""`moscope sweep` from a file to its tables, on traces: they take a fraction of a second each."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from pyarrow import parquet

from moscope import jsonio, paths
from moscope.cli import Shared
from moscope.errors import MoscopeError, TimeEnded, UserError, kind_of
from moscope.gem5.binary import Gem5Died
from moscope.schema.errors import ConfigError
from moscope.sweeps import display, main, spec, worker
from moscope.sweeps.jobs import check

Moscope = Callable[..., CompletedProcess[str]]
SWEEP = """job = "trace"
fixed.script = "c0 ld A@n1; c2 st A@n1"
fixed.machine = "small"
[axes]
links.clock = ["1GHz", "2GHz"]
probe_filter.enabled = [true, false]
"""


def swept(moscope: Moscope, folder: Path, text: str, *options: str, code: int = 0) -> dict[str, Any]:
    (folder / "s.toml").write_text(text)
    got = moscope("sweep", "s.toml", "--json", "--out", "out", *options, timeout=300)
    assert got.returncode == code, got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    return document


def rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet.read_table(document["table"]).to_pylist()
    return found


def made(folder: Path) -> dict[str, int]:
    """When the result of each point was written."""
    return {p.parent.name: p.stat().st_mtime_ns for p in folder.glob("out/points/*/result.json")}


def all_done(root: Path, *_: Any) -> int:
    """In place of Snakemake: all points of the workflow have a result."""
    for digest in json.loads((root / "workflow" / "config.json").read_text())["points"]:
        (root / "points" / digest).mkdir(exist_ok=True)
        (root / "points" / digest / "result.json").write_text(json.dumps({"figures": {"total_cycles": 7.0}, "seconds": 0.1}))
    return 0


def test_a_sweep_has_a_row_for_each_point_with_parameters_and_figures(moscope: Moscope, tmp_path: Path) -> None:
    document = swept(moscope, tmp_path, SWEEP)
    assert (document["points"], document["done"], document["failed"]) == (4, 4, [])
    found = rows(document)
    assert [(r["links.clock"], r["probe_filter.enabled"]) for r in found] == [(c, on) for c in ("1GHz", "2GHz") for on in (True, False)]
    alone = moscope("trace", "c0 ld A@n1; c2 st A@n1", "--machine", "small", "--set", "links.clock=2GHz", "--json")
    accesses = json.loads(alone.stdout)["accesses"]
    assert [found[2]["access1_cycles"], found[2]["access2_cycles"]] == [a["latency_cycles"] for a in accesses]


def test_another_value_of_an_axis_runs_only_its_own_points(moscope: Moscope, tmp_path: Path) -> None:
    swept(moscope, tmp_path, SWEEP)
    before = made(tmp_path)
    document = swept(moscope, tmp_path, SWEEP.replace('"2GHz"', '"2GHz", "2.4GHz"'))
    after = made(tmp_path)
    assert (document["points"], len(before), len(after)) == (6, 4, 6)
    assert {name: after[name] for name in before} == before


def test_points_made_by_different_versions_of_the_code_are_reported(moscope: Moscope, tmp_path: Path) -> None:
    swept(moscope, tmp_path, SWEEP)
    kept = next(tmp_path.glob("out/points/*/result.json"))
    document = json.loads(kept.read_text())
    kept.write_text(json.dumps({**document, "code": "of an earlier version"}))
    got = moscope("sweep", "s.toml", "--out", "out", timeout=300)
    assert got.returncode == 0 and "points are of 2 versions of moscope's Python code" in got.stderr


def test_points_are_a_table_on_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(main.snakemake, "run", all_done)
    monkeypatch.setattr(main.report, "write", lambda *_: {})
    described = spec.Spec("trace", {"machine": "small", "script": "c0 ld A@n1"}, {"seed": list(range(22))})
    assert display.run(described, Shared(out=tmp_path / "out", quiet=True)) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in re.split("[│┃|]", line)[1:-1]] for line in lines]
    assert ["seed", "status", "total_cycles", "seconds"] in cells and ["19", "done", "7", "0.100"] in cells
    assert ["20", "done", "7", "0.100"] not in cells and "and 2 points more" in lines


def test_a_dry_run_counts_points_and_runs_none(moscope: Moscope, tmp_path: Path) -> None:
    document = swept(moscope, tmp_path, SWEEP, "--dry-run")
    assert (document["points"], document["done"]) == (4, 0)
    assert not (tmp_path / "out").exists()


def test_a_failing_point_is_reported_with_its_command_and_the_others_go_on(moscope: Moscope, tmp_path: Path) -> None:
    # MSI has no uncached load: found when the point runs.
    text = SWEEP.replace("c2 st A@n1", "c2 ldu A@n1").replace("probe_filter.enabled = [true, false]",
                                                              'protocol = ["MSI", "MOESI_HTAssist"]')
    document = swept(moscope, tmp_path, text, "--plot", "totl ~ links.clock", code=2)
    assert (document["points"], document["done"], len(document["failed"])) == (4, 2, 2)
    # A figure that no point has is noticed at the end; the results are complete all the same.
    assert json.loads((tmp_path / "out/sweep.json").read_text())["failed"] == document["failed"]
    assert "uncached load" in (tmp_path / "out/report.html").read_text()
    failure = document["failed"][0]
    assert failure["command"] == (f"{paths.root()}/moscope trace 'c0 ld A@n1; c2 ldu A@n1' --machine small --set links.clock=1GHz "
                                  "--set protocol=MSI")
    assert [(r["status"], r["error"] is None) for r in rows(document)] == [("failed", False), ("done", True)] * 2


def test_points_whose_worker_ends_without_a_word_have_failed_and_the_others_are_in_the_table(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = spec.Spec("trace", {"machine": "small", "script": "c0 ld A@n1"}, {"seed": [1, 2]})

    def one_point_alone(root: Path, *_: Any) -> int:
        config = json.loads((root / "workflow" / "config.json").read_text())
        folder = root / "points" / next(iter(config["points"]))
        folder.mkdir()
        (folder / "result.json").write_text(json.dumps({"figures": {"total_cycles": 7.0}, "seconds": 0.1}))
        return 1

    monkeypatch.setattr(main.snakemake, "run", one_point_alone)
    monkeypatch.setattr(main.report, "write", lambda *_: {})
    outcome = main.run(described, tmp_path / "out")
    assert (outcome.exit_code, outcome.document["done"], len(outcome.failed)) == (5, 1, 1)
    assert [(r["status"], r["total_cycles"]) for r in rows(outcome.document)] == [("done", 7.0), ("failed", None)]


KILLED = "Command 'set -euo pipefail;  exec env python -P -m moscope.sweeps.worker batch {batch}' {end}.\n"


@pytest.mark.parametrize("said, code, error", [
    (KILLED.replace("{end}", "died with <Signals.SIGKILL: 9>"), 1, "its process: was killed by signal 9 (SIGKILL), probably by a host "),
    (KILLED.replace("{end}", "returned non-zero exit status 130"), 1,
     "its process: was killed by signal 15 (SIGTERM), probably by a shutdown"),
    (KILLED.replace("{end}", "died with <Signals.SIGSEGV: 11>"), 1, None),
    ("", -9, "Snakemake: was killed by signal 9 (SIGKILL)"),
])
def test_only_processes_that_end_by_themselves_are_simulator_bugs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int,
                                                                  error: str | None) -> None:
    def ends(root: Path, *_: Any) -> int:
        batch, digests = next(iter(json.loads((root / "workflow" / "config.json").read_text())["batches"].items()))
        with (root / main.snakemake.LOG).open("a") as log:
            log.write(said.replace("{batch}", batch))
        (root / "points" / digests[0]).mkdir()
        (root / "points" / digests[0] / "result.json").write_text(json.dumps({"figures": {"total_cycles": 7.0}, "seconds": 0.1}))
        return code

    monkeypatch.setattr(main.snakemake, "run", ends)
    monkeypatch.setattr(main.report, "write", lambda *_: {})
    described = spec.Spec("trace", {"machine": "small", "script": "c0 ld A@n1"}, {"seed": list(range(5))})
    first = main.run(described, tmp_path / "out", at_once=1).failed[0]  # the other point of the batch
    assert (first["kind"], first["exit_code"]) == (("UserError", 2) if error else ("SimulatorBug", 5))
    assert first["error"].startswith(error or "its process ended without a result")


@pytest.mark.parametrize("error", [ConfigError("a", "b"), TimeEnded("late"), Gem5Died("x")], ids=lambda e: type(e).__name__)
def test_a_failed_point_of_a_sweep_has_the_kind_that_it_has_in_a_run(error: MoscopeError) -> None:
    assert worker.failure("0", "trace", {"machine": "small", "script": "c0 ld A@n1"}, error)["kind"] == kind_of(error)


def test_a_start_whose_only_process_is_killed_ends_without_a_simulator_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = spec.Spec("trace", {"machine": "small", "script": "c0 ld A@n1"}, {"seed": [1]})
    monkeypatch.setattr(main.snakemake, "run", lambda root, *_: (root / main.snakemake.LOG).touch() or -9)
    with pytest.raises(UserError, match=r"^Snakemake: was killed by signal 9 \(SIGKILL\), probably by a host that is out of memory: "):
        main.run(described, tmp_path / "out")


def test_a_point_that_the_cluster_does_not_take_has_failed_with_what_the_cluster_said(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = spec.Spec("trace", {"machine": "small", "script": "c0 ld A@n1"}, {"seed": [1]})
    reasons = ["of an earlier start", "CPU count per node can not be satisfied\nsbatch: error: Batch job submission failed: x"]

    def refuses(root: Path, *_: Any) -> int:
        with (root / main.snakemake.LOG).open("a") as log:
            log.write("Error in rule point:\n    message: SLURM sbatch failed. The error message was "
                      f"'sbatch: error: {reasons.pop(0)}'.\n")
        return 1

    monkeypatch.setattr(main.snakemake, "run", refuses)
    monkeypatch.setattr(main.report, "write", lambda *_: {})
    main.run(described, tmp_path / "out")
    (failed,) = main.run(described, tmp_path / "out").failed
    assert failed["exit_code"] == 2 and failed["error"].startswith(
        "--executor slurm: the cluster rejected the job: CPU count per node can not be satisfied; Batch job submission failed: "
        "x: expected")


@pytest.mark.parametrize("found, finding, code", [
    ({"violations": ["c0 read 7"]}, "1 violation: c0 read 7", 1),
    ({"violations": ["protocol error: stuck", "c0 read 7"], "protocol_error": "stuck"}, "protocol error: stuck", 3)])
def test_points_that_found_violations_have_results_and_make_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                         found: dict[str, Any], finding: str, code: int) -> None:
    described = spec.Spec("protocol check", {"machine": "small", "protocol": "MSI", "ops": 1000}, {"seed": [1, 2]})
    document = {**dict.fromkeys(("ops", "seconds", "reached", "declared", "checked_loads", "loads_per_second"), 1), "ok": False}

    def one_with_a_violation(root: Path, *_: Any) -> int:
        points = json.loads((root / "workflow" / "config.json").read_text())["points"]
        for digest, result in zip(points, ({"violations": []}, found), strict=True):
            monkeypatch.setattr(check.JOB, "run", lambda *_, r=result: {**document, **r})
            monkeypatch.setattr(worker.os, "chdir", lambda _: None)
            assert worker.Worker(root).point(digest) == 0
        return 0

    monkeypatch.setattr(main.snakemake, "run", one_with_a_violation)
    monkeypatch.setattr(main.report, "write", lambda *_: {})
    outcome = main.run(described, tmp_path / "out")
    jsonio.validate(outcome.document)
    assert (outcome.exit_code, outcome.document["done"], outcome.failed) == (code, 2, [])
    assert [(f["params"]["seed"], f["finding"], f["exit_code"]) for f in outcome.document["findings"]] == [(2, finding, code)]


def test_a_wrong_figure_is_found_before_anything_runs_where_points_are_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def described(*seeds: int) -> spec.Spec:
        return spec.Spec("trace", {"machine": "small", "script": "c0 ld A@n1"}, {"seed": list(seeds)})

    monkeypatch.setattr(main.snakemake, "run", all_done)
    monkeypatch.setattr(main.report, "write", lambda *_: {})
    main.run(described(1), tmp_path / "out")
    monkeypatch.setattr(main.snakemake, "run", lambda *_: pytest.fail("runs points"))
    with pytest.raises(UserError, match='^--plot: no figure called "totl": expected one of seconds, total_cycles '):
        main.run(described(1, 2), tmp_path / "out", plot="totl ~ seed")


def test_the_exit_code_is_that_of_the_points_also_where_a_figure_cannot_be_drawn() -> None:
    wrong, document = UserError("--plot: x"), {"findings": [{"exit_code": 1}]}
    assert main.Outcome(document, wrong=wrong).exit_code == 1
    assert main.Outcome({}, [{"exit_code": 1}], wrong).exit_code == 1
    assert main.Outcome({}, wrong=wrong).exit_code == 2


def test_a_sweep_that_replaces_the_table_of_another_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main.snakemake, "run", all_done)
    monkeypatch.setattr(main.report, "write", lambda *_: {})
    said: list[str] = []
    for seeds in ([1, 2], [1, 2, 3], [2, 4]):
        described = spec.Spec("trace", {"machine": "small", "script": "c0 ld A@n1"}, {"seed": seeds})
        main.run(described, tmp_path / "out", say=said.append)
    assert [line for line in said if "another sweep" in line] == [
        f"{tmp_path}/out: 2 finished points from an earlier start do not belong to this sweep (another sweep, other values, or inputs that "
        "have changed): table and report are replaced, the points are kept"]


def test_a_report_that_cannot_be_written_is_an_error_without_results_that_name_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described = spec.Spec("trace", {"machine": "small", "script": "c0 ld A@n1"}, {"seed": [1]})

    def full(*_: Any) -> None:
        raise UserError("report.html: No space left on device: expected free space")

    monkeypatch.setattr(main.snakemake, "run", all_done)
    monkeypatch.setattr(main.report, "write", full)
    with pytest.raises(UserError, match=r"expected free space \(the points are kept in "):
        main.run(described, tmp_path / "out")


@pytest.mark.parametrize("options, error", [
    (["--jobs", "0"], "--jobs: 0: expected 1 to 1000"),
    (["--executor", "slrm"], '--executor: no executor called "slrm": expected a known name, such as slurm'),
    (["--plot", "total_cycles"], "--plot: 'total_cycles': expected FIGURE ~ AXIS"),
    (["--plot", "total_cycles ~ links.clok"], '--plot: no parameter called "links.clok": expected a known name, such as links.clock'),
    (["--plot", "total_cycles ~ links.clock", "--plot", "seconds ~ links.clock"], "--plot: is given 2 times: expected one plot"),
])
def test_options_that_cannot_be_are_user_errors(moscope: Moscope, tmp_path: Path, options: list[str], error: str) -> None:
    (tmp_path / "s.toml").write_text(SWEEP)
    got = moscope("sweep", "s.toml", *options)
    assert (got.returncode, got.stderr.startswith(error)) == (2, True), got.stderr
