# SPDX-License-Identifier: BSD-3-Clause
"""What a person sees of a sweep while it runs, and the estimate of its duration."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from moscope import jsonio
from moscope.cli import Shared
from moscope.guest import kernel
from moscope.runs import options, pool
from moscope.schema.constants import FS_PER_MS
from moscope.sweeps import display, jobs, main, speeds
from moscope.sweeps import points as planning
from moscope.sweeps.jobs import run
from moscope.sweeps.jobs.base import Planned
from moscope.sweeps.points import Point
from moscope.sweeps.spec import Spec
from moscope.sweeps.store import Store


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_there_is_a_line_when_a_point_proceeds_although_none_has_finished(
        clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    bar = display.Bar(Shared())
    bar.live = False
    for at in range(0, 121, 10):
        clock[0] = 1000.0 + at
        bar.show(0, 2, [f"exim on stock, 48 cores: window 1 of 3, {at // 10} %"])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 120 // display.EVERY_S
    assert lines[1].endswith("0 of 2 points finished, 60 s; exim on stock, 48 cores: window 1 of 3, 6 %")


def test_without_a_terminal_the_same_line_comes_again_after_two_minutes(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    bar = display.Bar(Shared())
    bar.live = False
    for at in range(0, 301, 10):
        clock[0] = 1000.0 + at
        bar.show(0, 2)
    assert [line.split(", ")[1] for line in capsys.readouterr().err.splitlines()] == ["30 s", "150 s", "270 s"]


@pytest.mark.parametrize(("width", "heads"), [("200", ["throughput_per_s", "cycles.memory"]),
                                              ("55", ["throughput_", "per_s", "cycles.", "memory"])])
def test_the_headings_of_a_narrow_table_of_points_break_between_words(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: str, heads: list[str]) -> None:
    monkeypatch.setattr(display.terminal, "WIDTH", 0)
    monkeypatch.setenv("COLUMNS", width)
    table = pa.table({"cores": [2], "status": ["done"], "throughput_per_s": [1350000.0], "cycles.memory": [0.068], "seconds": [4.7]})
    parquet.write_table(table.replace_schema_metadata({"axes": "cores", "job": "run"}), tmp_path / "table.parquet")
    display.points_table(tmp_path / "table.parquet")
    lines = capsys.readouterr().out.splitlines()
    words = " ".join(line for line in lines if line.startswith("┃")).replace("┃", " ").split()
    assert set(heads) <= set(words) and len(words) == len(heads) + 3 and "1,350,000" in lines[-2]


def test_the_table_of_points_has_first_the_main_figures_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flat = {name: [9.0, 9.0, None] for name in ("L1_cycles", "L2_cycles", "L3_cycles", "DRAM_0_hops_cycles")}
    table = pa.table({"seed": [1, 2, 3], "status": ["done", "done", "failed"], **flat, "DRAM_1_hop_cycles": [1.0, 2.0, None]})
    parquet.write_table(table.replace_schema_metadata({"axes": "seed", "job": "latency"}), tmp_path / "table.parquet")
    display.points_table(tmp_path / "table.parquet")
    words = capsys.readouterr().out.replace("┃", " ").replace("|", " ").split()
    shown = [word for word in words if word.endswith("_cycles")]
    assert shown == ["DRAM_1_hop_cycles", "L1_cycles", "L2_cycles", "L3_cycles"]


def test_points_report_their_phase_until_they_end(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.reporting("one"):
        store.report_state("one", "warm-up")
        assert store.states() == ["warm-up"]
    assert store.states() == []


def test_the_phase_of_a_point_that_was_silent_for_long_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    store.report_state("killed", "window 1 of 3")
    monkeypatch.setattr("moscope.sweeps.store.SILENT_S", -1.0)
    assert store.states() == []


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds for a unit of work on another host: 1 with 1 core, 10 with 10 cores; here nothing has run."""
    kinds = {f"run exim with {n} cores": {"seconds": 4.0 * n, "work": 4.0} for n in (1, 10)}
    (tmp_path / "recorded.json").write_text(json.dumps({"kinds": kinds}))
    monkeypatch.setattr(speeds, "RECORDED", tmp_path / "recorded.json")
    monkeypatch.setattr(speeds, "file", lambda: tmp_path / "speeds.json")


