# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of job: what they plan, run and give as figures."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from moscope import jsonio, paths, workloads
from moscope.cli import Shared
from moscope.errors import UserError
from moscope.guest import kernel, kernel_build, packages, rootimage
from moscope.protocol import check
from moscope.runs.options import Options
from moscope.schema.enumerations import MISS_CLASS
from moscope.sweeps import axes, jobs, main, of_run, overrides
from moscope.sweeps.jobs import run
from moscope.sweeps.jobs.base import Finding
from moscope.sweeps.points import command
from moscope.sweeps.spec import Spec
from moscope.workloads import build, registry


def nothing(*_: Any) -> None:
    pass


def test_a_latency_point_has_a_figure_for_each_level() -> None:
    job, params = jobs.find("latency"), {"machine": "small", "links.clock": "1GHz"}
    figures = job.figures(job.run(params, Path(), nothing))
    assert figures["L1_cycles"] == 3.0
    assert {"L2_cycles", "L3_cycles", "DRAM_0_hops_cycles", "DRAM_1_hop_cycles", "DRAM_2_hops_cycles"} <= set(figures)


def test_one_thread_and_several_are_points_of_their_own() -> None:
    def identity(**more: Any) -> dict[str, Any]:
        return jobs.find("run").plan({"workload": "counter", "kernel": "distro", "cores": 1, **more}, nothing).identity

    assert identity() == identity(threads=1) != identity(threads=2) == identity(threads=8)


def test_a_point_uses_at_most_one_host_thread_for_each_chip() -> None:
    def threads(cores: int, **more: Any) -> int:
        return jobs.find("run").plan({"workload": "counter", "kernel": "distro", "cores": cores, **more}, nothing).threads

    assert (threads(48), threads(48, threads=4), threads(12, threads=4), threads(6, threads=4)) == (1, 4, 2, 1)


def test_a_check_point_says_what_was_reached_and_violated() -> None:
    job, params = jobs.find("protocol check"), {"machine": "small", "protocol": "MSI", "ops": 2000}
    figures = job.figures(job.run(params, Path(), nothing))
    assert (figures["ok"], figures["violations"]) == (True, 0) and int(figures["reached"] or 0) > 20


def test_a_protocol_error_keeps_the_figures_of_a_check_point(monkeypatch: pytest.MonkeyPatch) -> None:
    job, params = jobs.find("protocol check"), {"machine": "small", "protocol": "MSI", "ops": 2000}
    answer = {**dict.fromkeys(("seconds", "declared", "loads_per_second", "device_reads", "device_writes"), 0), "ops": 7, "reached": 3,
              "checked_loads": 2, "unreached": [], "violations": [], "by_kind": {}}

    def broken(*_: Any, **__: Any) -> dict[str, Any]:
        raise check.Broken("no transition: L1Cache-0, state M", answer)

    monkeypatch.setattr(check, "random_test", broken)
    document = job.run(params, Path(), nothing)
    figures = job.figures(document)
    assert (figures["ok"], figures["ops"], figures["reached"], figures["violations"]) == (False, 7, 3, 1)
    assert job.finding(document) == Finding("protocol error: no transition: L1Cache-0, state M", 3)


def test_a_check_point_tests_with_the_caches_that_the_command_takes() -> None:
    """The command that repeats a point takes mixed caches for protocols from elsewhere."""
    job, params = jobs.find("protocol check"), {"machine": "small", "protocol": "MSI", "ops": 2001, "caches": "mixed"}
    document = job.run(params, Path(), nothing)
    assert (document["ok"], document["caches"], document["ops"]) == (True, "mixed", 2001)
    handover = str(paths.root() / "tests/protocol/protocols/Handover.slicc")
    assert {s.caches for s in check.subjects(handover, "small", [], 1000)} == {"tiny", "machine"}


def test_a_points_row_says_how_its_throughput_changed() -> None:
    document = {"cycles": {"busy": 1.0}, "windows": [{}] * 8, "top_names": [], "ops": 8}
    changed = {**document, "trend": {"windows": 3, "before": 9.0, "after": 1.0}}
    rows = [jobs.find("run").figures(one) for one in (document, changed)]
    assert [(row["trend.before"], row["trend.after"]) for row in rows] == [(None, None), (9.0, 1.0)]


