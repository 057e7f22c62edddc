# SPDX-License-Identifier: BSD-3-Clause
"""`moscope run --engine gem5` with a stand-in for gem5 that leaves a statistics file of our own."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope import jsonio, open_run
from moscope.bench import gem5 as bench_gem5
from moscope.cli import Shared
from moscope.errors import UserError
from moscope.gem5 import points
from moscope.runs.options import Options

Fake = Callable[..., Path]
Moscope = Callable[..., subprocess.CompletedProcess[str]]
ENDED = ("moscope-gem5: region: begins: 2.0 s\nmoscope-gem5: region: window begins\n"
         "moscope-gem5: region: operations: 3000\nmoscope-gem5: region: processor: 3.5 s\n"
         "moscope-gem5: ended: simulate() limit reached: 4.000 s")
# Two cores, 100 us: one issues in a quarter of its cycles and never halts, the other halts half of the time.
STATS = """
---------- Begin Simulation Statistics ----------
simTicks                                 100000000000                       # Number of ticks simulated (Tick)
system.cpu0.commitStats0.numInsts               60000                       # committed
system.cpu1.commitStats0.numInsts               12000                       # committed
system.cpu0.exec_context.thread_0.notIdleFraction     1.000000                       # not idle
system.cpu1.exec_context.thread_0.notIdleFraction     0.500000                       # not idle

---------- End Simulation Statistics   ----------
"""


def left_by_gem5(folder: Path, printed: str = "moscope: counter operations=3000 verify=ok\n") -> Path:
    folder.mkdir()
    (folder / "stats.txt").write_text(STATS)
    (folder / "program.txt").write_text(printed)
    return folder


def run(moscope: Moscope, gem5: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return moscope("run", "--engine", "gem5", "--gem5", str(gem5), "--machine", "small", "--workload", "counter",
                   "--cores", "2", "--json", *options)


def test_a_window_on_gem5_is_an_ordinary_point(moscope: Moscope, fake_gem5: Fake, tmp_path: Path) -> None:
    got = run(moscope, fake_gem5(x86=True, says=ENDED, files=left_by_gem5(tmp_path / "files")), "--window", "100us")
    assert got.returncode == 0, got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    point = document["points"][0]
    assert (point["instructions"], point["ops"], point["window_ms"], point["host_s"], point["host_cpu_s"]) == (72000, 3000, 0.1, 4.0, 3.5)
    assert point["throughput_per_s"] == pytest.approx(3e7)
    assert sum(point["cycles"].values()) == pytest.approx(1)
    assert point["cycles"]["idle"] == pytest.approx(0.25)
    assert point["cycles"]["busy"] == pytest.approx(72000 / (2 * 240000), rel=1e-3)
    assert "gem5" in point["kernel"] and document["engine"] == "gem5 24.0.0.1"
    job = json.loads((tmp_path / "moscope-out/run-gem5/points/counter-gem5-2/job.json").read_text())
    assert job["cores"] == 2 < job["machine"]["cores"] and job["window_fs"] == 10**11
    assert open_run(tmp_path / "moscope-out/run-gem5").points.column("point").to_pylist() == ["counter-gem5-2"], "as the folder"
    assert Path(job["program"][0]).name == "counter" and "--cores" in job["program"]
    assert json.loads((tmp_path / "moscope-out/run-gem5/run.json").read_text()) == document
    page = Path(tmp_path, document["report"]).read_text(encoding="utf-8")
    assert "gem5 24.0.0.1" in page and "30,000,000" in page and "memory stall" in page
    assert "incomplete" not in page  # what gem5 keeps no account of is not missed


def test_a_program_that_finds_its_results_wrong_fails_the_run(moscope: Moscope, fake_gem5: Fake, tmp_path: Path) -> None:
    files = left_by_gem5(tmp_path / "files", "moscope: counter operations=1 verify=wrong\n")
    got = run(moscope, fake_gem5(x86=True, says=ENDED, files=files))
    assert got.returncode == 1 and "results are wrong" in got.stderr


def test_a_program_that_ends_before_its_window_fails_the_run_with_its_words(moscope: Moscope, fake_gem5: Fake, tmp_path: Path) -> None:
    files = left_by_gem5(tmp_path / "files", "counter: no such variant\n")
    got = run(moscope, fake_gem5(x86=True, says=ENDED.replace("window begins", "nothing begins"), files=files))
    assert got.returncode == 1 and "before its window" in got.stderr and "no such variant" in got.stderr


@pytest.mark.parametrize("options, what", [
    (("--windows", "3"), "one window"),
    (("--detail", "full"), "records no transactions"),
])
def test_what_gem5_cannot_do_is_refused(moscope: Moscope, fake_gem5: Fake, options: tuple[str, str], what: str) -> None:
    got = run(moscope, fake_gem5(x86=True), *options)
    assert got.returncode == 2 and what in got.stderr


def test_workloads_of_processes_are_refused_by_name(moscope: Moscope, fake_gem5: Fake) -> None:
    got = run(moscope, fake_gem5(x86=True), "--workload", "exim")
    assert got.returncode == 2 and "exim" in got.stderr and "counter" in got.stderr and "--kernel" in got.stderr


def test_a_gem5_without_x86_is_refused(moscope: Moscope, fake_gem5: Fake) -> None:
    got = run(moscope, fake_gem5(x86=False))
    assert got.returncode == 2 and "without x86" in got.stderr


def speed_window(instructions: int, host_cpu_s: float) -> dict[str, Any]:
    return {"instructions": instructions, "host_s": 9 * host_cpu_s, "host_cpu_s": host_cpu_s, "ticks": 2 * 10**11, "cycles": {"idle": 0.25}}


@pytest.mark.parametrize("there, ok", [(50_000, True), (50_001, False)])
def test_the_speed_ratio_compares_instructions_per_cpu_second_and_has_to_reach_a_bar(there: int, ok: bool) -> None:
    ours = {"workload": "counter", "cores": 48, "instructions": 6_000_000, "host_s": 500.0, "windows": [speed_window(6_000_000, 2.0)]}
    document = bench_gem5.document("m", "24.0.0.1", ours, {"workload": "counter", **speed_window(there, 1.0)}, [1.0, 2.0])
    jsonio.validate(document)
    assert document["ratio"] == pytest.approx(60, rel=1e-4) and document["ok"] is ok
    assert document["moscope"]["mips"] == pytest.approx(3) and document["gem5"]["busy"] == pytest.approx(0.75)
    assert document["moscope"]["host_s"] == 18 and document["moscope"]["simulated_ms"] == pytest.approx(0.2)


def test_the_speeds_are_not_compared_without_a_gem5_or_with_processes(moscope: Moscope, fake_gem5: Fake,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEM5", raising=False)
    for options, what in (((), "gem5: no binary is given: expected --gem5 PATH"), (("--gem5", str(fake_gem5(x86=False))), "without x86"),
                          (("--workload", "exim"), "exim")):
        got = moscope("bench", "gem5", "--machine", "small", "--cores", "2", *options)
        assert got.returncode == 2 and what in got.stderr


def test_workloads_of_processes_need_a_kernel_also_where_others_of_their_program_have_threads(tmp_path: Path) -> None:
    shared = Shared(out=tmp_path / "out", quiet=True)
    assert points.plan_of(shared, Options(workload="pedsort", cores="1")).points
    with pytest.raises(UserError, match="--workload: pedsort-processes: gem5's syscall emulation has threads and no processes: expected "
                       "one of .*pedsort"):
        points.plan_of(shared, Options(workload="pedsort-processes", cores="1"))