@pytest.mark.usefixtures("recorded")
def test_an_estimate_on_a_new_host_is_made_from_what_points_took_on_another() -> None:
    found = speeds.estimate([("run exim with 1 cores", 3.0), ("run exim with 4 cores", 2.0), ("latency on small", 1.0)])
    assert found == speeds.Estimate(3.0 * 1 + 2.0 * 4, elsewhere=2, unknown=1)


@pytest.mark.usefixtures("recorded")
def test_points_of_a_program_that_has_run_nowhere_have_no_estimate() -> None:
    found = speeds.estimate([("run cnt with 10 cores", 5.0), ("run exim with 11 cores", 5.0)])
    assert found == speeds.Estimate(0.0, elsewhere=0, unknown=2)


@pytest.mark.usefixtures("recorded")
def test_the_estimate_of_a_random_test_includes_its_start() -> None:
    few, many = (jobs.find("protocol check").plan({"protocol": "MSI", "cores": 4, "ops": ops}, print) for ops in (10, 1000))
    speeds.record([(Point({}, few), {"seconds": 0.2, "figures": {}})])
    assert 0.2 < speeds.estimate([(many.kind, many.work)]).seconds < 0.3, "not a hundred times as long"


@pytest.mark.usefixtures("recorded")
def test_what_points_took_here_counts_more_than_what_they_took_on_another_host() -> None:
    speeds.file().write_text(json.dumps({"run exim with 1 cores": {"seconds": 7.0, "work": 1.0}}))
    assert speeds.estimate([("run exim with 1 cores", 2.0)]) == speeds.Estimate(14.0, elsewhere=0, unknown=0)


@pytest.mark.usefixtures("recorded")
def test_an_estimate_includes_what_earlier_sweeps_took_besides_their_points() -> None:
    work = [("run exim with 1 cores", 3.0), ("run exim with 1 cores", 3.0)]
    assert speeds.estimate_sweep("run", work, 2).with_jobs(2) == 3.0, "no sweep has run"
    speeds.record_besides("run", 4, 80.0)
    speeds.record_besides("run", 1, 10.0)
    assert speeds.estimate_sweep("run", work, 2).with_jobs(2) == 3.0 + (1 + 2) * (80 / 4 + 10) / 2
    assert speeds.estimate_sweep("trace", [], 0).with_jobs(2) == 0.0


@pytest.mark.usefixtures("recorded")
def test_a_start_of_a_sweep_records_nothing_if_another_one_has_finished_its_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def after_another(store: Store, _: object) -> Iterator[object]:
        (point,) = planning.plan(described, str)
        store.point(point.digest).mkdir()
        (store.point(point.digest) / "result.json").write_text(json.dumps({"figures": {}, "seconds": 20.0}))
        yield None

    described = Spec("trace", {"machine": "small", "script": "c0 ld A@n1"}, {"seed": [1]})
    monkeypatch.setattr(main, "alone", after_another)
    monkeypatch.setattr(main.report, "write", lambda *_: {})
    assert main.run(described, tmp_path / "out").failed == [] and speeds.known() == {}


@pytest.mark.usefixtures("recorded")
def test_a_start_of_a_sweep_records_what_it_took_besides_its_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((100.0, 150.0))

    def made(root: Path, *_: object) -> int:
        for n, digest in enumerate(json.loads((root / "workflow" / "config.json").read_text())["points"]):
            (root / "points" / digest).mkdir()
            (root / "points" / digest / "result.json").write_text(json.dumps({"figures": {}, "seconds": 20.0 + n}))
        return 0

    monkeypatch.setattr(main, "monotonic", lambda: next(clock))
    monkeypatch.setattr(main.snakemake, "run", made)
    monkeypatch.setattr(main.report, "write", lambda *_: {})
    described = Spec("trace", {"machine": "small", "script": "c0 ld A@n1"}, {"seed": [1, 2]})
    main.run(described, tmp_path / "out", at_once=2)
    assert speeds.known()["sweep of trace"] == {"seconds": 50.0 - (20 + 21) / 2, "work": 1.0}
    assert main.run(described, tmp_path / "out", dry_run=True).document["estimated_s"] == 0.0