def test_a_name_in_the_lines_of_a_sweep_has_the_class_and_the_lines_that_the_report_of_its_point_gives(tmp_path: Path) -> None:
    """`cold` costs most, though no line of it costs as much as another's; two uses of a line are one line."""
    def row(line: int, use: int, miss: str, stall: int) -> dict[str, Any]:
        classes = {f"{c}_{part}": 0 for c in MISS_CLASS.names for part in ("stall", "count")} | {f"{miss}_stall": stall, f"{miss}_count": 1}
        return {"line": line, "use": use, "name": "a", "kind": "slab", "class": miss, "stall": stall, "spin": 0, "transfers": 1,
                "waiters": 1, **classes}

    rows = [row(0, 1, "true_sharing", 10), row(64, 2, "cold", 6), row(128, 3, "cold", 6), row(0, 4, "cold", 1)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "lines.parquet")
    stats = {"cores": [{"unreported": 23}, {"unreported": 0}], "attribution": {"exposed": 23, "spin": 0}}
    (tmp_path / "stats.json").write_text(json.dumps(stats))
    assert jobs.find("run").lines(tmp_path).to_pylist() == [{"name": "a", "kind": "slab", "lines": 3, "class": "cold", "stall_us": 23e-9,
                                                             "spin_us": 0, "transfers": 4, "wait_share": 0.5}]


@pytest.mark.parametrize("name, params, error", [
    ("latency", {"bandwidth": "yes"}, 'bandwidth: "yes": expected true or false'),
    ("protocol check", {"protocol": "MSI", "ops": 0}, "ops: 0: expected a whole number from 1"),
    ("protocol check", {"protocol": "MSI", "ops": 2**64}, "ops: 18446744073709551616: expected 1000000000000000000 or less"),
    ("protocol check", {"protocol": "MSI", "with": "flsh"}, '--with: no kind of access called "flsh"'),
    ("protocol check", {"protocol": "MSI", "with": "flush,dma"}, "--with: flush, dma: the protocol has none: expected no such option"),
    ("protocol check", {"protocol": "MSI", "with": "dma", "without": "dma"}, "--with: dma: also in --without: expected one of the two"),
    ("protocol check", {"protocol": "MSI", "caches": "large"}, "--caches: 'large': expected tiny, machine or mixed"),
    ("protocol check", {"protocol": "MSI", "in_flight": 17}, "in_flight: 17: expected 1 to 16"),
    ("protocol check", {"protocol": "MSJ"}, 'protocol: no protocol called "MSJ": expected a known name, such as MSI'),
    ("run", {"workload": "counter", "cores": 4, "windows": "2"}, 'windows: "2": expected a whole number'),
    ("run", {"program": "/usr/bin/true", "cores": 4, "env": "A='x"}, "env: A='x: no closing quotation: expected words separated"),
    ("run", {"workload": "counter", "cores": "1,2", "kernel": "distro"}, "cores: 2 points in one: expected one value here, or an axis"),
    ("trace", {"script": "c0 ld A@n0", "seed": "x"}, 'seed: "x": expected a whole number'),
    ("trace", {"script": "c0 ld A@n0", "seed": -1}, "seed: -1: expected 0 to 9007199254740991"),
])
def test_a_parameter_that_a_job_cannot_take_is_a_user_error(name: str, params: dict[str, Any], error: str) -> None:
    with pytest.raises(UserError) as raised:
        jobs.find(name).plan(params, nothing)
    assert str(raised.value).startswith(error)


@pytest.mark.parametrize("name, one, other, equal", [
    ("trace", {"links.clock": "1GHz"}, {"links.clock": "1000MHz"}, True),
    ("trace", {"links.clock": "1GHz"}, {"links.clock": "1.2GHz"}, False),
    ("trace", {"seed": 1}, {"seed": 2}, False),
    ("latency", {"protocol": "MSI"}, {"protocol": "MOESI_HTAssist"}, False),
])
def test_a_digest_covers_what_determines_the_result_and_nothing_else(name: str, one: dict[str, Any], other: dict[str, Any],
                                                                      equal: bool) -> None:
    fixed = {"script": "c0 ld A@n0"} if name == "trace" else {}
    digests = [jobs.find(name).plan({**fixed, **params}, nothing).digest for params in (one, other)]
    assert (digests[0] == digests[1]) == equal


def test_a_trace_of_a_sweep_delays_the_messages_that_its_script_delays(tmp_path: Path) -> None:
    def cycles(delay: str) -> float:
        script = f"c0 st A@n0{delay}"
        document = jobs.find("trace").run({"script": script, "machine": "small"}, tmp_path, nothing)
        return float(document["accesses"][0]["latency_cycles"])

    assert cycles(" Store>Directory-0+100ns") == pytest.approx(cycles("") + 240, abs=6)  # up to a clock edge


def test_the_command_of_a_point_repeats_it() -> None:
    params = {"workload": "counter", "cores": 48, "memory_per_node": "1GiB", "machine": "small", "probe_filter.enabled": False}
    assert command(jobs.find("run"), params) == (
        f"{paths.launcher()} run --workload counter --cores 48 --memory-per-node 1GiB --machine small --set probe_filter.enabled=false")


@pytest.mark.parametrize("name, params", [
    ("protocol check", {"protocol": "m/MSI.slicc", "machine": "m/own.py"}),
    ("trace", {"script": "c0 ld A@n0", "protocol": "m/MSI.slicc", "machine": "m/own.py"}),
])
def test_the_command_of_a_point_repeats_it_in_any_folder(name: str, params: dict[str, Any]) -> None:
    words = command(jobs.find(name), params).replace("protocol=", "").split()
    assert {str(Path("m/MSI.slicc").absolute()), str(Path("m/own.py").absolute())} <= set(words)


@pytest.mark.parametrize("name, value, said", [
    ("program", "./misc 5 'a b'", "{here}/misc 5 'a b'"), ("program", "misc 5", "misc 5"), ("workload", "../w:one", "{here}/../w:one"),
    ("workload", "counter", "counter"), ("kernel", "k/bzImage", "{here}/k/bzImage"), ("kernel", "pk-7", "pk-7"),
    ("stdin", "text", "{here}/text"), ("take", "data", "{here}/data"),
])
def test_the_command_of_a_run_repeats_it_in_any_folder(name: str, value: str, said: str) -> None:
    assert jobs.find("run").words_of(name, value) == [f"--{name}", said.format(here=Path().absolute())]


def test_several_values_of_a_set_make_a_run_a_sweep() -> None:
    given = Options(workload="counter", kernel="stock,pk", cores="1,4", windows=1)
    spec = of_run.spec(Shared(sets=["links.clock=1GHz,2GHz", "dram.channels=1"], seed=3), given)
    assert spec is not None
    assert spec.axes == {"kernel": ["stock", "pk"], "cores": [1, 4], "links.clock": ["1GHz", "2GHz"]}
    assert {"workload": "counter", "dram.channels": "1", "seed": 3, "windows": 1}.items() <= spec.fixed.items()
    points = axes.points(spec)
    assert len(points) == 8
    plans = [run.plan_of(jobs.find("run"), params, build=False) for params in points]
    assert {(p.points[0].kernel, p.points[0].cores, p.machine.links.clock.hertz) for p in plans} == {
        (kernel, cores, clock) for kernel in ("stock", "pk") for cores in (1, 4) for clock in (1e9, 2e9)}
    assert of_run.spec(Shared(sets=["dram.channels=1"]), given) is None


def test_each_value_of_a_repeated_option_reaches_the_points_of_a_sweep(tmp_path: Path) -> None:
    program, source = tmp_path / "server", tmp_path / "server.c"
    source.write_text("void reply(void) {}\nvoid handle(void) { reply(); }\nint main(void) { handle(); }\n")
    subprocess.run(["cc", "-O0", "-o", program, source], check=True)
    given = Options(program=str(program), kernel="stock", cores="4", begin="threads", variables=("A=x y", "B="), count=("handle", "reply"))
    spec = of_run.spec(Shared(sets=["links.clock=1GHz,2GHz"]), given)
    assert spec is not None
    first = axes.points(spec)[0]
    plan = run.plan_of(jobs.find("run"), first, build=False)
    assert plan.points[0].count == ["handle", "reply"] and plan.own is not None and plan.own.variables == ("A=x y", "B=")
    assert "--env 'A=x y' --env B= --count handle --count reply" in command(jobs.find("run"), first)