@pytest.mark.usefixtures("recorded")
def test_the_memory_of_points_is_estimated_from_earlier_ones_of_their_kind() -> None:
    kind = "run exim with 1 cores"
    made = Point({}, Planned({}, kind, boot_memory_mb=100))
    assert speeds.kept_bytes(kind) is None
    for mb in (160, 140):
        speeds.record([(made, {"seconds": 1.0, "figures": {"host_bytes": mb << 20, "windows": 10, "window_ms": 2.0}})])
    assert speeds.kept_bytes(kind) == (60 << 20) / 20
    for figures in ({}, {"host_bytes": 7 << 20, "windows": 0, "window_ms": None}):
        speeds.record([(Point({}, Planned({}, "trace on small")), {"seconds": 1.0, "figures": figures})])
    assert speeds.kept_bytes("trace on small") is None


@pytest.mark.usefixtures("recorded")
def test_on_a_new_host_memory_is_estimated_from_runs_on_another_host(tmp_path: Path) -> None:
    kinds = {"run counter with 48 cores": {"seconds": 1.0, "work": 1.0, "kept_bytes_per_ms": 100 << 20}}
    (tmp_path / "recorded.json").write_text(json.dumps({"kinds": kinds}))
    (with_record, without) = (jobs.find("run", "here").plan({"workload": "counter", "kernel": "distro", "cores": cores, "windows": 10,
                                                             "window": "2ms"}, print).memory_mb for cores in (48, 47))
    assert with_record == pytest.approx(1200 + 24 * 48 + 20 * 100 * pool.SPARE, abs=2)
    assert without == pytest.approx(1200 + 24 * 47 + 20 * 47 * 5, abs=2)


@pytest.mark.usefixtures("recorded")
def test_a_dry_run_without_a_kernel_has_an_estimate_that_says_where_it_is_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "is_kept", lambda _: False)
    described = Spec("run", {"workload": "exim", "windows": 1, "window": "3ms", "warmup": "0ms"}, {"cores": [1, 10], "kernel": ["stock"]})
    said: list[str] = []
    outcome = main.run(described, tmp_path / "out", dry_run=True, at_once=2, say=said.append)
    assert outcome.document["estimated_s"] == (4.0 * 1 + 4.0 * 10) / 2
    assert (outcome.document["estimated_elsewhere"], outcome.document["estimated_unknown"]) == (2, 0)
    assert outcome.document["built_first"] == ["the kernel (7 minutes)"]
    jsonio.validate(outcome.document)
    assert said == ["2 points; about 22 s with 2 jobs at once (2 points by times measured on another host); built first: the "
                    "kernel (7 minutes)"]


def test_recorded_times_of_another_host_cover_the_workloads_of_mosbench() -> None:
    from moscope.mosbench.applications import APPLICATIONS

    document = json.loads(speeds.RECORDED.read_text())
    assert document["host"]
    for workload in {c.workload for a in APPLICATIONS for c in a.curves}:
        for cores in (1, 48):
            assert f"run {workload} with {cores} cores" in document["kinds"]


@pytest.mark.parametrize(("windows", "until_error", "cycle", "ms"), [(24, None, None, 24), (24, 0.1, None, 16), (24, 0.1, 10, 20),
                                                                     (24, 0.1, 20, 24), (10, 0.1, None, 10)])
def test_the_work_of_a_point_with_an_error_bound_covers_two_cycles_of_its_workload(
        windows: int, until_error: float | None, cycle: int | None, ms: int) -> None:
    one = options.Point(workload="gmake", family="gmake", operation="files", kernel="pk", cores=48, command="", warmup=0,
                        window=FS_PER_MS, windows=windows, detail="table", memory_per_node="512MiB", until_error=until_error,
                        cycle=cycle and cycle * FS_PER_MS)
    assert run.work_of(one) == 1 + ms