def test_a_dry_run_builds_neither_kernel_nor_root_image_nor_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module, name in ((kernel_build, "build"), (rootimage, "find"), (build, "_compile"), (packages, "fetch")):
        monkeypatch.setattr(module, name, lambda *_, what=name, **__: pytest.fail(f"{what} was called"))
    described = Spec("run", {"windows": 1}, {"workload": ["memcached", "postgresql"], "kernel": ["stock", "pk@split"], "cores": [1, 2]})
    said: list[str] = []
    outcome = main.run(described, tmp_path / "out", dry_run=True, say=said.append)
    assert (outcome.document["points"], outcome.document["done"], outcome.document["estimated_s"] is not None) == (8, 0, True)
    assert said[-1].endswith("built first: the kernel (7 minutes), a root image with memcached (some minutes), the workloads' programs "
                             "(seconds), the variant split of the kernel (7 minutes), a root image with postgresql-15 (some minutes)")


def test_a_dry_run_refuses_the_folder_of_another_command(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in (jsonio.MARK, "run.json"):
        (tmp_path / "out" / name).touch()
    with pytest.raises(UserError, match="has run.json of another command: expected the folder of a sweep, or an empty one"):
        main.run(Spec("run", {"workload": "counter"}, {"cores": [1, 2]}), tmp_path / "out", dry_run=True)


def test_a_dry_run_says_what_a_point_lacks_though_the_rest_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((kernel, "is_kept"), (workloads, "are_built")):
        monkeypatch.setattr(module, name, lambda *_: True)
    monkeypatch.setattr(rootimage, "kept", lambda *_: None)
    monkeypatch.setattr(rootimage, "find", lambda *_: pytest.fail("the image was made"))
    said: list[str] = []
    described = Spec("run", {"workload": "apache", "kernel": "pk", "windows": 1}, {"cores": [1]})
    main.run(described, tmp_path / "out", dry_run=True, say=said.append)
    assert said[-1].endswith("; built first: a root image with apache2 (some minutes)")


def test_in_a_sweep_of_runs_each_workload_has_its_default_kernels() -> None:
    spec = of_run.spec(Shared(sets=["links.clock=1GHz,2GHz"]), Options(workload="exim,counter", cores="4"))
    assert spec is not None
    assert {(p["workload"], p["kernel"]) for p in axes.points(spec)} == {("exim", "stock"), ("exim", "pk"), ("counter", "distro")}


def test_a_sweep_of_runs_names_a_workload_elsewhere_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name alone says nothing to the processes of the points."""
    monkeypatch.setattr(registry, "_REGISTERED", {w.name: w for w in registry.every()})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/mine.c").write_text("int main(void) { return 0; }")
    (tmp_path / "mine/workload.py").write_text("from moscope.workloads import Workload, register\n"
                                               "register(__file__, Workload('looping', 'a test', 'loops', lambda cores: '', most_cores=1))")
    spec = of_run.spec(Shared(sets=["links.clock=1GHz,2GHz"]), Options(workload=f"counter,{tmp_path}/mine", kernel="stock"))
    assert spec is not None and spec.axes["workload"] == ["counter", f"{tmp_path}/mine"]
    assert {p["cores"] for p in axes.points(spec) if p["workload"] != "counter"} == {1}


def test_an_option_gives_numbers_and_switches_as_a_sweep_file_does() -> None:
    found = overrides.apply(Spec("run", {"workload": "counter"}, {}), Shared(sets=["seed=1,2", "windows=5", "dram.channels=1"]))
    assert found.axes == {"seed": [1, 2]} and found.fixed == {"workload": "counter", "windows": 5, "dram.channels": "1"}
    assert overrides.apply(Spec("latency", {}, {}), Shared(sets=["bandwidth=true"])).fixed == {"bandwidth": True}


def test_commas_of_a_value_are_those_of_the_sweeps_own_machine() -> None:
    edges = "0-1,1-2,2-3,3-0"
    assert overrides.apply(Spec("latency", {"machine": "small"}, {}), Shared(sets=[f"topology={edges}"])).fixed["topology"] == edges
